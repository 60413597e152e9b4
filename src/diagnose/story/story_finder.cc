#include "diagnose/story/story_finder.h"

#include <algorithm>
#include <array>
#include <utility>

#include "compare/values/item_views.h"
#include "diagnose/anatomy/explain.h"
#include "diagnose/story/exchanged.h"
#include "diagnose/story/mistakes.h"
#include "diagnose/story/parted_copies.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

/// The statistics, or the value, of `item` of an op as its dump has them; "" where it is not there.
StatusOr<std::string> ItemText(const std::string& path, const std::string& op, const std::string& item) {
  MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(path));
  const auto at = dump.FindOp(op);
  if (!at) return std::string();
  ItemViews read(dump, CompareMode::kStatistics);
  MSP_RETURN_IF_ERROR(read.Read(*at));
  std::string out;
  for (const ItemView& one : read.items()) {
    if (one.suffix != item) continue;
    for (const StatValue& stat : one.stats) stat.AppendText(&(out += ' '));
  }
  return out;
}

/// The largest gradient of the parameter against that of all, in the step that changed it; negative where there is
/// none.
StatusOr<double> ShareOfGradient(const FirstDifference& d, const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(path));
  ItemViews read(dump, CompareMode::kStatistics);
  double own = -1, largest = 0;
  for (size_t i = 0; i < dump.ops().size(); ++i) {
    const std::string_view name = dump.ops().NameAt(i);
    if (ParseOpName(name).direction != OpDirection::kParameterGrad) continue;
    MSP_RETURN_IF_ERROR(read.Read(i));
    const bool of_module = ModulePath(name) == ModulePath(d.golden_name);
    for (const ItemView& item : read.items()) {
      largest = std::max(largest, Amplitude(item));
      if (of_module && item.suffix == "." + d.parameter) own = std::max(own, Amplitude(item));
    }
  }
  return own < 0 || largest == 0 ? -1 : own / largest;
}

/// Whether so much cannot be a step of full size that the optimizer made of rounding: of a weight whose gradient is
/// none. A bias may have one that is zero in a part of it (that of the keys among queries, keys and values).
StatusOr<bool> IsTooLarge(const FirstDifference& d, const FilePair& before) {
  constexpr double kFewElements = 5, kRoundedZero = 1e-3;
  if (d.parameter.empty() || d.parameter.ends_with("bias") || d.difference.percent < kFewElements) return false;
  MSP_ASSIGN_OR_RETURN(const double share, ShareOfGradient(d, before.golden));
  return share > kRoundedZero;
}

/// Ops that one run has more, and nothing behind them is recorded.
bool IsWithoutEffect(const Divergence& d) {
  using Kind = FirstDifference::Kind;
  const FirstDifference& made = d.creator.difference;
  return d.found && (made.kind == Kind::kMissingOp || made.kind == Kind::kExtraOp) &&
         made.verdict == RulerVerdict::kSuspicious && d.infected_ops == 0 && d.others.empty();
}

/// A parameter as one run had it in the step before, and the other changed it: its update was left out.
StatusOr<bool> IsStale(const FirstDifference& d, const FilePair& now, const FilePair& before) {
  MSP_ASSIGN_OR_RETURN(const std::string target, ItemText(now.target, d.name, d.item));
  MSP_ASSIGN_OR_RETURN(const std::string target_before, ItemText(before.target, d.name, d.item));
  MSP_ASSIGN_OR_RETURN(const std::string golden, ItemText(now.golden, d.golden_name, d.item));
  MSP_ASSIGN_OR_RETURN(const std::string golden_before, ItemText(before.golden, d.golden_name, d.item));
  return (target == target_before) != (golden == golden_before);
}

/// Whether a parameter differs as a step of the optimizer makes it of gradients that only rounded.
StatusOr<bool> IsRoundedStep(const FirstDifference& d, const FilePair& now, const FilePair& before) {
  MSP_ASSIGN_OR_RETURN(const bool stale, IsStale(d, now, before));
  if (stale) return false;
  MSP_ASSIGN_OR_RETURN(const bool too_large, IsTooLarge(d, before));
  return !too_large;
}

}  // namespace

Status StoryFinder::Add(RankFindings rank) {
  if (!ranks_.empty() && ranks_.front().files.step != rank.files.step) MSP_RETURN_IF_ERROR(EndStep());
  const RulerCounts& n = rank.differences.ruler;
  ops_.none += n.none;
  ops_.bit_equal += n.bit_equal;
  ops_.round_off += n.round_off;
  ops_.inherited += n.inherited;
  ops_.suspicious += n.suspicious;
  ops_.bug += n.bug;
  ops_.rewritten += n.rewritten;
  target_only_ += rank.target_only;
  golden_only_ += rank.golden_only;
  gaps_.insert(gaps_.end(), rank.gaps.begin(), rank.gaps.end());
  unseen_ += rank.unseen;
  if (unread_ == 0) first_unread_ = rank.first_unread;
  unread_ += rank.unread;
  const Differences& found = rank.differences;
  if (target_modules_.empty()) target_modules_ = found.target_modules;
  if (golden_modules_.empty()) golden_modules_ = found.golden_modules;
  if (found.unrecorded > unrecorded_) {
    unrecorded_ = found.unrecorded;
    first_unrecorded_ = found.first_unrecorded;
  }
  if (found.other_forms > other_forms_) {
    other_forms_ = found.other_forms;
    first_other_form_ = found.first_other_form;
  }
  divided_ += found.divided;
  ShareNames(&names_, &rank);
  ranks_.push_back(std::move(rank));
  return OkStatus();
}

Story StoryFinder::Tell() const {
  Story out = StoryOf(divergence_, ops_, target_only_, golden_only_);
  const auto paths = [](const std::vector<std::string>& names) {
    std::vector<std::string> out;
    for (const std::string& name : names) out.emplace_back(ModulePath(name));
    return out;
  };
  out.target_modules = paths(target_modules_);
  out.golden_modules = paths(golden_modules_);
  out.unrecorded = unrecorded_;
  out.first_unrecorded = ModulePath(first_unrecorded_);
  out.other_forms = other_forms_;
  out.first_other_form = ModulePath(first_other_form_);
  out.divided = divided_;
  out.gaps = gaps_;
  out.unseen = unseen_;
  out.unread = unread_;
  out.first_unread = first_unread_;
  TellBetween(between_, &out.origins);
  JoinExchanged(&out.origins);
  out.Weigh();
  RecogniseMistake(files_.empty() ? step_before_ : files_, &out);
  return out;
}

Status StoryFinder::End() {
  MSP_RETURN_IF_ERROR(EndStep());
  if (!divergence_.found && unproven_.found) divergence_ = std::move(unproven_);
  return JudgeBetween();
}

Status StoryFinder::JudgeBetween() {
  const FirstDifference& d = divergence_.creator.difference;
  const bool weight = divergence_.found && d.kind == FirstDifference::Kind::kParameter && !d.buffer;
  if (!weight || !exact_before_ || target_only_ + golden_only_ > 0) return OkStatus();
  const auto before = std::ranges::find(step_before_, divergence_.creator.rank, &FilePair::rank);
  const auto now = std::ranges::find(files_, divergence_.creator.rank, &FilePair::rank);
  if (before == step_before_.end() || now == files_.end() || before->step + 1 != now->step) return OkStatus();
  MSP_ASSIGN_OR_RETURN(const bool stale, IsStale(d, *now, *before));
  if (stale) return OkStatus();
  MSP_ASSIGN_OR_RETURN(between_, LookBetween(*before, *now));
  return OkStatus();
}

Status StoryFinder::EndStep() {
  std::vector<RankFindings> ranks;
  ranks.swap(ranks_);
  if (ranks.empty()) return OkStatus();
  // What starts in one step goes on in those behind it.
  if (divergence_.found) {
    for (const RankFindings& rank : ranks) AddLater(rank);
    return OkStatus();
  }
  if (rounded_before_) {
    for (RankFindings& rank : ranks) MSP_RETURN_IF_ERROR(ExcuseOptimizer(&rank));
  }
  const int step = ranks.front().files.step;
  std::vector<FilePair> files;
  for (const RankFindings& rank : ranks) files.push_back(rank.files);
  MSP_ASSIGN_OR_RETURN(divergence_, FindDivergence(step, std::move(ranks)));
  divergence_.carriers.insert(divergence_.carriers.end(), excused_.begin(), excused_.end());
  for (const Carrier& carrier : divergence_.carriers) ops_.Inherit(carrier.op.verdict);
  if (divergence_.found) MSP_RETURN_IF_ERROR(BlameParted(files));
  for (const RulerVerdict verdict : divergence_.unread) ops_.Withdraw(verdict);
  rounded_before_ = ops_.round_off + ops_.rewritten > 0;
  JudgeEnds(files);
  if (divergence_.found) {
    if (divergence_.step == step) files_ = std::move(files);
    return OkStatus();
  }
  exact_before_ = !rounded_before_ && ops_.inherited + ops_.suspicious + ops_.bug == 0 && ops_.bit_equal > 0;
  if (first_step_.empty()) first_step_ = files;
  step_before_ = std::move(files);
  return OkStatus();
}

/// Parameters are there before all that a step does.
Status StoryFinder::BlameParted(const std::vector<FilePair>& files) {
  MSP_ASSIGN_OR_RETURN(std::optional<Origin> parted, PartedCopy(files, step_before_));
  if (!parted) return OkStatus();
  std::erase_if(divergence_.handovers,
                [&](const Handover& h) { return std::ranges::find(parted->ranks, h.rank) != parted->ranks.end(); });
  divergence_.creator = std::move(*parted);
  return OkStatus();
}

/// Whether other ops at the end of a step give other values shows in the step behind it.
void StoryFinder::JudgeEnds(const std::vector<FilePair>& files) {
  const bool again = IsWithoutEffect(divergence_);
  if (unproven_.found) {
    if (divergence_.found && !again && Begins(divergence_.creator.difference.verdict)) {
      divergence_ = std::exchange(unproven_, {});
      return;
    }
    harmless_end_ = unproven_.creator.difference.name;
    unproven_ = {};
  }
  if (!again) return;
  // Its number is another one in each step.
  const bool known = ApiOf(divergence_.creator.difference.name) == ApiOf(harmless_end_);
  if (!known) {
    files_ = files;
    unproven_ = std::move(divergence_);
  }
  divergence_ = {};
}

Status StoryFinder::ExcuseOptimizer(RankFindings* rank) {
  using Kind = FirstDifference::Kind;
  FirstDifference& source = rank->differences.source;
  // Dumps of APIs do not say what is a parameter; data comes first.
  const bool api = source.kind == Kind::kInput && source.module.empty() && !IsModuleName(source.name);
  const bool updated = source.kind == Kind::kParameter && !source.buffer;  // no optimizer changes a buffer
  const bool weight = updated || (api && (source.state || source.item != ".input.0"));
  if (!weight || !rank->differences.rounds_parameters) return OkStatus();
  const auto before = std::ranges::find(step_before_, rank->rank, &FilePair::rank);
  if (before == step_before_.end()) return OkStatus();
  MSP_ASSIGN_OR_RETURN(const bool stepped, IsRoundedStep(source, rank->files, *before));
  if (!stepped) return OkStatus();
  // Others that the same step made of rounding say nothing more.
  std::vector<FirstDifference> others;
  for (FirstDifference& other : rank->differences.others) {
    bool same = other.kind == Kind::kParameter && !other.buffer;
    if (same) {
      MSP_ASSIGN_OR_RETURN(same, IsRoundedStep(other, rank->files, *before));
    }
    if (!same) others.push_back(std::move(other));
  }
  rank->differences.others = std::move(others);
  source.kind = Kind::kGrows;
  source.verdict = RulerVerdict::kInherited;
  if (source.parameter.empty()) source.parameter = source.item.substr(1);
  for (BegunOp& begun : rank->begun) {
    if (begun.op != source.op || !Begins(begun.verdict)) continue;
    excused_.push_back({rank->files.target, begun});
    begun.verdict = RulerVerdict::kInherited;
  }
  return OkStatus();
}

/// A parameter that differs in a later step was made by the steps before it.
void StoryFinder::AddLater(const RankFindings& rank) {
  const Differences& found = rank.differences;
  for (const BegunOp& begun : rank.begun) {
    const bool made_before = std::ranges::any_of(
        std::array{&found.first, &found.source},
        [&](const FirstDifference* d) { return d->kind == FirstDifference::Kind::kParameter && d->op == begun.op; });
    if (!made_before) continue;
    divergence_.carriers.push_back({rank.files.target, begun});
    ops_.Inherit(begun.verdict);
  }
}

void StoryFinder::Explain() {
  constexpr size_t kMostOrigins = 4;
  std::vector<Origin*> origins{&divergence_.creator};
  for (Origin& other : divergence_.others) origins.push_back(&other);
  for (size_t i = 0; i < std::min(origins.size(), kMostOrigins); ++i) {
    Origin& origin = *origins[i];
    if (!origin.evidence) continue;
    AnatomyContext context;
    context.ranks = files_;
    for (const std::vector<FilePair>* step : {&step_before_, &first_step_}) {
      for (const FilePair& files : *step) {
        if (files.rank != origin.evidence->files.rank) continue;
        // Where nothing is proved its own step counts as one before.
        if (files.target == origin.evidence->files.target || files.golden == origin.evidence->files.golden) continue;
        const bool known = !context.earlier.empty() && context.earlier.front().target == files.target;
        if (!known) context.earlier.push_back(files);
      }
    }
    origin.anatomy = ExplainOrigin(*origin.evidence, context);
  }
}

}  // namespace msprobe
