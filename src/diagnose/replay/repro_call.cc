#include "diagnose/replay/repro_call.h"

#include "base/text.h"

namespace msprobe {
namespace {

using Kind = CallValue::Kind;

std::string Repr(std::string_view s) {
  std::string out;
  AppendPyStrRepr(out, s);
  return out;
}

std::string TextOf(const CallValue& v);

std::string Joined(const std::vector<CallValue>& values) {
  std::string out;
  for (const CallValue& v : values) out += (out.empty() ? "" : ", ") + TextOf(v);
  return out;
}

std::string TextOf(const CallValue& v) {
  switch (v.kind) {
    case Kind::kNone: return "None";
    case Kind::kBool:
    case Kind::kNumber:
    case Kind::kTorchName: return v.text;
    case Kind::kText: return Repr(v.text);
    case Kind::kList: return "[" + Joined(v.items) + "]";
    case Kind::kTuple: return "tuple([" + Joined(v.items) + "])";
    case Kind::kDict: {
      std::string out = "{";
      for (size_t i = 0; i < v.items.size(); ++i) out += (i ? ", " : "") + Repr(v.keys[i]) + ": " + TextOf(v.items[i]);
      return out + "}";
    }
    case Kind::kTensor: return "t(" + Repr(v.text) + ")";
    case Kind::kSlice: return "slice(" + Joined(v.items) + ")";
    case Kind::kSize: return "torch.Size([" + Joined(v.items) + "])";
    case Kind::kEllipsis: return "...";
    case Kind::kDevice: return "'cpu'";
  }
  return "None";
}

}  // namespace

std::string PythonText(const OpCall& call) {
  std::vector<std::string> args;
  for (const CallValue& v : call.args) args.push_back(TextOf(v));
  for (const auto& [name, v] : call.kwargs) args.push_back(name + "=" + TextOf(v));
  const auto joined = [&](size_t from) {
    std::string out;
    for (size_t i = from; i < args.size(); ++i) out += (i > from ? ", " : "") + args[i];
    return out + ")";
  };
  switch (call.owner) {
    case CallOwner::kFunctional: return "F." + call.function + "(" + joined(0);
    case CallOwner::kVF: return "torch._VF." + call.function + "(" + joined(0);
    case CallOwner::kTensor: return args[0] + "." + call.function + "(" + joined(1);
    case CallOwner::kTorch: break;
  }
  return "torch_function('" + call.function + "')(" + joined(0);
}

}  // namespace msprobe
