// The leaves of an op, in the order in which tables and graphs list them.
#pragma once

#include <string>
#include <vector>

#include "json/parser.h"

namespace msprobe {

enum class ItemState : uint8_t { kInput, kKwarg, kOutput, kParameter, kParameterGrad, kDebug };

/// One leaf: where it stands in its op and the JSON object (or null) that describes it.
struct Item {
  ItemState state = ItemState::kInput;
  std::string suffix;               // ".input.0", ".input.dim", ".output.0.1", ".parameters.weight", ".weight" (grads)
  const JsonValue* leaf = nullptr;  // object with "type" (or class_type), or null
};

/// Appends the items of `op` (the object under the op's name) to `items`: input_args, input_kwargs, input, output,
/// parameters, then for "parameters_grad" ops one item per parameter. Nested lists and objects extend the suffix by
/// index or key. Empty lists and objects give nothing. Leaves deeper than kMaxJsonDepth cannot occur (the parser
/// refuses them).
void FlattenOp(std::string_view op_name, const JsonValue& op, std::vector<Item>* items);

}  // namespace msprobe
