#include "compare/pair/divided_step.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "compare/values/item_views.h"
#include "ops/collective.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

bool IsOutsideOfModules(const OpList& ops, const ModuleTree& tree, size_t op) {
  const std::string_view name = ops.NameAt(op);
  return !IsModuleName(name) && !IsModuleName(tree.ParentOf(name));
}

/// The same, and what hooks do within the backward pass of a module.
bool IsOutsideOrInHook(const OpList& ops, const ModuleTree& tree, size_t op) {
  const bool in_hook = ParseOpName(tree.ParentOf(ops.NameAt(op))).direction == OpDirection::kBackward;
  return IsOutsideOfModules(ops, tree, op) || (in_hook && !IsModuleName(ops.NameAt(op)));
}

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
  bool IsOutside(size_t op) const { return IsOutsideOfModules(ops_, tree_, op); }

  const OpList& ops_;
  const ModuleTree& tree_;
  size_t begin_ = 0;  // behind the backward pass
  bool scatters_ = false, gathers_ = false;
};

/// Flat tensors of floats that no module communicates.
class Buckets {
 public:
  Buckets(const DumpFile& dump, const ModuleTree& tree)
      : dump_(dump), tree_(tree), items_(dump, CompareMode::kStructure) {}

  Status Read() {
    for (size_t i = 0; i < dump_.ops().size(); ++i) {
      if (!IsCommunication(dump_.ops().NameAt(i)) || !IsOutsideOrInHook(dump_.ops(), tree_, i)) continue;
      MSP_ASSIGN_OR_RETURN(const double size, SizeOf(i));
      if (size >= kLeast) sizes_.push_back(size), sum_ += size;
    }
    std::ranges::sort(sizes_);
    return OkStatus();
  }
  bool AreOthersThan(const Buckets& other) const {
    // Each is padded, so that ranks can divide it.
    return !sizes_.empty() && !other.sizes_.empty() && sizes_ != other.sizes_ &&
           std::fabs(sum_ - other.sum_) <= kPadding * std::max(sum_, other.sum_);
  }
  /// Whether an op outside of modules works on one of them.
  StatusOr<bool> Has(size_t op) {
    if (!IsOutsideOrInHook(dump_.ops(), tree_, op)) return false;
    MSP_ASSIGN_OR_RETURN(const double size, SizeOf(op));
    return std::ranges::binary_search(sizes_, size);
  }

 private:
  static constexpr double kLeast = 64;      // elements; scalars and counts are no gradients
  static constexpr double kPadding = 0.05;  // of all elements

  /// Elements of the largest tensor, if all are flat; 0 otherwise. A shard stands beside its bucket.
  StatusOr<double> SizeOf(size_t op) {
    MSP_RETURN_IF_ERROR(items_.Read(op));
    double size = 0;
    for (const ItemView& item : items_.items()) {
      if (!item.tensor) continue;
      if (item.shape.find(',') != std::string::npos || item.dtype.find("loat") == std::string_view::npos) return 0.0;
      size = std::max(size, ElementsOfShape(item.shape));
    }
    return size;
  }

  const DumpFile& dump_;
  const ModuleTree& tree_;
  ItemViews items_;
  std::vector<double> sizes_;
  double sum_ = 0;
};

/// Takes the partner of a target op out of the plan.
void LeaveOut(size_t op, MatchPlan* plan) {
  if (plan->left_out.empty()) plan->left_out.assign(plan->golden_of.size(), false);
  plan->matched -= plan->golden_of[op] != kNoOp;
  plan->golden_of[op] = kNoOp;
  plan->left_out[op] = true;
}

}  // namespace

StatusOr<size_t> LeaveOutBuckets(const DumpPair& pair, const ModuleTree& target, const ModuleTree& golden,
                                 MatchPlan* plan) {
  if (target.empty() || golden.empty()) return size_t{0};
  Buckets ours(*pair.target, target), theirs(*pair.golden, golden);
  MSP_RETURN_IF_ERROR(ours.Read());
  MSP_RETURN_IF_ERROR(theirs.Read());
  if (!ours.AreOthersThan(theirs)) return size_t{0};
  size_t count = 0;
  for (size_t i = 0; i < plan->golden_of.size(); ++i) {
    const uint32_t partner = plan->golden_of[i];
    MSP_ASSIGN_OR_RETURN(bool has, ours.Has(i));
    if (!has && partner != kNoOp) {
      MSP_ASSIGN_OR_RETURN(has, theirs.Has(partner));
    }
    if (!has) continue;
    LeaveOut(i, plan);
    ++count;
  }
  BigArray<uint32_t> left;
  for (const uint32_t op : plan->golden_only) {
    MSP_ASSIGN_OR_RETURN(const bool has, theirs.Has(op));
    if (!has) left.push_back(op);
  }
  plan->golden_only = std::move(left);
  return count;
}

StatusOr<size_t> LeaveOutDividedStep(const DumpPair& pair, const ModuleTree& target, const ModuleTree& golden,
                                     MatchPlan* plan) {
  if (target.empty() || golden.empty()) return size_t{0};  // nothing tells what modules call
  const StepOf ours(*pair.target, target), theirs(*pair.golden, golden);
  if (!ours.IsDivided() && !theirs.IsDivided()) return size_t{0};
  if (ours.IsDivided() && theirs.IsDivided()) {
    Buckets left(*pair.target, target), right(*pair.golden, golden);
    MSP_RETURN_IF_ERROR(left.Read());
    MSP_RETURN_IF_ERROR(right.Read());
    if (!left.AreOthersThan(right)) return size_t{0};
  }
  size_t count = 0;
  for (size_t i = 0; i < plan->golden_of.size(); ++i) {
    const uint32_t partner = plan->golden_of[i];
    if (!ours.Has(i) && (partner == kNoOp || !theirs.Has(partner))) continue;
    LeaveOut(i, plan);
    ++count;
  }
  const auto left =
      std::remove_if(plan->golden_only.begin(), plan->golden_only.end(), [&](uint32_t op) { return theirs.Has(op); });
  plan->golden_only.resize(static_cast<size_t>(left - plan->golden_only.begin()));
  return count;
}

}  // namespace msprobe
