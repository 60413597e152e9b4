#include "diagnose/replay_request.h"

#include "base/json_object.h"
#include "base/text.h"
#include "compare/tensor_folder.h"
#include "tensor/tensor_file.h"

namespace msprobe {
namespace {

using Kind = CallValue::Kind;

std::string ValueJson(const CallValue& v);

std::string ListJson(const std::vector<CallValue>& values) {
  std::vector<std::string> parts;
  for (const CallValue& v : values) parts.push_back(ValueJson(v));
  return JsonList(parts);
}

std::string Tagged(const char* tag, const std::string& json) { return std::string("{\"") + tag + "\": " + json + "}"; }

std::string NumberJson(std::string_view text) {
  const size_t at = text.find("math.");
  if (at == std::string_view::npos) return std::string(text);
  return Tagged("float", JsonString(std::string(text.substr(0, at)) + std::string(text.substr(at + 5))));
}

std::string ValueJson(const CallValue& v) {
  switch (v.kind) {
    case Kind::kNone: return "null";
    case Kind::kBool: return v.text == "True" ? "true" : "false";
    case Kind::kNumber: return NumberJson(v.text);
    case Kind::kText: return JsonString(v.text);
    case Kind::kList: return ListJson(v.items);
    case Kind::kTuple: return Tagged("tuple", ListJson(v.items));
    case Kind::kDict: {
      std::vector<std::string> pairs;
      for (size_t i = 0; i < v.items.size(); ++i)
        pairs.push_back("[" + JsonString(v.keys[i]) + ", " + ValueJson(v.items[i]) + "]");
      return Tagged("dict", JsonList(pairs));
    }
    case Kind::kTensor: return Tagged("tensor", JsonString(v.text));
    case Kind::kTorchName: return Tagged("torch", JsonString(v.text.substr(6)));
    case Kind::kSlice: return Tagged("slice", ListJson(v.items));
    case Kind::kSize: return Tagged("size", ListJson(v.items));
    case Kind::kEllipsis: return Tagged("ellipsis", "true");
    case Kind::kDevice: return Tagged("device", "true");
  }
  return "null";
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
StatusOr<std::string> TensorsJson(const TensorFolder& folder, const CallTensors& tensors, bool results) {
  std::vector<std::string> entries;
  for (const auto& [key, leaf] : tensors) {
    const JsonValue *name = Find(*leaf, "data_name"), *grad = Find(*leaf, "requires_grad");
    if (!name || !name->IsString()) {
      if (results) continue;
      return BadInput("the dump holds no values of " + OneLine(key));
    }
    MSP_ASSIGN_OR_RETURN(const std::string path, folder.Find(Text(*name)));
    if (!EndsWith(path, ".pt")) return BadInput(OneLine(path) + " is no file of PyTorch");
    // Our own reader looks first: sizes that do not fit are found before anything is allocated.
    MSP_RETURN_IF_ERROR(TensorFile::Open(path, ParseDType(Text(*Find(*leaf, "dtype")))).status());
    const bool leaves = !grad || !grad->IsBool() || grad->GetBool();
    entries.push_back("[" + JsonString(key) + ", " + JsonString(path) + ", " + (leaves ? "true" : "false") + "]");
  }
  return JsonList(entries);
}

}  // namespace

StatusOr<std::string> ReplaySideJson(const DumpFile& dump, const OpSide& side) {
  const TensorFolder folder(dump.path());
  const OpCall& call = side.call;
  JsonObject out;
  out.String("owner", OwnerText(call.owner));
  out.String("function", call.function);
  out.Bool("module", call.module);
  out.Raw("args", ListJson(call.args));
  JsonObject kwargs;
  for (const auto& [name, value] : call.kwargs) kwargs.Raw(name, ValueJson(value));
  out.Raw("kwargs", kwargs.Done());
  MSP_ASSIGN_OR_RETURN(const std::string tensors, TensorsJson(folder, call.tensors, false));
  MSP_ASSIGN_OR_RETURN(const std::string gradients, TensorsJson(folder, side.gradients, false));
  MSP_ASSIGN_OR_RETURN(const std::string outputs, TensorsJson(folder, side.outputs, true));
  out.Raw("tensors", tensors);
  out.Raw("gradients", gradients);
  out.Raw("outputs", outputs);
  return out.Done();
}

}  // namespace msprobe
