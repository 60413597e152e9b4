#include "diagnose/replay/replay_request.h"

#include "base/message.h"
#include "base/text.h"
#include "compare/values/tensor_folder.h"
#include "json/writer.h"
#include "tensor/files/tensor_file.h"

namespace msprobe {
namespace {

using Kind = CallValue::Kind;

void WriteValue(JsonWriter* json, const CallValue& v);

void WriteList(JsonWriter* json, const std::vector<CallValue>& values) {
  json->Array(values, [&](const CallValue& v) { WriteValue(json, v); });
}

/// {tag: what `write` writes}
template <typename Write>
void WriteTagged(JsonWriter* json, const char* tag, Write&& write) {
  json->BeginObject();
  json->Key(tag);
  write();
  json->EndObject();
}

void WriteNumber(JsonWriter* json, std::string_view text) {
  const size_t at = text.find("math.");
  if (at == std::string_view::npos) return json->Raw(text);
  WriteTagged(json, "float", [&] { json->String(std::string(text.substr(0, at)).append(text.substr(at + 5))); });
}

void WriteDict(JsonWriter* json, const CallValue& v) {
  json->BeginArray();
  for (size_t i = 0; i < v.items.size(); ++i) {
    json->BeginArray();
    json->String(v.keys[i]);
    WriteValue(json, v.items[i]);
    json->EndArray();
  }
  json->EndArray();
}

void WriteValue(JsonWriter* json, const CallValue& v) {
  const auto list = [&] { WriteList(json, v.items); };
  const auto yes = [&] { json->Bool(true); };
  switch (v.kind) {
    case Kind::kNone: return json->Null();
    case Kind::kBool: return json->Bool(v.text == "True");
    case Kind::kNumber: return WriteNumber(json, v.text);
    case Kind::kText: return json->String(v.text);
    case Kind::kList: return list();
    case Kind::kTuple: return WriteTagged(json, "tuple", list);
    case Kind::kDict: return WriteTagged(json, "dict", [&] { WriteDict(json, v); });
    case Kind::kTensor: return WriteTagged(json, "tensor", [&] { json->String(v.text); });
    case Kind::kTorchName: return WriteTagged(json, "torch", [&] { json->String(v.text.substr(6)); });
    case Kind::kSlice: return WriteTagged(json, "slice", list);
    case Kind::kSize: return WriteTagged(json, "size", list);
    case Kind::kEllipsis: return WriteTagged(json, "ellipsis", yes);
    case Kind::kDevice: return WriteTagged(json, "device", yes);
  }
}

std::string_view OwnerText(CallOwner owner) {
  switch (owner) {
    case CallOwner::kFunctional: return "functional";
    case CallOwner::kTorch: return "torch";
    case CallOwner::kTensor: return "tensor";
    case CallOwner::kVF: return "vf";
  }
  return "";
}

/// Entries of `tensors`; of results those that have no file are left out.
Status WriteTensors(JsonWriter* json, const TensorFolder& folder, const CallTensors& tensors, bool results) {
  json->BeginArray();
  for (const auto& [key, leaf] : tensors) {
    const JsonValue *name = leaf->Find("data_name"), *grad = leaf->Find("requires_grad");
    if (!name || !name->IsString()) {
      if (results) continue;
      return BadInput(Msg("the dump holds no values of {}", OneLine(key)));
    }
    MSP_ASSIGN_OR_RETURN(const std::string path, folder.Find(name->Text()));
    if (!EndsWith(path, ".pt")) return BadInput(Msg("{} is not a file of PyTorch", OneLine(path)));
    // Our own reader looks first: sizes that do not fit are found before anything is allocated.
    MSP_RETURN_IF_ERROR(TensorFile::Open(path, ParseDType(leaf->Find("dtype")->Text())).status());
    const bool leaves = !grad || !grad->IsBool() || grad->Bool();
    json->BeginArray();
    json->String(key);
    json->String(path);
    json->Bool(leaves);
    json->EndArray();
  }
  json->EndArray();
  return OkStatus();
}

}  // namespace

std::string_view ArithmeticText(Arithmetic kind) {
  switch (kind) {
    case Arithmetic::kCopy: return "copy";
    case Arithmetic::kElementwise: return "elementwise";
    case Arithmetic::kFunction: return "function";
    case Arithmetic::kProduct: return "product";
    case Arithmetic::kReduction: return "reduction";
    case Arithmetic::kNormalise: return "normalise";
    case Arithmetic::kSoftmax: return "softmax";
    case Arithmetic::kAttention: return "attention";
    case Arithmetic::kUnknown: break;
  }
  return "unknown";
}

void WriteCallMembers(const OpCall& call, JsonWriter* json) {
  json->Member("owner", OwnerText(call.owner));
  json->Member("function", call.function);
  json->Member("in_place", call.in_place);
  json->Key("args"), WriteList(json, call.args);
  json->ObjectMember("kwargs", [&] {
    for (const auto& [name, value] : call.kwargs) json->Key(name), WriteValue(json, value);
  });
}

StatusOr<std::string> ReplaySideJson(const DumpFile& dump, const OpSide& side) {
  const TensorFolder folder(dump.path());
  const OpCall& call = side.call;
  JsonWriter json;
  json.BeginObject();
  WriteCallMembers(call, &json);
  json.Member("module", call.module);
  json.Key("tensors");
  MSP_RETURN_IF_ERROR(WriteTensors(&json, folder, call.tensors, false));
  json.Key("gradients");
  MSP_RETURN_IF_ERROR(WriteTensors(&json, folder, side.gradients, false));
  json.Key("outputs");
  MSP_RETURN_IF_ERROR(WriteTensors(&json, folder, side.outputs, true));
  json.EndObject();
  return json.Take();
}

}  // namespace msprobe
