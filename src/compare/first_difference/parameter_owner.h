// The ops of an optimizer's step, and to which parameter each belongs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "compare/pair/dump_pair.h"
#include "compare/pair/module_tree.h"
#include "compare/values/item_view.h"

namespace msprobe {

/// Behind the last op of a backward pass; all ops where there is none.
size_t BehindBackward(const OpList& ops);

/// "lerp" of "Tensor.lerp_.3.forward" and of "Torch._foreach_lerp_.0.forward".
std::string_view StepOf(std::string_view name);

/// Whether a sum takes its second part off the first, as a step does: its alpha is negative.
bool Descends(std::span<const ItemView> items);

/// "blocks.0.mlp.up.weight" for an op behind the backward pass that no module calls; "" where the dump does not show
/// it: without modules, without a loop over the parameters, or where several parameters look the same.
StatusOr<std::string> ParameterOwner(const DumpFile& dump, size_t op);

/// What an op changes in place behind the backward pass, outside of all modules: a parameter, or what an optimizer
/// keeps of it.
bool IsState(const OpList& ops, const ModuleTree& tree, size_t op);

/// Whether an op behind the backward pass changes a tensor that looks like the item, as a step does to a weight.
StatusOr<bool> IsStepped(const DumpFile& dump, const ItemView& item);

/// The parameters of all modules, and which of them the step behind the backward pass changes, as far as their values
/// tell them; several that look the same are one entry.
struct TrainedParameter {
  std::string names;  // "blocks.0.norm.weight or blocks.1.norm.weight"
  size_t size = 0;    // how many parameters they are
  size_t count = 0;   // ops that change one of them
  size_t op = 0;      // that takes the last one in
  /// Ops that take a part of one of them off: the weight times a number below 1, or added to its gradient.
  size_t decays = 0;
  size_t decay_op = 0;   // the first of them
  double decay = 0;      // how much it takes off
  bool telling = false;  // no zeros, as what an optimizer keeps starts with
};
StatusOr<std::vector<TrainedParameter>> TrainedParameters(const DumpFile& dump);

/// Those of the parameters of all modules, before the step.
StatusOr<std::unordered_set<std::string>> ParameterPrints(const DumpFile& dump);

/// A parameter of both runs that `more` changes and `less` does not; none where the steps have little in common.
std::optional<TrainedParameter> LeftOut(const std::vector<TrainedParameter>& more,
                                        const std::vector<TrainedParameter>& less);

}  // namespace msprobe
