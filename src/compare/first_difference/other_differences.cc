#include "compare/first_difference/other_differences.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_set>

#include "base/page_trim.h"
#include "base/slot_table.h"
#include "base/text.h"
#include "compare/describe/item_difference.h"
#include "compare/pair/op_at.h"
#include "compare/round_off/norm_mode.h"
#include "compare/values/dtype_match.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

using FoundKind = FirstDifference::Kind;

constexpr size_t kMostOthers = 8, kMostRead = 64;
constexpr size_t kFewOwn = 8;  // more ops of one run are another way to compute

class Others {
 public:
  Others(const WalkInput& in, const WalkResult& walk)
      : in_(in), walk_(walk), ops_(in.pair.target->ops()), differing_(in.target_tree) {
    for (const FirstDifference* d : {&walk.first, &walk.source}) {
      if (d->kind == FoundKind::kNone) continue;
      const std::string_view name = ops_.NameAt(d->op);
      told_.Insert(name);
      told_.Insert(in.target_tree.ParentOf(name));
      told_.Insert(ApiOf(name));
      comparable_ = comparable_ && d->kind != FoundKind::kShape && d->kind != FoundKind::kGrows;
      coarser_ = coarser_ || d->kind == FoundKind::kDType;
    }
  }

  StatusOr<std::vector<FirstDifference>> Find() {
    // Runs that are of other precision or split otherwise differ everywhere.
    if (walk_.answer_at >= ops_.size() || !comparable_ || in_.everywhere_other_dtype) return std::move(out_);
    if (walk_.first.kind == FoundKind::kNone && walk_.source.kind == FoundKind::kNone) return std::move(out_);
    AddIdle();
    for (size_t i = walk_.answer_at; i < ops_.size() && out_.size() < kMostOthers; ++i) {
      const NameParts name = ParseOpName(ops_.NameAt(i));
      if (name.direction == OpDirection::kBackward || name.direction == OpDirection::kParameterGrad) backward_ = true;
      const OpDistance& d = in_.distances[i];
      if (name.direction != OpDirection::kForward || in_.plan.golden_of[i] == kNoOp || !d.matched) continue;
      const bool apart = d.input > 1 || d.output > 1 || d.shapes;
      const bool inherits = walk_.verdicts[i] == RulerVerdict::kInherited;  // not what is computed another way
      if (i > walk_.answer_at && inherits && !d.shapes) MSP_RETURN_IF_ERROR(Judge(i, name, d));
      if (i > walk_.answer_at && d.chosen && !d.shapes && !backward_) MSP_RETURN_IF_ERROR(JudgeData(i, name.full));
      if (i > walk_.answer_at && inherits && !backward_) MSP_RETURN_IF_ERROR(JudgeWeightsOfLoss(i, name.full));
      if (apart) differing_.AddAncestorsOf(name);
    }
    if (!coarser_) AddOwnOps();
    return std::move(out_);
  }

 private:
  Status Judge(size_t i, const NameParts& name, const OpDistance& d) {
    const bool module = IsModuleName(name.full);
    if (module && d.parameter && !backward_) return AddParameter(i, name.full);
    // Behind an op of another dtype ops differ in its roundings; a parameter of the same dtype does not.
    if (!coarser_ && !differing_.Contains(name)) JudgeOp(i, name, d);
    return OkStatus();
  }

  /// One that stands out: where many differ a little, all were written with less precision.
  Status AddParameter(size_t i, std::string_view name) {
    if (parameters_read_++ >= kMostRead || told_.Has(name)) return OkStatus();
    JsonDoc target, golden;
    OpDiff diff;
    MSP_RETURN_IF_ERROR(DiffOpWith(in_.pair, i, in_.plan.golden_of[i], &target, &golden, &diff));
    const double tolerance = OpTolerance(diff);
    double worst = in_.pair.options.thresholds->stands_out;
    std::string item;
    bool reached = false;
    for (size_t row = 0; row < diff.rows_used; ++row)
      reached = reached || (diff.target[row].state == ItemState::kInput && diff.rows[row].golden != kNoItem &&
                            RowDistance(diff, row, in_.pair.options.mode, tolerance) > 1);
    for (size_t row = 0; row < diff.rows_used; ++row) {
      if (diff.target[row].state != ItemState::kParameter || diff.rows[row].golden == kNoItem) continue;
      // What a norm keeps of its inputs follows from them.
      if (reached && IsRunningStatistic(diff.target[row].suffix)) continue;
      if (coarser_ && !SameDType(diff.target[row].dtype, diff.golden[diff.rows[row].golden].dtype)) continue;
      const double distance = RowDistance(diff, row, in_.pair.options.mode, tolerance);
      if (distance <= worst) continue;
      worst = distance;
      item = diff.target[row].suffix;
    }
    if (item.empty()) return OkStatus();
    Add(FoundKind::kInput, i, name);
    if (!out_.empty() && out_.back().op == i) out_.back().item = std::move(item);
    return OkStatus();
  }

  /// Where data came in, other data that no op made did, too: the labels of a loss beside what is looked up.
  Status JudgeData(size_t i, std::string_view name) {
    if (walk_.source.kind != FoundKind::kInput || IsModuleName(name) || told_.Has(ApiOf(name)) ||
        data_read_++ >= kMostRead)
      return OkStatus();
    MSP_RETURN_IF_ERROR(ReadMade(i));
    JsonDoc target, golden;
    OpDiff diff;
    MSP_RETURN_IF_ERROR(DiffOpWith(in_.pair, i, in_.plan.golden_of[i], &target, &golden, &diff));
    for (size_t row = 0; row < diff.rows_used; ++row) {
      const ItemView& item = diff.target[row];
      const bool input = item.state == ItemState::kInput || item.state == ItemState::kKwarg;
      if (!input || !item.tensor || item.shape == "[]" || diff.rows[row].golden == kNoItem ||
          DTypeTolerance(*diff.thresholds, item.dtype) > 0 || made_.contains(ValuesOf(item)) ||
          RowDistance(diff, row, in_.pair.options.mode, 0) <= 1)
        continue;
      Add(FoundKind::kInput, i, ApiOf(name));
      if (!out_.empty() && out_.back().op == i) out_.back().item = item.suffix;
      made_.insert(ValuesOf(item));
      return OkStatus();
    }
    return OkStatus();
  }

  /// What a loss weighs its classes by is a constant: where it differs it does so by itself.
  Status JudgeWeightsOfLoss(size_t i, std::string_view name) {
    const std::string_view api = ApiOf(name);
    if (IsModuleName(name) || (!Contains(api, "cross_entropy") && api != "nll_loss") || told_.Has(api))
      return OkStatus();
    MSP_RETURN_IF_ERROR(ReadMade(i));
    JsonDoc target, golden;
    OpDiff diff;
    MSP_RETURN_IF_ERROR(DiffOpWith(in_.pair, i, in_.plan.golden_of[i], &target, &golden, &diff));
    const std::span<const ItemView> items(diff.target.data(), diff.rows_used);
    for (size_t row = 0; row < diff.rows_used; ++row) {
      const ItemView& item = diff.target[row];
      const bool weighs =
          item.suffix.ends_with("weight") || NameOfArgument(name, items, item.suffix).ends_with("weight");
      if (!weighs || IsResult(item.state) || !item.tensor || diff.rows[row].golden == kNoItem ||
          item.requires_grad == ItemView::Grad::kTrue || made_.contains(ValuesOf(item)) ||
          RowDistance(diff, row, in_.pair.options.mode, DTypeTolerance(*diff.thresholds, item.dtype)) <= 1)
        continue;
      Add(FoundKind::kInput, i, api);
      if (!out_.empty() && out_.back().op == i) out_.back().item = item.suffix;
      break;
    }
    return OkStatus();
  }

  /// What the functions in front of op `end` gave, and what the answer is given.
  Status ReadMade(size_t end) {
    ItemViews items(*in_.pair.target, in_.pair.options.mode);
    for (; made_until_ < end; ++made_until_) {
      const std::string_view name = ops_.NameAt(made_until_);
      if (IsModuleName(name) || ParseOpName(name).direction != OpDirection::kForward) continue;
      MSP_RETURN_IF_ERROR(items.Read(made_until_));
      const bool told = made_until_ == walk_.answer_at;  // with what it is given
      for (const ItemView& item : items.items()) {
        if (item.tensor && (told || item.state == ItemState::kOutput)) made_.insert(ValuesOf(item));
      }
    }
    return OkStatus();
  }

  /// Of whatever shape.
  std::string ValuesOf(const ItemView& item) const {
    if (in_.pair.options.mode == CompareMode::kChecksum) return item.checksum;
    return PrintOf(item).substr(item.shape.size());
  }

  void JudgeOp(size_t i, const NameParts& name, const OpDistance& d) {
    const bool module = IsModuleName(name.full);
    // Sizes and indices of copies follow from what was chosen before.
    const bool copies = ArithmeticOf(name.full) == Arithmetic::kCopy;
    if (d.setting && !module && !copies && IsFirstOf(name)) return Add(FoundKind::kArgument, i, ApiOf(name.full));
    const bool bits = in_.pair.options.mode != CompareMode::kStatistics;
    const bool equal = d.has_input && d.input == 0 && d.input_error == 0 && !d.argument && !d.chosen;
    if (bits && equal && d.values && !d.few && !d.masked && !backward_ && d.worst > 1 && d.output > 1)
      Add(FoundKind::kOp, i, name.full);
  }

  /// What a call in front of the answer is given otherwise, and what changes nothing at once: a momentum, a mode.
  void AddIdle() {
    if (walk_.idle >= walk_.answer_at || walk_.idle == walk_.first.op) return;
    Add(FoundKind::kArgument, walk_.idle, ApiOf(ops_.NameAt(walk_.idle)));
    if (!out_.empty()) out_.back().more_calls = walk_.idle_more;
  }

  /// Functions that one run calls more; where each has some of its own, they are two forms of one thing.
  void AddOwnOps() {
    const bool golden = walk_.own_ops.empty();
    const std::vector<uint32_t>& own = golden ? walk_.golden_own_ops : walk_.own_ops;
    if ((!golden && !walk_.golden_own_ops.empty()) || own.size() > kFewOwn || in_.plan.fused || in_.plan.cross ||
        in_.plan.implementations || !in_.one_sided.empty())
      return;
    for (const uint32_t op : own) {
      const std::string_view name = (golden ? *in_.pair.golden : *in_.pair.target).ops().NameAt(op);
      if ((!golden && op <= walk_.answer_at) || out_.size() == kMostOthers || !told_.Insert(ApiOf(name))) continue;
      FirstDifference found;
      found.kind = golden ? FoundKind::kMissingOp : FoundKind::kExtraOp;
      found.op = golden ? walk_.answer_at : op;
      found.golden_op = golden ? op : kNoOp;
      found.verdict = RulerVerdict::kSuspicious;
      out_.push_back(std::move(found));
    }
  }

  /// A setting of the optimizer differs for each parameter.
  bool IsFirstOf(const NameParts& name) { return !told_.Has(ApiOf(name.full)); }

  void Add(FoundKind kind, size_t i, std::string_view key) {
    if (told_.Has(ops_.NameAt(i)) || !told_.Insert(key)) return;
    FirstDifference found;
    found.kind = kind;
    found.op = i;
    found.golden_op = in_.plan.golden_of[i];
    found.verdict = RulerVerdict::kSuspicious;
    const OpDistance& d = in_.distances[i];
    found.units = kind == FoundKind::kOp ? d.output : d.input;
    out_.push_back(std::move(found));
  }

  const WalkInput& in_;
  const WalkResult& walk_;
  const OpList& ops_;
  Containers differing_;
  TextIds told_;
  std::vector<FirstDifference> out_;
  size_t parameters_read_ = 0, data_read_ = 0, made_until_ = 0;
  std::unordered_set<std::string> made_;  // by functions in front of `made_until_`
  bool comparable_ = true;
  bool coarser_ = false;  // the first difference is one of dtype
  bool backward_ = false;
};

}  // namespace

void CountInfected(const WalkInput& in, const WalkResult& walk, Differences* out) {
  constexpr size_t kMostModules = 1000;
  TextIds modules;
  const OpList& ops = in.pair.target->ops();
  for (size_t i = walk.answer_at; i < ops.size(); ++i) {
    if (i % kStepsBetweenTrims == 0) TrimMaps();
    if (walk.verdicts[i] != RulerVerdict::kInherited || i == out->Answer().op) continue;
    ++out->infected_ops;
    const std::string_view name = ops.NameAt(i), module = IsModuleName(name) ? name : in.target_tree.ParentOf(name);
    // Only the first are told.
    const size_t at = modules.size() < kMostModules ? modules.Enter(module) : modules.Find(module);
    if (at == out->infected.size() && at < kMostModules) out->infected.push_back({std::string(module), 0});
    if (at < out->infected.size()) ++out->infected[at].ops;
  }
}

void DropRepeated(Differences* out) {
  const auto lone = [](const FirstDifference& d) {
    return d.kind == FoundKind::kMissingOp || d.kind == FoundKind::kExtraOp;
  };
  const auto same = [&](const FirstDifference& a, const FirstDifference& b) {
    if (a.kind != b.kind) return false;
    if (lone(a)) return !a.frame.empty() && a.frame == b.frame && b.parameter.empty();
    return a.kind == FoundKind::kArgument && a.item == b.item && !StartsWith(a.item, ".input") &&
           a.difference.target == b.difference.target && a.owner == b.owner;
  };
  std::vector<FirstDifference> kept;
  for (FirstDifference& d : out->others) {
    const bool told = same(out->first, d) || std::ranges::any_of(kept, [&](const auto& k) { return same(k, d); });
    if (!told) kept.push_back(std::move(d));
  }
  out->others = std::move(kept);
}

StatusOr<std::vector<FirstDifference>> OtherDifferences(const WalkInput& in, const WalkResult& walk) {
  return Others(in, walk).Find();
}

}  // namespace msprobe
