// The call of an op as Python text.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "dump/json.h"

namespace msprobe {

/// A tensor of a call: its key in the script and its entry in the dump.
using CallTensors = std::map<std::string, const JsonValue*>;

struct ReproCall {
  std::string expression;          // of t(key), which gives a tensor: "F.linear(t('input.0'), t('input.1'), None)"
  CallTensors tensors;             // by key: "input.0", "parameters.weight"
  std::vector<std::string> notes;  // what the dump does not say and the script assumes
};

/// The forward call of `name` ("Functional.linear.0.forward", "Module.fc.Linear.forward.0") with the arguments in `op`.
/// Text of the dump gets into the script only as quoted text or where it is a plain identifier.
StatusOr<ReproCall> CallOf(std::string_view name, const JsonValue& op);

/// Adds the tensors below `value`, keys "output.0", "output.1.0".
void CollectTensors(const JsonValue& value, const std::string& key, CallTensors* out);

/// Whether `leaf` describes a tensor: it has a dtype and a shape.
bool IsTensorLeaf(const JsonValue& leaf);
/// "torch.float32" when it is no more than a name of torch.
bool IsTorchName(std::string_view text);

}  // namespace msprobe
