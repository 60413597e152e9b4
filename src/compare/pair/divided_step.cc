#include "compare/pair/divided_step.h"

#include <algorithm>
#include <string_view>

#include "ops/collective.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

/// The calls of one run that reduce gradients and give parameters back, as far as no module makes them.
class StepOf {
 public:
  StepOf(const DumpFile& dump, const ModuleTree& tree) : ops_(dump.ops()), tree_(tree) {
    for (size_t i = 0; i < ops_.size(); ++i) {
      const std::string_view name = ops_.NameAt(i);
      const OpDirection direction = ParseOpName(name).direction;
      if (direction == OpDirection::kBackward || direction == OpDirection::kParameterGrad) begin_ = i + 1;
      if (!IsCommunication(name) || !IsOutside(i)) continue;
      const std::string_view call = CommFunction(name);
      scatters_ = scatters_ || call.starts_with("reduce_scatter") || call.starts_with("_reduce_scatter");
      gathers_ = gathers_ || call.starts_with("all_gather") || call.starts_with("_all_gather");
    }
  }

  bool IsDivided() const { return scatters_ && gathers_; }
  /// Whether an op is of the step, or a communication between the backward passes of modules, which starts it.
  bool Has(size_t op) const { return (op >= begin_ || IsCommunication(ops_.NameAt(op))) && IsOutside(op); }

 private:
  bool IsOutside(size_t op) const {
    const std::string_view name = ops_.NameAt(op);
    return !IsModuleName(name) && !IsModuleName(tree_.ParentOf(name));
  }

  const OpList& ops_;
  const ModuleTree& tree_;
  size_t begin_ = 0;  // behind the backward pass
  bool scatters_ = false, gathers_ = false;
};

}  // namespace

size_t LeaveOutDividedStep(const DumpPair& pair, const ModuleTree& target, const ModuleTree& golden, MatchPlan* plan) {
  if (target.empty() || golden.empty()) return 0;  // nothing tells what modules call
  const StepOf ours(*pair.target, target), theirs(*pair.golden, golden);
  if (ours.IsDivided() == theirs.IsDivided()) return 0;
  size_t count = 0;
  plan->left_out.assign(plan->golden_of.size(), false);
  for (size_t i = 0; i < plan->golden_of.size(); ++i) {
    uint32_t& partner = plan->golden_of[i];
    if (!ours.Has(i) && (partner == kNoOp || !theirs.Has(partner))) continue;
    plan->matched -= partner != kNoOp;
    partner = kNoOp;
    plan->left_out[i] = true;
    ++count;
  }
  const auto left =
      std::remove_if(plan->golden_only.begin(), plan->golden_only.end(), [&](uint32_t op) { return theirs.Has(op); });
  plan->golden_only.resize(static_cast<size_t>(left - plan->golden_only.begin()));
  return count;
}

}  // namespace msprobe
