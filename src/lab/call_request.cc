#include "lab/call_request.h"

#include <cmath>
#include <cstdlib>

#include "base/message.h"
#include "base/text.h"
#include "compare/values/tensor_folder.h"
#include "diagnose/replay/replay_request.h"
#include "json/writer.h"
#include "lab/ulp_table.h"
#include "tensor/files/tensor_file.h"
#include "tensor/kernels/crc32.h"

namespace msprobe {
namespace {

/// A statistic of a tensor: a number, a truth, or a text such as "inf"; NaN of anything else.
double StatisticOf(const JsonValue& leaf, const char* key) {
  const JsonValue* v = leaf.Find(key);
  if (!v) return NAN;
  if (v->IsBool()) return v->Bool() ? 1 : 0;
  if (v->IsNumber()) return v->Number();
  return v->IsString() ? std::strtod(std::string(v->Text()).c_str(), nullptr) : NAN;
}

bool HasElements(const JsonValue& leaf) {
  for (const JsonValue& size : leaf.Find("shape")->Items()) {
    if (size.IsInt() && size.Int() == 0) return false;
  }
  return true;
}

/// What a tensor looked like: {"dtype", "shape", "min", "max", "first", "last", "nan"}. `first` and `last` may be
/// infinite where the others are the ends of the finite values.
Status WriteRange(const JsonValue& leaf, const std::string& key, JsonWriter* json) {
  const JsonValue *low = leaf.Find("Min"), *high = leaf.Find("Max");
  const bool known = low && high && !low->IsNull() && !high->IsNull();
  if (!known && HasElements(leaf)) {
    return BadInput(Msg("the dump has neither values nor a range of {}", OneLine(key)));
  }
  const double first = StatisticOf(leaf, "Min"), last = StatisticOf(leaf, "Max");
  const double low_finite = StatisticOf(leaf, leaf.Find("Min_except_inf_nan") ? "Min_except_inf_nan" : "Min");
  const double high_finite = StatisticOf(leaf, leaf.Find("Max_except_inf_nan") ? "Max_except_inf_nan" : "Max");
  json->BeginObject();
  json->Member("dtype", leaf.Find("dtype")->Text());
  json->Key("shape"), json->BeginArray();
  for (const JsonValue& size : leaf.Find("shape")->Items()) json->Int(size.Int());
  json->EndArray();
  json->Key("min"), json->Number(known ? low_finite : 0);
  json->Key("max"), json->Number(known ? high_finite : 0);
  json->Key("first"), json->Number(known ? first : 0);
  json->Key("last"), json->Number(known ? last : 0);
  json->Member("nan", known && (std::isnan(first) || std::isnan(last) || StatisticOf(leaf, "nan_count") > 0));
  json->EndObject();
  return OkStatus();
}

/// A file of a tensor: [path, offset, dtype, shape] where its bytes in C order are all that there is of it, else the
/// path alone, for torch to read.
void WriteFile(const std::string& path, const TensorFile& file, JsonWriter* json) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 31;
  const FileTensor* tensor = file.tensor();
  uint64_t bytes = 0;
  FileTensor contiguous = tensor ? *tensor : FileTensor{};
  const bool plain = tensor && tensor->plain && tensor->name.empty() && tensor->data &&
                     SetContiguous(&contiguous, kMostBytes, &bytes) && contiguous.strides == tensor->strides;
  if (!plain) return json->String(path);
  json->BeginArray();
  json->String(path);
  json->Int(static_cast<int64_t>(file.OffsetOf(*tensor)));
  json->String("torch." + std::string(DTypeName(tensor->dtype)));
  json->BeginArray();
  for (const int64_t size : tensor->shape) json->Int(size);
  json->EndArray();
  json->EndArray();
}

/// `whole`: values that are made up are refused.
Status WriteSources(const TensorFolder& folder, const CallTensors& tensors, bool whole, JsonWriter* json) {
  json->BeginArray();
  for (const auto& [key, leaf] : tensors) {
    const JsonValue *name = leaf->Find("data_name"), *grad = leaf->Find("requires_grad");
    json->BeginArray();
    json->String(key);
    if (name && name->IsString()) {
      MSP_ASSIGN_OR_RETURN(const std::string path, folder.Find(name->Text()));
      if (!EndsWith(path, ".pt") && !EndsWith(path, ".safetensors"))
        return BadInput(Msg("{} is not a file of PyTorch", OneLine(path)));
      // Our own reader looks first: sizes that do not fit are found before anything is allocated.
      MSP_ASSIGN_OR_RETURN(const TensorFile file, TensorFile::Open(path, ParseDType(leaf->Find("dtype")->Text())));
      WriteFile(path, file, json);
    } else if (whole) {
      return BadInput(Msg("the dump has no values of {}", OneLine(key)));
    } else {
      MSP_RETURN_IF_ERROR(WriteRange(*leaf, key, json));
    }
    json->Bool(grad && grad->IsBool() && grad->Bool());
    json->EndArray();
  }
  json->EndArray();
  return OkStatus();
}

/// {"torch.float32": [ulps, share]} of functions whose kernels were measured.
void WriteMeasured(std::string_view api, bool backward, JsonWriter* json) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const std::optional<FunctionBound> bound = MeasuredBound(api, backward, dtype);
    if (!bound) continue;
    json->Key("torch." + std::string(DTypeName(dtype)));
    json->BeginArray();
    json->Number(bound->ulps), json->Number(bound->share);
    json->EndArray();
  }
}

/// The dtype of the first floating result.
std::string_view ResultType(const JsonValue& op) {
  CallTensors outputs;
  if (const JsonValue* v = op.Find("output")) CollectTensors(*v, "output", &outputs);
  for (const auto& [key, leaf] : outputs) {
    const std::string_view dtype = leaf->Find("dtype")->Text();
    if (IsFloating(ParseDType(dtype))) return dtype;
  }
  return {};
}

/// The results of the dump and, of an op with a backward entry, the gradients that leave it.
Status WriteRecorded(const TensorFolder& folder, const JsonDoc& forward, const JsonDoc& backward, JsonWriter* json) {
  CallTensors results, gradients;
  if (const JsonValue* v = forward.Find("output")) CollectTensors(*v, "output", &results);
  if (const JsonValue* v = backward.Find("output")) CollectTensors(*v, "output", &gradients);
  json->Key("recorded"), json->BeginObject();
  json->Key("forward");
  MSP_RETURN_IF_ERROR(WriteSources(folder, results, true, json));
  json->Key("backward");
  MSP_RETURN_IF_ERROR(WriteSources(folder, gradients, true, json));
  json->EndObject();
  return OkStatus();
}

/// {"target": [api, file, function]} of an op whose outputs are changed.
void WriteHandlers(const OutputHandlers& handlers, const std::string& api, JsonWriter* json) {
  json->ObjectMember("handlers", [&] {
    for (const auto& [side, of_side] : {std::pair{"target", &handlers.target}, std::pair{"golden", &handlers.golden}}) {
      const auto found = of_side->find(api);
      if (found == of_side->end()) continue;
      json->Key(side), json->BeginArray();
      json->String(api), json->String(found->second.file), json->String(found->second.function);
      json->EndArray();
    }
  });
}

/// What requests of both frameworks have.
void WriteShared(const DumpFile& dump, const PlannedCall& call, JsonWriter* json) {
  json->Member("arithmetic", ArithmeticText(ArithmeticOf(dump.ops()[call.forward].name)));
  json->ObjectMember("measured", [&] { WriteMeasured(call.api, false, json); });
  json->ObjectMember("measured_backward", [&] { WriteMeasured(call.api, true, json); });
  // The same call has the same values in every run, whatever is checked beside it.
  json->Key("random"), json->Int(Crc32(call.full.data(), call.full.size()));
}

/// The op as the dump has it; the process looks for files in the folder of the dump only.
StatusOr<std::string> MindSporeRequest(const DumpFile& dump, const PlannedCall& call, const JsonDoc& forward) {
  JsonDoc backward;
  if (call.backward) MSP_RETURN_IF_ERROR(dump.ParseOp(*call.backward, &backward));
  JsonWriter json;
  json.BeginObject();
  json.ObjectMember("op", [&] {
    json.Member("name", call.full);
    json.Member("folder", TensorFolder(dump.path()).path());
    json.Key("forward"), json.Value(forward);
    if (call.backward) json.Key("backward"), json.Value(backward);
  });
  WriteShared(dump, call, &json);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace

StatusOr<std::string> CallRequest(const DumpFile& dump, const PlannedCall& call, bool recorded,
                                  const OutputHandlers* handlers) {
  JsonDoc forward, backward;
  MSP_RETURN_IF_ERROR(dump.ParseOp(call.forward, &forward));
  if (dump.framework() == "mindspore") return MindSporeRequest(dump, call, forward);
  MSP_ASSIGN_OR_RETURN(const OpCall found, CallOf(dump.ops()[call.forward].name, forward));
  CallTensors gradients;
  if (call.backward) {
    MSP_RETURN_IF_ERROR(dump.ParseOp(*call.backward, &backward));
    if (const JsonValue* v = backward.Find("input")) CollectTensors(*v, "gradient", &gradients);
  }
  const TensorFolder folder(dump.path());
  JsonWriter json;
  json.BeginObject();
  json.Key("call"), json.BeginObject();
  WriteCallMembers(found, &json);
  json.Key("tensors");
  MSP_RETURN_IF_ERROR(WriteSources(folder, found.tensors, recorded, &json));
  json.Key("gradients");
  MSP_RETURN_IF_ERROR(WriteSources(folder, gradients, recorded, &json));
  if (handlers) WriteHandlers(*handlers, call.api, &json);
  json.EndObject();
  json.Member("backward", !gradients.empty());
  json.Member("dtype", ResultType(forward));
  if (recorded) MSP_RETURN_IF_ERROR(WriteRecorded(folder, forward, backward, &json));
  WriteShared(dump, call, &json);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace msprobe
