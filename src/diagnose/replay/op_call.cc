#include "diagnose/replay/op_call.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/message.h"
#include "base/text.h"
#include "compare/values/stat_value.h"
#include "json/members.h"
#include "ops/collective.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

using Kind = CallValue::Kind;

bool IsIdentifier(std::string_view s) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !s.empty() && letter(s[0]) &&
         std::all_of(s.begin(), s.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

CallValue Plain(Kind kind, std::string text = {}) {
  CallValue out;
  out.kind = kind;
  out.text = std::move(text);
  return out;
}

CallValue Number(const JsonValue& v) {
  if (v.IsBool()) return Plain(Kind::kBool, v.Bool() ? "True" : "False");
  if (v.IsDouble() && !std::isfinite(v.Number())) {
    return Plain(Kind::kNumber, std::isnan(v.Number()) ? "math.nan" : v.Number() > 0 ? "math.inf" : "-math.inf");
  }
  CallValue out = Plain(Kind::kNumber);
  AppendPyValue(&out.text, v);
  return out;
}

/// Reads arguments; remembers the first that cannot be rebuilt.
class ArgumentReader {
 public:
  explicit ArgumentReader(CallTensors* tensors) : tensors_(tensors) {}
  const std::string& failed() const { return failed_; }

  // The parser bounds the nesting, and with it this recursion.
  CallValue Of(const JsonValue& v, const std::string& key) {
    if (v.IsNull()) return {};
    if (v.IsArray()) {
      CallValue out = Plain(Kind::kList);
      int i = 0;
      for (const JsonValue& e : v.Items()) out.items.push_back(Of(e, key + "." + std::to_string(i++)));
      return out;
    }
    if (!v.IsObject()) return v.IsString() ? Plain(Kind::kText, std::string(v.Text())) : Number(v);
    const JsonValue* type = v.Find("type");
    if (!type || !type->IsString()) return Dict(v, key);
    if (IsTensorLeaf(v)) {
      tensors_->emplace_back(key, &v);
      return Plain(Kind::kTensor, key);
    }
    return Leaf(v, type->Text());
  }

 private:
  CallValue Dict(const JsonValue& v, const std::string& key) {
    CallValue out = Plain(Kind::kDict);
    for (const auto& m : v.Members()) {
      out.keys.emplace_back(m.name);
      out.items.push_back(Of(m.value, key + "." + out.keys.back()));
    }
    return out;
  }

  CallValue Leaf(const JsonValue& v, std::string_view type) {
    const JsonValue* value = v.Find("value");
    if (type == "ellipsis") return Plain(Kind::kEllipsis);
    if (type == "NoneType") return {};
    if (type == "torch.device" || (type == "str" && value && value->IsString() && IsDevice(value->Text())))
      return Plain(Kind::kDevice);
    const bool plain = type == "int" || type == "float" || type == "bool" || type == "str";
    if (plain && value && value->IsString()) return Plain(Kind::kText, std::string(value->Text()));
    if (plain && value && (value->IsNumber() || value->IsBool())) return Number(*value);
    if ((type == "slice" || type == "torch.Size") && value && value->IsArray()) {
      CallValue out = Plain(type == "slice" ? Kind::kSlice : Kind::kSize);
      for (const JsonValue& e : value->Items()) out.items.push_back(e.IsNumber() ? Number(e) : CallValue());
      return out;
    }
    for (const JsonValue* name : {value, v.Find("format")}) {
      if (name && name->IsString() && IsTorchName(name->Text()))
        return Plain(Kind::kTorchName, std::string(name->Text()));
    }
    if (failed_.empty()) failed_ = std::string(type);
    return {};
  }
  static bool IsDevice(std::string_view s) {
    return s == "cuda" || s == "npu" || StartsWith(s, "cuda:") || StartsWith(s, "npu:");
  }

  CallTensors* tensors_;
  std::string failed_;
};

void ReadArguments(const JsonValue& op, ArgumentReader* reader, OpCall* call) {
  const JsonValue* args = op.Find("input_args");
  if (args && args->IsArray()) {
    int i = 0;
    for (const JsonValue& v : args->Items()) call->args.push_back(reader->Of(v, "input." + std::to_string(i++)));
  }
  const JsonValue* kwargs = op.Find("input_kwargs");
  if (!kwargs || !kwargs->IsObject()) return;
  for (const auto& m : kwargs->Members()) {
    const std::string name(m.name);
    if (IsIdentifier(name)) call->kwargs.emplace_back(name, reader->Of(m.value, "input." + name));
  }
}

/// Classes of torch.nn without parameters or options that matter, and the functions that they call.
struct PlainModule {
  std::string_view type;
  CallOwner owner;
  std::string_view function;
};
constexpr std::array kPlainModules{
    PlainModule{"ReLU", CallOwner::kFunctional, "relu"},
    PlainModule{"GELU", CallOwner::kFunctional, "gelu"},
    PlainModule{"SiLU", CallOwner::kFunctional, "silu"},
    PlainModule{"Tanh", CallOwner::kTorch, "tanh"},
    PlainModule{"Sigmoid", CallOwner::kTorch, "sigmoid"},
    PlainModule{"Identity", CallOwner::kTorch, "clone"},
    PlainModule{"Softplus", CallOwner::kFunctional, "softplus"},
    PlainModule{"LogSigmoid", CallOwner::kFunctional, "logsigmoid"},
    PlainModule{"Flatten", CallOwner::kTorch, "flatten"},
};

class ModuleCall {
 public:
  ModuleCall(const JsonValue& op, OpCall* call) : op_(op), call_(call) {
    call_->module = true;
    call_->kwargs.clear();
    call_->args.resize(1);  // what the module is called with
  }

  Status Fill(std::string_view type) {
    call_->owner = CallOwner::kFunctional;
    if (type == "Linear") {
      call_->function = "linear";
      call_->args.push_back(Parameter("weight"));
      call_->args.push_back(Parameter("bias"));
      return OkStatus();
    }
    if (type == "Embedding") {
      call_->function = "embedding";
      call_->args.push_back(Parameter("weight"));
      return OkStatus();
    }
    if (type == "LayerNorm" || EndsWith(type, "RMSNorm")) return Norm(type != "LayerNorm");
    for (const PlainModule& m : kPlainModules) {
      if (m.type != type) continue;
      call_->owner = m.owner;
      call_->function = m.function;
      if (type == "Flatten") call_->args.push_back(Plain(Kind::kNumber, "1"));
      return OkStatus();
    }
    return BadInput(
        Msg("a module of class {} cannot be built from a dump: dump at level mix or L1, where its functions are ops",
            Shown(type)));
  }

 private:
  CallValue Parameter(const char* name) {
    const JsonValue* all = op_.Find("parameters");
    const JsonValue* v = all ? all->Find(name) : nullptr;
    if (!v || !v->IsObject() || !IsTensorLeaf(*v)) return {};
    const std::string key = std::string("parameters.") + name;
    call_->tensors.emplace_back(key, v);
    return Plain(Kind::kTensor, key);
  }

  Status Norm(bool rms) {
    const CallValue weight = Parameter("weight");
    if (weight.kind == Kind::kNone) return BadInput(Msg("its weight is not in the dump: dump at level mix or L1"));
    CallValue shape = Plain(Kind::kList);
    for (const JsonValue& v : call_->tensors.back().second->Find("shape")->Items())
      shape.items.push_back(v.IsInt() ? Number(v) : CallValue());
    call_->function = rms ? "rms_norm" : "layer_norm";
    call_->args.push_back(std::move(shape));
    call_->args.push_back(weight);
    if (!rms) call_->args.push_back(Parameter("bias"));
    call_->args.push_back(Plain(Kind::kNumber, rms ? "1e-06" : "1e-05"));
    call_->notes.push_back(rms ? Msg("eps is taken to be 1e-6") : Msg("eps is taken to be 1e-5"));
    return OkStatus();
  }

  const JsonValue& op_;
  OpCall* call_;
};

std::string ForwardName(const NameParts& op) {
  const std::string base(op.base), number(op.number);
  return op.number_last ? base + ".forward." + number : base + "." + number + ".forward";
}

}  // namespace

bool IsTorchName(std::string_view text) {
  if (!StartsWith(text, "torch.")) return false;
  return IsIdentifier(text.substr(6));
}

bool IsTensorLeaf(const JsonValue& leaf) {
  const JsonValue *dtype = leaf.Find("dtype"), *shape = leaf.Find("shape");
  return dtype && dtype->IsString() && IsTorchName(dtype->Text()) && shape && shape->IsArray();
}

void CollectTensors(const JsonValue& value, const std::string& key, CallTensors* out) {
  if (value.IsArray()) {
    int i = 0;
    for (const JsonValue& v : value.Items()) CollectTensors(v, key + "." + std::to_string(i++), out);
  } else if (value.IsObject() && IsTensorLeaf(value)) {
    out->emplace_back(key, &value);
  } else if (value.IsObject() && !value.Find("type")) {
    for (const auto& m : value.Members()) CollectTensors(m.value, key + "." + std::string(m.name), out);
  }
}

StatusOr<OpCall> CallOf(std::string_view name, const JsonValue& op) {
  if (IsCommunication(name)) return BadInput(Msg("a communication needs its ranks"));
  OpCall call;
  ArgumentReader reader(&call.tensors);
  ReadArguments(op, &reader, &call);
  if (!reader.failed().empty())
    return BadInput(Msg("an argument of type {} cannot be rebuilt", Shown(reader.failed())));
  const std::string_view base = ParseOpName(name).base;
  const std::string_view kind = base.substr(0, base.find('.'));
  const std::string_view api = base.substr(std::min(base.size(), base.rfind('.') + 1));
  if (!IsIdentifier(api)) return BadInput(Msg("its name is not a name of a function"));
  call.function = api;
  call.in_place = ChangesArguments(api);
  if (kind == "Module") {
    MSP_RETURN_IF_ERROR(ModuleCall(op, &call).Fill(api));
  } else if (kind == "Functional") {
    call.owner = CallOwner::kFunctional;
  } else if (kind == "Torch") {
    call.owner = CallOwner::kTorch;
  } else if (kind == "VF") {
    call.owner = CallOwner::kVF;
  } else if (kind == "Tensor" && !call.args.empty()) {
    call.owner = CallOwner::kTensor;
    // An index of several parts is a tuple, which dumps hold as a list.
    const bool index = (api == "__getitem__" || api == "__setitem__") && call.args.size() > 1;
    if (index && call.args[1].kind == Kind::kList) call.args[1].kind = Kind::kTuple;
  } else {
    return BadInput(Msg("plain torch has no functions of kind {}", Shown(kind)));
  }
  return call;
}

Status LoadOpSide(const DumpFile& dump, size_t op, OpSide* out) {
  MSP_RETURN_IF_ERROR(dump.ParseOp(op, &out->doc));
  const std::string_view name = dump.ops()[op].name;
  const NameParts parsed = ParseOpName(name);
  if (const JsonValue* v = out->doc.Find("output")) CollectTensors(*v, "output", &out->outputs);
  if (parsed.direction == OpDirection::kForward) {
    MSP_ASSIGN_OR_RETURN(out->call, CallOf(name, out->doc));
    return OkStatus();
  }
  const std::string forward = ForwardName(parsed);
  const auto index = dump.FindOp(forward);
  if (parsed.direction != OpDirection::kBackward || !index)
    return BadInput(Msg("the dump has no {}, whose arguments it needs", OneLine(forward)));
  MSP_RETURN_IF_ERROR(dump.ParseOp(*index, &out->forward));
  MSP_ASSIGN_OR_RETURN(out->call, CallOf(forward, out->forward));
  out->backward = true;
  if (const JsonValue* v = out->doc.Find("input")) CollectTensors(*v, "gradient", &out->gradients);
  return OkStatus();
}

}  // namespace msprobe
