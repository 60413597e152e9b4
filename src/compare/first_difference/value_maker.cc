#include "compare/first_difference/value_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "base/page_trim.h"
#include "base/text.h"
#include "compare/describe/item_difference.h"
#include "compare/first_difference/outside_value.h"
#include "compare/first_difference/parameter_owner.h"
#include "compare/pair/op_at.h"
#include "compare/round_off/no_value.h"
#include "compare/round_off/settings.h"
#include "compare/values/item_views.h"
#include "ops/framework_names.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

using FoundKind = FirstDifference::Kind;

constexpr size_t kMostLookedAt = 20000;  // ops in front of the difference
constexpr size_t kMostAcross = 400;      // of two frameworks, where values say less
constexpr size_t kMostUnseen = 1000;     // ops between what unseen code takes and what it makes
constexpr size_t kNoMaker = SIZE_MAX;
constexpr size_t kMostAround = 64;  // around infinities: they are put in where they are used

/// A tensor by what its dump shows of it. Reshaped: of any shape of as many elements, whose sums another order rounds.
class Looks {
 public:
  explicit Looks(const ItemView& item, bool reshaped = false) : text_(Text(item, reshaped)), reshaped_(reshaped) {
    if (item.stats[kNorm].IsNumber()) norm_ = item.stats[kNorm].AsDouble();
  }

  bool known() const { return !text_.empty(); }
  bool operator==(const Looks& other) const { return text_ == other.text_ && NormIs(other.norm_); }
  bool AreOf(const ItemView& item) const { return Looks(item, reshaped_) == *this; }

 private:
  static std::string Text(const ItemView& item, bool reshaped) {
    if (item.shape == "[]") return OfNumber(item);
    if (!reshaped) return LooksOf(item);
    if (LooksOf(item).empty() || item.dtype.find("loat") == std::string::npos) return {};
    std::string out = std::to_string(ElementsOfShape(item.shape)) + " " + std::string(item.dtype);
    for (const Stat k : {kMax, kMin}) item.stats[k].AppendText(&(out += ' '));
    return out;
  }
  /// A loss, a factor: many digits are its own, 0, 1 and what people write are not.
  static std::string OfNumber(const ItemView& item) {
    const bool floating = item.tensor && item.dtype.find("loat") != std::string::npos;
    if (!floating || !item.stats[kMax].IsNumber() || IsWritten(item.stats[kMax].AsDouble())) return {};
    return fmt::format("[] {} {}", item.dtype, item.stats[kMax].AsDouble());
  }
  bool NormIs(double norm) const { return !reshaped_ || std::fabs(norm - norm_) <= kSameNorm * std::fabs(norm_); }

  static constexpr double kSameNorm = 1e-6;
  std::string text_;
  bool reshaped_;
  double norm_ = 0;
};

bool Gives(const ItemViews& op, const Looks& looks) {
  return std::ranges::any_of(
      op.items(), [&](const ItemView& item) { return item.state == ItemState::kOutput && looks.AreOf(item); });
}

class Maker {
 public:
  Maker(const WalkInput& in, WalkResult* walk) : in_(in), walk_(*walk), out_(&walk->source) {}

  /// An op that the target has more.
  StatusOr<size_t> FindExtra(const Looks& looks) { return FindAmong(*in_.pair.target, walk_.own_ops, out_->op, looks); }
  /// One that it lacks.
  StatusOr<size_t> FindMissing(const Looks& looks) {
    return FindAmong(*in_.pair.golden, walk_.golden_own_ops, out_->golden_op, looks);
  }

  /// An op that one run has more, and whose result no recorded op takes before the difference: what takes it made what
  /// comes in. Where modules are recorded, they tell more.
  Status FindBehindUnseenCode(const ItemView& item) {
    const DumpPair& pair = in_.pair;
    const std::string_view name = pair.target->ops().NameAt(out_->op);
    const bool computed = item.dtype.find("loat") != std::string::npos && !IsPlaceOfWeight(name, item) &&
                          ParseOpName(name).direction == OpDirection::kForward;
    if (!computed || IsModuleName(name) || !in_.target_tree.ParentOf(name).empty()) return OkStatus();
    const bool golden = walk_.own_ops.empty();
    const std::vector<uint32_t>& own = golden ? walk_.golden_own_ops : walk_.own_ops;
    if (own.empty() || (!golden && !walk_.golden_own_ops.empty())) return OkStatus();
    MSP_ASSIGN_OR_RETURN(const bool stepped, IsStepped(*pair.target, item));
    if (stepped) return OkStatus();
    const DumpFile& dump = golden ? *pair.golden : *pair.target;
    const size_t end = golden ? out_->golden_op : out_->op;
    for (auto it = std::ranges::lower_bound(own, end); it != own.begin();) {
      const uint32_t op = *--it;
      if (end - op > kMostUnseen) break;
      MSP_ASSIGN_OR_RETURN(const bool taken, IsTaken(dump, op, end));
      if (taken) continue;
      out_->kind = golden ? FoundKind::kMissingOp : FoundKind::kExtraOp;
      out_->golden_op = golden ? op : kNoOp;
      if (!golden) out_->op = op;
      return OkStatus();
    }
    return OkStatus();
  }

  /// The op whose result the infinities are in.
  Status FindMask(const Looks& looks) {
    const DumpFile& dump = *in_.pair.target;
    ItemViews items(dump, in_.pair.options.mode);
    const std::string_view module = in_.target_tree.ParentOf(dump.ops().NameAt(out_->op));
    for (size_t i = out_->op, seen = 0; i-- > 0 && seen < kMostAround; ++seen) {
      const std::string_view name = dump.ops().NameAt(i);
      if (IsModuleName(name) || in_.target_tree.ParentOf(name) != module || in_.plan.golden_of[i] == kNoOp) continue;
      MSP_RETURN_IF_ERROR(items.Read(i));
      if (!Gives(items, looks)) continue;
      out_->op = i;
      out_->golden_op = in_.plan.golden_of[i];
      return OkStatus();
    }
    return OkStatus();
  }

 private:
  /// Whether an op up to `end` takes what the op gives; true where that cannot be known.
  StatusOr<bool> IsTaken(const DumpFile& dump, size_t op, size_t end) {
    ItemViews items(dump, in_.pair.options.mode);
    MSP_RETURN_IF_ERROR(items.Read(op));
    const auto output =
        std::ranges::find_if(items.items(), [](const ItemView& item) { return item.state == ItemState::kOutput; });
    if (output == items.items().end()) return true;
    const Looks looks(*output, true);
    if (!looks.known()) return true;
    for (size_t i = op + 1; i <= end; ++i) {
      MSP_RETURN_IF_ERROR(items.Read(i));
      const auto takes = [&](const ItemView& item) { return !IsResult(item.state) && looks.AreOf(item); };
      if (std::ranges::any_of(items.items(), takes)) return true;
    }
    return false;
  }

  /// The last of `ops` in front of `end` that gives it.
  StatusOr<size_t> FindAmong(const DumpFile& dump, const std::vector<uint32_t>& ops, size_t end, const Looks& looks) {
    ItemViews items(dump, in_.pair.options.mode);
    size_t seen = 0;
    for (auto it = std::ranges::lower_bound(ops, end); it != ops.begin() && seen < kMostLookedAt; ++seen) {
      const uint32_t op = *--it;
      MSP_RETURN_IF_ERROR(items.Read(op));
      if (Gives(items, looks)) return op;
    }
    return kNoMaker;
  }

  const WalkInput& in_;
  const WalkResult& walk_;
  FirstDifference* out_;
};

/// The last op in front of `end` that gives the value; kNoMaker where none does, or the value tells too little.
StatusOr<size_t> LastThatGives(const DumpFile& dump, size_t end, const ItemView& item, CompareMode mode) {
  constexpr size_t kMostMakers = 4096;
  const Looks looks(item);
  ItemViews items(dump, mode);
  for (size_t i = end, seen = 0; i-- > 0 && seen < kMostMakers && looks.known(); ++seen) {
    MSP_RETURN_IF_ERROR(items.Read(i));
    if (Gives(items, looks)) return i;
  }
  return kNoMaker;
}

/// The input that is furthest apart; null where none is by more than rounding.
const ItemView* WorstInput(const OpDiff& diff, CompareMode mode, const ItemView** partner) {
  const double tolerance = OpTolerance(diff);
  double worst = 1;
  const ItemView* out = nullptr;
  for (size_t i = 0; i < diff.rows_used; ++i) {
    const bool input = diff.target[i].state == ItemState::kInput || diff.target[i].state == ItemState::kKwarg;
    if (!input || diff.rows[i].golden == kNoItem) continue;
    const double distance = RowDistance(diff, i, mode, tolerance);
    if (distance <= worst) continue;
    worst = distance;
    out = &diff.target[i];
    *partner = &diff.golden[static_cast<size_t>(diff.rows[i].golden)];
  }
  return out;
}

/// What a tensor keeps when it is given another shape; "" as LooksOf().
std::string ExtremesOf(const ItemView& item) {
  std::string most, least;
  item.stats[kMax].AppendText(&most);
  item.stats[kMin].AppendText(&least);
  return item.tensor && !item.stats[kMax].IsNone() && most != least ? most + " " + least : std::string();
}

/// The function in front of `end` that computed values of these extremes, close to it.
StatusOr<size_t> ComputedBefore(const DumpFile& dump, size_t end, const std::string& extremes, CompareMode mode) {
  ItemViews items(dump, mode);
  for (size_t i = end, seen = 0; i-- > 0 && seen < kMostAcross; ++seen) {
    const std::string_view name = dump.ops().NameAt(i);
    if (IsModuleName(name) || ParseOpName(name).direction != OpDirection::kForward) continue;
    if (CommonFunctionOf(ApiOrClassOf(name)).moves) continue;
    MSP_RETURN_IF_ERROR(items.Read(i));
    const auto made = [&](const ItemView& item) {
      return item.state == ItemState::kOutput && ExtremesOf(item) == extremes;
    };
    if (std::ranges::any_of(items.items(), made)) return i;
  }
  return kNoMaker;
}

/// Whether the nearest module around an op that both runs have gives the same in both: then it is made of other ops.
bool IsInAgreeing(const WalkInput& in, bool golden, size_t op) {
  const DumpFile& dump = golden ? *in.pair.golden : *in.pair.target;
  const auto& golden_of = in.plan.golden_of;
  bool agrees = false;
  (golden ? in.golden_tree : in.target_tree).ForEachAround(dump.ops().NameAt(op), [&](std::string_view name) {
    const auto at = IsModuleName(name) ? dump.FindOp(name) : std::nullopt;
    if (!at) return true;
    const auto found = golden ? std::find(golden_of.begin(), golden_of.end(), static_cast<uint32_t>(*at))
                              : golden_of.begin() + static_cast<std::ptrdiff_t>(*at);
    if (found == golden_of.end() || *found == kNoOp) return true;
    const OpDistance& d = in.distances[static_cast<size_t>(found - golden_of.begin())];
    agrees = d.has_output && d.values && d.input <= 1 && d.output <= 1;
    return false;
  });
  return agrees;
}

/// Of two frameworks: what made the golden input is called later in the target, or not at all; or the target's input is
/// made by an op that the golden run does not have.
Status FindMakerAcross(const WalkInput& in, const ItemView& own, const ItemView& other, FirstDifference* found) {
  const CompareMode mode = in.pair.options.mode;
  const std::string looks = ExtremesOf(own), golden_looks = ExtremesOf(other);
  if (looks.empty() || golden_looks.empty()) return OkStatus();
  MSP_ASSIGN_OR_RETURN(const size_t made, ComputedBefore(*in.pair.golden, found->golden_op, golden_looks, mode));
  if (made != kNoMaker) {
    const auto& golden_of = in.plan.golden_of;
    const auto partner = std::find(golden_of.begin(), golden_of.end(), static_cast<uint32_t>(made));
    const size_t at = static_cast<size_t>(partner - golden_of.begin());
    const bool lacks = partner == golden_of.end() && !IsInAgreeing(in, true, made);
    if (lacks) found->kind = FoundKind::kMissingOp;
    if (partner != golden_of.end() && at > found->op) found->op = at;
    if (lacks || at == found->op) {
      found->golden_op = static_cast<uint32_t>(made);
      return OkStatus();
    }
  }
  MSP_ASSIGN_OR_RETURN(const size_t extra, ComputedBefore(*in.pair.target, found->op, looks, mode));
  if (extra == kNoMaker || in.plan.golden_of[extra] != kNoOp || in.plan.NotSeen(extra) ||
      IsInAgreeing(in, false, extra))
    return OkStatus();
  found->kind = FoundKind::kExtraOp;
  found->op = extra;
  found->golden_op = kNoOp;
  return OkStatus();
}

const ItemView* MaskedInput(const OpDiff& diff) {
  for (size_t i = diff.rows_used; i-- > 0;) {
    const StatValue& norm = diff.target[i].stats[kNorm];
    const bool endless = norm.IsNanOrInf() || (norm.IsNumber() && !std::isfinite(norm.AsDouble()));
    if (endless && !IsResult(diff.target[i].state)) return &diff.target[i];
  }
  return nullptr;
}

/// A use of a parameter that one run has more adds to its gradient.
class ExtraUse {
 public:
  ExtraUse(const WalkInput& in, FirstDifference* out) : in_(in), out_(out) {}

  Status Find() {
    MSP_ASSIGN_OR_RETURN(const std::string looks, ParameterLooks());
    return FindOf(looks, false);
  }

  /// Of what the forward call gives to whose backward call another gradient comes: a term of the loss, as a rule.
  Status FindOfResult() {
    const auto forward = in_.pair.target->FindOp(ForwardNameOf(ParseOpName(in_.pair.target->ops().NameAt(out_->op))));
    if (!forward) return OkStatus();
    ItemViews items(*in_.pair.target, in_.pair.options.mode);
    MSP_RETURN_IF_ERROR(items.Read(*forward));
    const auto given = std::ranges::find(items.items(), ItemState::kOutput, &ItemView::state);
    return given == items.items().end() ? OkStatus() : FindOf(LooksOf(*given), true);
  }

 private:
  /// `in_graph`: only uses through which gradients flow.
  Status FindOf(const std::string& looks, bool in_graph) {
    const DumpPair& pair = in_.pair;
    in_graph_ = in_graph;
    if (looks.empty()) return OkStatus();
    std::vector<uint32_t> own;
    for (size_t i = 0; i < out_->op && own.size() < kMostLookedAt; ++i) {
      if (in_.plan.golden_of[i] == kNoOp && !in_.plan.NotSeen(i)) own.push_back(static_cast<uint32_t>(i));
    }
    MSP_ASSIGN_OR_RETURN(const size_t extra, FirstUse(*pair.target, own, looks));
    MSP_ASSIGN_OR_RETURN(const size_t missing, FirstUse(*pair.golden, in_.plan.golden_only, looks));
    // Where each run has one of its own, they stand for each other.
    if ((extra == kNoMaker) == (missing == kNoMaker)) return OkStatus();
    if (extra != kNoMaker) {
      if (IsReplaced(in_.target_tree.ParentOf(pair.target->ops().NameAt(extra)), *pair.golden, in_.golden_tree,
                     in_.plan.golden_only))
        return OkStatus();
      out_->kind = FoundKind::kExtraOp;
      out_->op = extra;
      out_->golden_op = kNoOp;
      return OkStatus();
    }
    if (IsReplaced(in_.golden_tree.ParentOf(pair.golden->ops().NameAt(missing)), *pair.target, in_.target_tree, own))
      return OkStatus();
    out_->kind = FoundKind::kMissingOp;
    out_->golden_op = static_cast<uint32_t>(missing);
    return OkStatus();
  }

  /// Of the parameter whose gradient differs most, in the forward call of its module.
  StatusOr<std::string> ParameterLooks() const {
    const DumpPair& pair = in_.pair;
    const std::string_view name = pair.target->ops().NameAt(out_->op);
    JsonDoc a, b;
    OpDiff diff;
    MSP_RETURN_IF_ERROR(DiffOpWith(pair, out_->op, out_->golden_op, &a, &b, &diff));
    const double tolerance = OpTolerance(diff);
    double worst = 1;
    std::string parameter;
    for (size_t i = 0; i < diff.rows_used; ++i) {
      if (diff.rows[i].golden == kNoItem || diff.target[i].state != ItemState::kParameterGrad) continue;
      const double distance = RowDistance(diff, i, pair.options.mode, tolerance);
      if (distance <= worst) continue;
      worst = distance;
      parameter = ".parameters" + std::string(diff.target[i].suffix);
    }
    const auto forward = pair.target->FindOp(ForwardNameOf(ParseOpName(name)));
    if (parameter.empty() || !forward) return std::string();
    ItemViews items(*pair.target, pair.options.mode);
    MSP_RETURN_IF_ERROR(items.Read(*forward));
    for (const ItemView& item : items.items()) {
      if (item.state == ItemState::kParameter && item.suffix == parameter) return LooksOf(item);
    }
    return std::string();
  }

  StatusOr<size_t> FirstUse(const DumpFile& dump, std::span<const uint32_t> ops, const std::string& looks) const {
    ItemViews items(dump, in_.pair.options.mode);
    size_t seen = 0;
    for (const uint32_t op : ops) {
      const std::string_view name = dump.ops().NameAt(op);
      if (IsModuleName(name) || ParseOpName(name).direction != OpDirection::kForward) continue;
      if (++seen > kMostLookedAt) break;
      MSP_RETURN_IF_ERROR(items.Read(op));
      const auto takes = [&](const ItemView& item) {
        return (item.state == ItemState::kInput || item.state == ItemState::kKwarg) && LooksOf(item) == looks;
      };
      const auto flows = [](const ItemView& item) {
        return item.state == ItemState::kOutput && item.requires_grad == ItemView::Grad::kTrue;
      };
      if (std::ranges::any_of(items.items(), takes) && (!in_graph_ || std::ranges::any_of(items.items(), flows)))
        return op;
    }
    return kNoMaker;
  }

  /// Whether the other run has an op of its own where this one is called.
  static bool IsReplaced(std::string_view parent, const DumpFile& other, const ModuleTree& tree,
                         std::span<const uint32_t> ops) {
    return std::ranges::any_of(ops, [&](uint32_t op) {
      const std::string_view name = other.ops().NameAt(op);
      return !IsModuleName(name) && tree.ParentOf(name) == parent;
    });
  }

  const WalkInput& in_;
  FirstDifference* out_;
  bool in_graph_ = false;
};

/// Whether what the first tensor of both calls is agrees: a sum and a mean of one loss.
StatusOr<bool> TakeTheSame(const DumpPair& pair, size_t target, size_t golden) {
  ItemViews a(*pair.target, pair.options.mode), b(*pair.golden, pair.options.mode);
  MSP_RETURN_IF_ERROR(a.Read(target));
  MSP_RETURN_IF_ERROR(b.Read(golden));
  const auto first = [](const ItemViews& items) {
    return std::ranges::find_if(items.items(), [](const ItemView& item) {
      return item.tensor && (item.state == ItemState::kInput || item.state == ItemState::kKwarg);
    });
  };
  const auto own = first(a), other = first(b);
  if (own == a.items().end() || other == b.items().end()) return false;
  const Looks looks(*own);
  return looks.known() && looks.AreOf(*other);
}

}  // namespace

Status FindMaker(const WalkInput& in, WalkResult* walk) {
  FirstDifference& found = walk->source;
  const DumpPair& pair = in.pair;
  if (found.kind == FoundKind::kNone && walk->first.kind == FoundKind::kOp && !in.plan.fused &&
      !in.plan.implementations &&
      ParseOpName(pair.target->ops().NameAt(walk->first.op)).direction == OpDirection::kParameterGrad)
    return ExtraUse(in, &walk->first).Find();
  if (found.kind != FoundKind::kInput || found.golden_op == kNoOp || in.plan.fused) return OkStatus();
  if (in.plan.implementations) return OkStatus();  // functions of the two have nothing to do with each other
  if (!in.plan.cross && ParseOpName(pair.target->ops().NameAt(found.op)).direction == OpDirection::kBackward) {
    MSP_RETURN_IF_ERROR(ExtraUse(in, &found).FindOfResult());
    if (found.kind != FoundKind::kInput) return OkStatus();
  }
  JsonDoc target, golden;
  OpDiff diff;
  if (in.plan.cross) {
    MSP_RETURN_IF_ERROR(DiffOpAt(pair, found.op, &target, &golden, &diff));  // whose items are not at equal places
  } else {
    MSP_RETURN_IF_ERROR(DiffOpWith(pair, found.op, found.golden_op, &target, &golden, &diff));
  }
  Maker maker(in, walk);
  if (in.plan.cross) {
    const ItemView* other = nullptr;
    const ItemView* own = WorstInput(diff, pair.options.mode, &other);
    return own ? FindMakerAcross(in, *own, *other, &found) : OkStatus();
  }
  if (found.hidden) {
    const ItemView* masked = MaskedInput(diff);
    return masked ? maker.FindMask(Looks(*masked)) : OkStatus();
  }
  const ItemView* other = nullptr;
  const ItemView* own = WorstInput(diff, pair.options.mode, &other);
  if (!own || own->shape != other->shape) return OkStatus();
  for (const bool reshaped : {false, true}) {
    const Looks looks(*own, reshaped), golden_looks(*other, reshaped);
    if (!looks.known() || !golden_looks.known() || looks == golden_looks) return OkStatus();
    MSP_ASSIGN_OR_RETURN(const size_t extra, maker.FindExtra(looks));
    MSP_ASSIGN_OR_RETURN(const size_t missing, maker.FindMissing(golden_looks));
    if (extra == kNoMaker && missing == kNoMaker) continue;
    // Where each run has an op of its own, they stand for each other.
    if (extra != kNoMaker && missing != kNoMaker) {
      MSP_ASSIGN_OR_RETURN(const bool same, TakeTheSame(pair, extra, missing));
      if (!same) return OkStatus();
    }
    found.kind = extra != kNoMaker ? FoundKind::kExtraOp : FoundKind::kMissingOp;
    if (extra != kNoMaker) {
      found.op = extra;
      found.golden_op = kNoOp;
    } else {
      found.golden_op = static_cast<uint32_t>(missing);
    }
    return OkStatus();
  }
  return maker.FindBehindUnseenCode(*own);
}

Status BlameIdle(const WalkInput& in, WalkResult* walk) {
  FirstDifference& found = walk->source;
  if (found.kind != FoundKind::kInput || found.golden_op == kNoOp || walk->idle >= found.op) return OkStatus();
  JsonDoc target, golden;
  OpDiff diff;
  MSP_RETURN_IF_ERROR(DiffOpWith(in.pair, found.op, found.golden_op, &target, &golden, &diff));
  const ItemView* other = nullptr;
  const ItemView* own = WorstInput(diff, in.pair.options.mode, &other);
  if (own && other) {
    FirstDifference makers = found;
    MSP_RETURN_IF_ERROR(NameMakers(in.pair, in.plan, *own, *other, &makers));
    if (!makers.made_by.empty() || !makers.golden_made_by.empty()) return OkStatus();
  }
  if (walk->first.kind != FoundKind::kNone)  // what differs behind it follows from it
    walk->verdicts[walk->first.op] = walk->contexts[walk->first.op].verdict = RulerVerdict::kInherited;
  walk->first = std::exchange(found, FirstDifference());
  walk->first.kind = FoundKind::kArgument;
  walk->first.op = walk->idle;
  walk->first.golden_op = in.plan.golden_of[walk->idle];
  walk->first.more_calls = walk->idle_more;
  walk->verdicts[walk->idle] = walk->contexts[walk->idle].verdict = walk->first.verdict;
  return OkStatus();
}

Status NameMakers(const DumpPair& pair, const MatchPlan& plan, const ItemView& own, const ItemView& golden,
                  FirstDifference* out) {
  if (plan.cross || plan.fused || plan.implementations || out->golden_op == kNoOp) return OkStatus();
  MSP_ASSIGN_OR_RETURN(const size_t maker, LastThatGives(*pair.target, out->op, own, pair.options.mode));
  MSP_ASSIGN_OR_RETURN(const size_t other, LastThatGives(*pair.golden, out->golden_op, golden, pair.options.mode));
  const bool partners = maker != kNoMaker && other != kNoMaker && plan.golden_of[maker] == other;
  if (partners) return OkStatus();
  if (maker != kNoMaker) out->made_by = pair.target->ops().NameAt(maker);
  if (other != kNoMaker) out->golden_made_by = pair.golden->ops().NameAt(other);
  return OkStatus();
}

}  // namespace msprobe
