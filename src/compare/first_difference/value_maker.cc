#include "compare/first_difference/value_maker.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "base/page_trim.h"
#include "base/text.h"
#include "compare/pair/op_at.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

using Kind = FirstDifference::Kind;

constexpr size_t kMostLookedAt = 20000;  // ops in front of the difference
constexpr size_t kMostAround = 64;       // around infinities: they are put in where they are used

/// Equal for tensors that the dump shows no difference between. "" for what says too little to know it again: single
/// numbers, and tensors of one value.
std::string LooksOf(const ItemView& item) {
  if (!StartsWith(item.shape, "[") || item.shape == "[]" || item.stats[kMax].IsNone()) return {};
  std::string most, least, out = item.shape;
  item.stats[kMax].AppendText(&most);
  item.stats[kMin].AppendText(&least);
  if (most == least) return {};
  out.append(" ").append(item.dtype);
  for (const StatValue& stat : item.stats) stat.AppendText(&(out += ' '));
  return out;
}

/// Items of one op of a dump.
class OpItems {
 public:
  OpItems(const DumpFile& dump, CompareMode mode) : dump_(dump), mode_(mode) {}

  Status Read(size_t op) {
    count_ = 0;
    MSP_RETURN_IF_ERROR(dump_.ParseOp(op, &doc_));
    DescribeOp(dump_.ops().NameAt(op), doc_, mode_, &scratch_, &items_, &count_);
    return OkStatus();
  }
  std::span<const ItemView> items() const { return {items_.data(), count_}; }
  bool Gives(const std::string& looks) const {
    return std::ranges::any_of(
        items(), [&](const ItemView& item) { return item.state == ItemState::kOutput && LooksOf(item) == looks; });
  }

 private:
  const DumpFile& dump_;
  const CompareMode mode_;
  JsonDoc doc_;
  std::vector<Item> scratch_;
  std::vector<ItemView> items_;
  size_t count_ = 0;
};

class Maker {
 public:
  Maker(const DumpPair& pair, const MatchPlan& plan, const ModuleTree& tree, FirstDifference* difference)
      : pair_(pair), plan_(plan), tree_(tree), out_(difference) {}

  /// An op that the target has more.
  StatusOr<bool> FindExtra(const std::string& looks) {
    OpItems items(*pair_.target, pair_.options.mode);
    for (size_t i = out_->op, seen = 0; i-- > 0 && seen < kMostLookedAt; ++seen) {
      if (i % kStepsBetweenTrims == 0) TrimMaps();
      if (!IsForward(pair_.target->ops().NameAt(i)) || !IsOwn(i)) continue;
      MSP_RETURN_IF_ERROR(items.Read(i));
      if (!items.Gives(looks)) continue;
      out_->kind = Kind::kExtraOp;
      out_->op = i;
      out_->golden_op = plan_.golden_of[i];
      return true;
    }
    return false;
  }

  /// One that it lacks.
  StatusOr<bool> FindMissing(const std::string& looks) {
    OpItems items(*pair_.golden, pair_.options.mode);
    size_t seen = 0;
    const auto end = std::ranges::lower_bound(plan_.golden_only, out_->golden_op);
    for (auto it = end; it != plan_.golden_only.begin() && seen < kMostLookedAt; ++seen) {
      const uint32_t op = *--it;
      if (!IsForward(pair_.golden->ops().NameAt(op)) || OnlyMovesOrCasts(pair_.golden->ops().NameAt(op))) continue;
      MSP_RETURN_IF_ERROR(items.Read(op));
      if (!items.Gives(looks)) continue;
      out_->kind = Kind::kMissingOp;
      out_->golden_op = op;
      return true;
    }
    return false;
  }

  /// The op whose result the infinities are in.
  Status FindMask(const std::string& looks) {
    OpItems items(*pair_.target, pair_.options.mode);
    const std::string_view module = tree_.ParentOf(pair_.target->ops().NameAt(out_->op));
    for (size_t i = out_->op, seen = 0; i-- > 0 && seen < kMostAround; ++seen) {
      const std::string_view name = pair_.target->ops().NameAt(i);
      if (IsModuleName(name) || tree_.ParentOf(name) != module || plan_.golden_of[i] == kNoOp) continue;
      MSP_RETURN_IF_ERROR(items.Read(i));
      if (!items.Gives(looks)) continue;
      out_->op = i;
      out_->golden_op = plan_.golden_of[i];
      return OkStatus();
    }
    return OkStatus();
  }

 private:
  static bool IsForward(std::string_view name) {
    return !IsModuleName(name) && ParseOpName(name).direction == OpDirection::kForward;
  }

  /// Only the target has it, or only there it changes its argument.
  bool IsOwn(size_t i) const {
    const std::string_view name = pair_.target->ops().NameAt(i);
    const uint32_t g = plan_.golden_of[i];
    if (g == kNoOp) return !OnlyMovesOrCasts(name);
    return ChangesArguments(ApiOf(name)) && !ChangesArguments(ApiOf(pair_.golden->ops().NameAt(g)));
  }

  const DumpPair& pair_;
  const MatchPlan& plan_;
  const ModuleTree& tree_;
  FirstDifference* out_;
};

}  // namespace

Status FindMaker(const DumpPair& pair, const MatchPlan& plan, const ModuleTree& tree, FirstDifference* difference) {
  if (difference->kind != Kind::kInput || difference->golden_op == kNoOp || plan.fused) return OkStatus();
  OpItems target(*pair.target, pair.options.mode), golden(*pair.golden, pair.options.mode);
  MSP_RETURN_IF_ERROR(target.Read(difference->op));
  MSP_RETURN_IF_ERROR(golden.Read(difference->golden_op));
  Maker maker(pair, plan, tree, difference);
  for (const ItemView& item : target.items()) {
    if (item.state != ItemState::kInput && item.state != ItemState::kKwarg) continue;
    const auto partner = std::ranges::find(golden.items(), item.suffix, &ItemView::suffix);
    if (partner == golden.items().end()) continue;
    const std::string own = LooksOf(item), other = LooksOf(*partner);
    if (difference->hidden) {
      const StatValue& norm = item.stats[kNorm];
      const bool endless = norm.IsNanOrInf() || (norm.IsNumber() && !std::isfinite(norm.AsDouble()));
      if (endless && !own.empty()) return maker.FindMask(own);
      continue;
    }
    if (own == other || item.shape != partner->shape) continue;
    if (!own.empty()) {
      MSP_ASSIGN_OR_RETURN(const bool extra, maker.FindExtra(own));
      if (extra) return OkStatus();
    }
    if (!other.empty()) {
      MSP_ASSIGN_OR_RETURN(const bool missing, maker.FindMissing(other));
      if (missing) return OkStatus();
    }
  }
  return OkStatus();
}

}  // namespace msprobe
