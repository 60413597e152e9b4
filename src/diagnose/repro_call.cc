#include "diagnose/repro_call.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "compare/stat_value.h"
#include "dump/members.h"
#include "match/op_name.h"

namespace msprobe {
namespace {

bool IsIdentifier(std::string_view s) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !s.empty() && letter(s[0]) &&
         std::all_of(s.begin(), s.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::string Quoted(std::string_view s) {
  std::string out;
  AppendPyStrRepr(out, s);
  return out;
}

std::string NumberText(const JsonValue& v) {
  if (v.IsBool()) return v.GetBool() ? "True" : "False";
  if (v.IsDouble() && !std::isfinite(v.GetDouble())) {
    return std::isnan(v.GetDouble()) ? "math.nan" : v.GetDouble() > 0 ? "math.inf" : "-math.inf";
  }
  std::string out;
  AppendPyValue(&out, v);
  return out;
}

/// Arguments as Python text; remembers the first that cannot be written.
class ArgumentText {
 public:
  explicit ArgumentText(CallTensors* tensors) : tensors_(tensors) {}
  const std::string& failed() const { return failed_; }

  // The parser bounds the nesting, and with it this recursion.
  std::string Of(const JsonValue& v, const std::string& key) {
    if (v.IsNull()) return "None";
    if (v.IsArray()) {
      std::string out = "[";
      int i = 0;
      for (const JsonValue& e : v.GetArray()) {
        out += i ? ", " : "";
        out += Of(e, key + "." + std::to_string(i++));
      }
      return out + "]";
    }
    if (!v.IsObject()) return v.IsString() ? Quoted(Text(v)) : NumberText(v);
    const JsonValue* type = Find(v, "type");
    if (!type || !type->IsString()) return Dict(v, key);
    if (IsTensorLeaf(v)) {
      (*tensors_)[key] = &v;
      return "t(" + Quoted(key) + ")";
    }
    return Leaf(v, Text(*type));
  }

 private:
  std::string Dict(const JsonValue& v, const std::string& key) {
    std::string out = "{";
    for (const auto& m : v.GetObject()) {
      out += out.size() > 1 ? ", " : "";
      out += Quoted(Text(m.name)) + ": " + Of(m.value, key + "." + std::string(Text(m.name)));
    }
    return out + "}";
  }

  std::string Leaf(const JsonValue& v, std::string_view type) {
    const JsonValue* value = Find(v, "value");
    if (type == "ellipsis") return "...";
    if (type == "NoneType") return "None";
    if (type == "torch.device" || (type == "str" && value && value->IsString() && IsDevice(Text(*value))))
      return "'cpu'";
    const bool plain = type == "int" || type == "float" || type == "bool" || type == "str";
    if (plain && value && value->IsString()) return Quoted(Text(*value));
    if (plain && value && (value->IsNumber() || value->IsBool())) return NumberText(*value);
    if (type == "slice" && value && value->IsArray()) {
      std::string out;
      for (const JsonValue& e : value->GetArray()) out += (out.empty() ? "" : ", ") + Bound(e);
      return "slice(" + out + ")";
    }
    if (type == "torch.Size" && value && value->IsArray()) {
      std::string out;
      for (const JsonValue& e : value->GetArray()) out += (out.empty() ? "" : ", ") + Bound(e);
      return "torch.Size([" + out + "])";
    }
    for (const JsonValue* name : {value, Find(v, "format")}) {
      if (name && name->IsString() && IsTorchName(Text(*name))) return std::string(Text(*name));
    }
    if (failed_.empty()) failed_ = std::string(type);
    return "None";
  }
  static std::string Bound(const JsonValue& v) { return v.IsNumber() ? NumberText(v) : "None"; }
  static bool IsDevice(std::string_view s) {
    return s == "cuda" || s == "npu" || StartsWith(s, "cuda:") || StartsWith(s, "npu:");
  }

  CallTensors* tensors_;
  std::string failed_;
};

/// The arguments, each as text, named ones as "name=text".
std::vector<std::string> ArgumentsOf(const JsonValue& op, ArgumentText* text) {
  std::vector<std::string> out;
  const JsonValue* args = Find(op, "input_args");
  if (args && args->IsArray()) {
    int i = 0;
    for (const JsonValue& v : args->GetArray()) out.push_back(text->Of(v, "input." + std::to_string(i++)));
  }
  const JsonValue* kwargs = Find(op, "input_kwargs");
  if (kwargs && kwargs->IsObject()) {
    for (const auto& m : kwargs->GetObject()) {
      const std::string name(Text(m.name));
      if (IsIdentifier(name)) out.push_back(name + "=" + text->Of(m.value, "input." + name));
    }
  }
  return out;
}

std::string Joined(const std::vector<std::string>& parts, size_t from) {
  std::string out;
  for (size_t i = from; i < parts.size(); ++i) out += (i > from ? ", " : "") + parts[i];
  return out;
}

Status NoSuchCall(std::string_view name, const std::string& why) {
  return BadInput("no script for " + Shown(name) + ": " + why);
}

/// Modules of torch.nn without parameters or options that matter.
constexpr std::array<std::string_view, 9> kPlainModules{"ReLU",     "GELU",     "SiLU",    "Tanh",      "Sigmoid",
                                                        "Identity", "Softplus", "Flatten", "LogSigmoid"};

StatusOr<std::string> ModuleCall(std::string_view name, std::string_view type, const std::vector<std::string>& args,
                                 const JsonValue& op, ReproCall* call) {
  const std::string x = args.empty() ? "None" : args[0];
  const auto parameter = [&](const char* key) -> std::string {
    const JsonValue* all = Find(op, "parameters");
    const JsonValue* v = all ? Find(*all, key) : nullptr;
    if (!v || !v->IsObject() || !IsTensorLeaf(*v)) return "None";
    const std::string full = std::string("parameters.") + key;
    call->tensors[full] = v;
    return "t(" + Quoted(full) + ")";
  };
  if (type == "Linear") return "F.linear(" + x + ", " + parameter("weight") + ", " + parameter("bias") + ")";
  if (type == "Embedding") return "F.embedding(" + x + ", " + parameter("weight") + ")";
  if (type == "LayerNorm" || EndsWith(type, "RMSNorm")) {
    const std::string weight = parameter("weight");
    if (weight == "None") return NoSuchCall(name, "its weight is not in the dump: dump at level mix or L1");
    const bool rms = type != "LayerNorm";
    call->notes.push_back(rms ? "eps is taken to be 1e-6" : "eps is taken to be 1e-5");
    return rms ? "F.rms_norm(" + x + ", " + weight + ".shape, " + weight + ", 1e-6)"
               : "F.layer_norm(" + x + ", " + weight + ".shape, " + weight + ", " + parameter("bias") + ", 1e-5)";
  }
  if (std::find(kPlainModules.begin(), kPlainModules.end(), type) != kPlainModules.end())
    return "torch.nn." + std::string(type) + "()(" + x + ")";
  return NoSuchCall(name, "a module of class " + Shown(type) +
                              " cannot be built from a dump: dump at level mix or L1, where its functions are ops");
}

}  // namespace

bool IsTorchName(std::string_view text) {
  if (!StartsWith(text, "torch.")) return false;
  return IsIdentifier(text.substr(6));
}

bool IsTensorLeaf(const JsonValue& leaf) {
  const JsonValue *dtype = Find(leaf, "dtype"), *shape = Find(leaf, "shape");
  return dtype && dtype->IsString() && IsTorchName(Text(*dtype)) && shape && shape->IsArray();
}

void CollectTensors(const JsonValue& value, const std::string& key, CallTensors* out) {
  if (value.IsArray()) {
    int i = 0;
    for (const JsonValue& v : value.GetArray()) CollectTensors(v, key + "." + std::to_string(i++), out);
  } else if (value.IsObject() && IsTensorLeaf(value)) {
    (*out)[key] = &value;
  } else if (value.IsObject() && !Find(value, "type")) {
    for (const auto& m : value.GetObject()) CollectTensors(m.value, key + "." + std::string(Text(m.name)), out);
  }
}

StatusOr<ReproCall> CallOf(std::string_view name, const JsonValue& op) {
  if (StartsWith(name, "Distributed.")) return NoSuchCall(name, "a communication needs its ranks");
  ReproCall call;
  ArgumentText text(&call.tensors);
  std::vector<std::string> args = ArgumentsOf(op, &text);
  if (!text.failed().empty())
    return NoSuchCall(name, "an argument of type " + Shown(text.failed()) + " cannot be rebuilt");
  const std::string_view base = ParseOpName(name).base;
  const std::string_view kind = base.substr(0, base.find('.'));
  const std::string api(base.substr(std::min(base.size(), base.rfind('.') + 1)));
  if (!IsIdentifier(api)) return NoSuchCall(name, "its name is no name of a function");
  if (kind == "Module") {
    MSP_ASSIGN_OR_RETURN(call.expression, ModuleCall(name, api, args, op, &call));
  } else if (kind == "Functional") {
    call.expression = "F." + api + "(" + Joined(args, 0) + ")";
  } else if (kind == "Torch") {
    call.expression = "torch_function('" + api + "')(" + Joined(args, 0) + ")";
  } else if (kind == "Tensor" && !args.empty()) {
    // An index of several parts is a tuple, which dumps hold as a list.
    const bool index = (api == "__getitem__" || api == "__setitem__") && args.size() > 1 && StartsWith(args[1], "[");
    if (index) args[1] = "tuple(" + args[1] + ")";
    call.expression = args[0] + "." + api + "(" + Joined(args, 1) + ")";
  } else if (kind == "VF") {
    call.expression = "torch._VF." + api + "(" + Joined(args, 0) + ")";
  } else {
    return NoSuchCall(name, "plain torch has no functions of kind " + Shown(kind));
  }
  return call;
}

}  // namespace msprobe
