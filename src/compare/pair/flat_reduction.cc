#include "compare/pair/flat_reduction.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "compare/values/item_views.h"
#include "ops/collective.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

constexpr double kPadding = 0.05;     // of all elements: a bucket is padded, so that ranks can divide it
constexpr double kLeastElements = 2;  // losses and counts are no gradients

bool IsOfFloats(const ItemView& item) { return item.tensor && item.dtype.find("loat") != std::string_view::npos; }
bool IsFlat(const ItemView& item) { return item.shape.find(',') == std::string::npos; }

/// The reductions of one run that no module makes.
class Reductions {
 public:
  Reductions(const DumpFile& dump, const ModuleTree& tree)
      : dump_(dump), tree_(tree), items_(dump, CompareMode::kStatistics) {}

  Status Read() {
    const OpList& ops = dump_.ops();
    for (size_t i = 0; i < ops.size(); ++i) {
      const std::string_view name = ops.NameAt(i);
      if (IsModuleName(name) || IsModuleName(tree_.ParentOf(name))) continue;
      const bool reduces = CommFunction(name).starts_with("all_reduce");
      if (!reduces && (results_.empty() || !ChangesArguments(ApiOf(name)))) continue;
      MSP_RETURN_IF_ERROR(items_.Read(i));
      reduces ? Add(i) : Follow(i);
    }
    return OkStatus();
  }
  /// Whether one call of this run holds what several of the other do.
  bool HoldMoreThan(const Reductions& other) const {
    const bool same = std::fabs(sum_ - other.sum_) <= kPadding * std::max(sum_, other.sum_);
    return same && calls_ > 0 && calls_ < other.calls_ && largest_flat_ > other.largest_;
  }
  bool Has(size_t op) const { return ops_.contains(op); }

 private:
  void Add(size_t op) {
    double size = 0;
    bool flat = true;
    for (const ItemView& item : items_.items()) {
      if (!IsOfFloats(item) || ElementsOfShape(item.shape) < kLeastElements) continue;
      size = std::max(size, ElementsOfShape(item.shape));
      flat = flat && IsFlat(item);
    }
    if (size == 0) return;
    ++calls_;
    sum_ += size;
    largest_ = std::max(largest_, size);
    if (flat) largest_flat_ = std::max(largest_flat_, size);
    Take(op);
  }
  /// What is multiplied or divided in place by a number.
  void Follow(size_t op) {
    bool scales = false;
    size_t tensors = 0;
    for (const ItemView& item : items_.items()) {
      if (!item.tensor || item.state != ItemState::kInput) continue;
      ++tensors;
      scales = scales || results_.contains(PrintOf(item));
    }
    if (scales && tensors == 1) Take(op);
  }
  void Take(size_t op) {
    ops_.insert(op);
    for (const ItemView& item : items_.items()) {
      if (IsOfFloats(item) && item.state == ItemState::kOutput) results_.insert(PrintOf(item));
    }
  }

  const DumpFile& dump_;
  const ModuleTree& tree_;
  ItemViews items_;
  std::unordered_set<size_t> ops_;
  std::unordered_set<std::string> results_;
  size_t calls_ = 0;
  double sum_ = 0, largest_ = 0, largest_flat_ = 0;
};

}  // namespace

StatusOr<size_t> LeaveOutFlatReductions(const DumpPair& pair, const ModuleTree& target, const ModuleTree& golden,
                                        MatchPlan* plan) {
  if (target.empty() || golden.empty()) return size_t{0};  // nothing tells what modules call
  Reductions ours(*pair.target, target), theirs(*pair.golden, golden);
  MSP_RETURN_IF_ERROR(ours.Read());
  MSP_RETURN_IF_ERROR(theirs.Read());
  if (!ours.HoldMoreThan(theirs) && !theirs.HoldMoreThan(ours)) return size_t{0};
  size_t count = 0;
  if (plan->left_out.empty()) plan->left_out.assign(plan->golden_of.size(), false);
  BigArray<uint32_t> left;
  for (const uint32_t op : plan->golden_only) {
    if (!theirs.Has(op)) left.push_back(op);
  }
  for (size_t i = 0; i < plan->golden_of.size(); ++i) {
    const uint32_t partner = plan->golden_of[i];
    if (!ours.Has(i) && (partner == kNoOp || !theirs.Has(partner))) continue;
    plan->matched -= partner != kNoOp;
    plan->golden_of[i] = kNoOp;
    plan->left_out[i] = true;
    ++count;
  }
  plan->golden_only = std::move(left);
  return count;
}

}  // namespace msprobe
