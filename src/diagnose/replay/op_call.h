// The call of an op as a dump describes it: function, arguments, tensors. A script (repro_call.h) and a replay
// (replay_request.h) are made of it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/message.h"
#include "dump/reader.h"
#include "json/value.h"

namespace msprobe {

/// A tensor of a call: its key ("input.0", "parameters.weight", "gradient.0", "output.1") and its entry in the dump.
using CallTensors = std::vector<std::pair<std::string, const JsonValue*>>;

/// An argument. Text of the dump is in it only as text, or where it is no more than a name of torch.
struct CallValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,       // text: "True", "False"
    kNumber,     // text: as Python writes it, "math.nan" and "math.inf" included
    kText,       // text
    kList,       // items
    kTuple,      // items
    kDict,       // items, keys
    kTensor,     // text: key of the tensor
    kTorchName,  // text: "torch.float16", a dtype, layout or memory format
    kSlice,      // items: numbers or none
    kSize,       // items: numbers
    kEllipsis,
    kDevice,  // of an accelerator, which a replay has no need of
  };
  Kind kind = Kind::kNone;
  std::string text;
  std::vector<CallValue> items;
  std::vector<std::string> keys;
};

/// Where torch has the function.
enum class CallOwner : uint8_t { kFunctional, kTorch, kTensor, kVF };

struct OpCall {
  CallOwner owner = CallOwner::kTorch;
  std::string function;  // a plain identifier; of kTensor a method of the first argument
  std::vector<CallValue> args;
  std::vector<std::pair<std::string, CallValue>> kwargs;
  CallTensors tensors;         // of the arguments
  std::vector<Message> notes;  // what the dump does not say and the call assumes
  bool module = false;         // the forward of a module
  bool in_place = false;       // writes to its first argument
};

/// The forward call of `name` ("Functional.linear.0.forward", "Module.fc.Linear.forward.0") with the arguments in `op`.
/// kBadInput, one line without a name, for what plain torch has no function for.
StatusOr<OpCall> CallOf(std::string_view name, const JsonValue& op);

/// An op of a dump as a call. Not to be moved: the call holds pointers into the documents.
struct OpSide {
  OpSide() = default;
  OpSide(const OpSide&) = delete;
  OpSide& operator=(const OpSide&) = delete;

  JsonDoc doc, forward;  // the op; of a backward op also its forward
  OpCall call;
  CallTensors gradients;  // of a backward op: what comes in
  CallTensors outputs;
  bool backward = false;
};

/// Reads op `op` of `dump`. kBadInput, one line, when it cannot be called again.
Status LoadOpSide(const DumpFile& dump, size_t op, OpSide* out);

/// Adds the tensors below `value`, keys "output.0", "output.1.0".
void CollectTensors(const JsonValue& value, const std::string& key, CallTensors* out);

/// Whether `leaf` describes a tensor: it has a dtype and a shape.
bool IsTensorLeaf(const JsonValue& leaf);
/// "torch.float32" when it is no more than a name of torch.
bool IsTorchName(std::string_view text);

}  // namespace msprobe
