#include "diagnose/story/story.h"

#include <algorithm>
#include <charconv>

#include "diagnose/divergence.h"
#include "diagnose/overflow/overflow.h"
#include "diagnose/replay_result.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

/// Without the dot in front.
std::string Bare(const std::string& item) { return item.empty() ? item : item.substr(1); }

/// By the name of the module's op.
void SetModule(const std::string& name, StoryOrigin* out) {
  out->module = ModulePath(name);
  if (IsModuleName(name)) out->module_class = ApiOrClassOf(name);
}

/// Graphs gather the calls between modules under such a name.
bool IsCollection(const std::string& name) { return name.starts_with("Apis_Between_Modules"); }

StoryOrigin OriginOf(const Origin& o, int step) {
  const FirstDifference& d = o.difference;
  StoryOrigin out;
  out.cause = CauseOf(o);
  out.step = step;
  if (o.rank >= 0) {
    out.ranks = o.ranks;
    // The rank whose values are shown leads.
    const auto own = std::find(out.ranks.begin(), out.ranks.end(), o.rank);
    if (own != out.ranks.end()) std::rotate(out.ranks.begin(), own, own + 1);
  }
  if (!d.ranks.empty()) out.ranks = d.ranks;
  out.op = d.name;
  if (const std::string& name = !d.inside.empty() ? d.inside : d.module; !name.empty() && !IsCollection(name)) {
    SetModule(name, &out);
  } else if (IsModuleName(d.name)) {
    SetModule(d.name, &out);
  }
  for (const std::string& name : d.fused) {
    StoryOrigin other;
    SetModule(name, &other);
    out.fused.push_back(std::move(other.module));
  }
  out.frame = d.frame;
  out.function = d.function;
  out.item = Bare(d.item);
  out.argument = d.argument;
  out.reordered = d.reordered;
  out.kept = d.state;
  out.gradient = d.gradient;
  out.made_by = d.made_by;
  out.golden_made_by = d.golden_made_by;
  out.exchanged_input = Bare(d.exchanged);
  out.recomputed = d.recomputed;
  out.coarse = d.coarse;
  out.hidden = d.hidden;
  out.alone = d.alone;
  out.other_call = d.other_call;
  out.buffer = d.buffer;
  out.factor = d.factor;
  out.owner = d.owner;
  out.parameter = d.parameter;
  out.copies = d.copies;
  out.what = d.difference.what;
  out.target = d.difference.target;
  out.golden = d.difference.golden;
  out.percent = d.difference.percent;
  out.verdict = d.verdict;
  out.units = d.units;
  const bool made = out.cause == Cause::kOp || out.cause == Cause::kCollective || out.cause == Cause::kReceived;
  if (made) out.inputs = d.inputs;
  out.other_op = d.after;
  out.instead = d.instead;
  out.clips = d.clips;
  out.of_step = d.of_step;
  out.more_calls = d.more_calls;
  out.drawn = d.drawn;
  if (d.other_mode) {
    out.mechanism =
        d.evaluates ? Msg("it uses its running statistics, as in evaluation; in the golden run those of the batch")
                    : Msg("it uses the statistics of the batch; in the golden run its running ones, as in evaluation");
  }
  if (o.replay) out.replay = ReplayText(*o.replay).English();
  if (!d.of_step) out.anatomy = o.anatomy;  // of values, where the step is what differs
  return out;
}

void AddInherited(const Divergence& d, Story* out) {
  out->inherited = d.infected_ops;
  out->forward = d.infected_forward;
  out->backward = d.infected_backward;
  out->modules = d.infected_modules;
  out->more_modules = d.more_modules;
}

Cause CauseOf(const OverflowFinding& f) {
  using Kind = OverflowSource::Kind;
  if (f.constant) return Cause::kArgument;
  switch (f.kind) {
    case Kind::kCommunication: return Cause::kCollective;
    case Kind::kParameter: return Cause::kWeight;
    case Kind::kInput: return f.leaf_grad ? Cause::kWeight : Cause::kInput;
    case Kind::kUninitialised: return Cause::kUninitialised;
    case Kind::kMissingRank: return Cause::kReceived;
    case Kind::kMask: return Cause::kMask;
    case Kind::kOp: break;
  }
  return f.mask.empty() ? Cause::kOp : Cause::kMask;
}

/// Of "step3"; -1 for a single file.
int StepNumber(const std::string& name) {
  int out = -1;
  if (name.starts_with("step")) {
    const char* begin = name.data() + 4;
    if (std::from_chars(begin, name.data() + name.size(), out).ec != std::errc()) out = -1;
  }
  return out;
}

StoryOrigin OriginOf(const OverflowFinding& f, int step) {
  StoryOrigin out;
  out.cause = CauseOf(f);
  out.overflow = true;
  out.step = step;
  for (const OverflowOp& op : f.ops) out.ranks.push_back(op.rank);
  // The words of a comparison, which sees a parameter first where it is used.
  const OverflowOp& op = f.use.name.empty() ? f.ops.front() : f.use;
  out.op = op.name;
  SetModule(IsModuleName(op.name) ? op.name : op.module, &out);
  out.frame = op.frame;
  out.function = op.function;
  out.item = Bare(f.use.name.empty() ? f.item : f.use_item);
  if (out.cause == Cause::kWeight) out.parameter = f.item.substr(f.item.find_last_of('.') + 1);
  out.target = f.item_text;
  out.since = f.since;
  out.unused = f.unused;
  if (out.cause == Cause::kOp || out.cause == Cause::kMask) out.mechanism = f.mechanism;
  out.other_op = out.cause == Cause::kMask ? f.mask : out.cause == Cause::kUninitialised ? f.reader : f.before;
  return out;
}

/// Of one op, or of one parameter that a module and a function in it read.
bool SamePlace(const StoryOrigin& a, const StoryOrigin& b) {
  const bool weight = a.cause == Cause::kWeight && b.cause == Cause::kWeight && a.module == b.module &&
                      !a.parameter.empty() && a.parameter == b.parameter;
  const auto shared = [&](int rank) { return std::find(b.ranks.begin(), b.ranks.end(), rank) != b.ranks.end(); };
  return (a.op == b.op || weight) && a.step == b.step &&
         (a.ranks.empty() || b.ranks.empty() || std::any_of(a.ranks.begin(), a.ranks.end(), shared));
}

/// Whether the golden run goes wrong at the same op in the same way.
bool AlsoIn(const OverflowReport& golden, const OverflowFinding& f) {
  const auto same = [&](const OverflowFinding& g) {
    return g.ops.front().name == f.ops.front().name && g.ops.front().rank == f.ops.front().rank && g.item == f.item;
  };
  return std::any_of(golden.first.begin(), golden.first.end(), same) ||
         std::any_of(golden.absorbed.begin(), golden.absorbed.end(), same);
}

/// The rank that handed it on may be one that got it from others: which one is not known here.
void AddReached(const OverflowFinding& f, Story* out) {
  for (const OverflowOp& call : f.reached) {
    const auto known = [&](const StoryReach& r) { return r.rank == call.rank; };
    if (std::any_of(out->reached.begin(), out->reached.end(), known)) continue;
    out->reached.push_back({call.rank, {}, call.name});
  }
}

}  // namespace

Cause CauseOf(const FirstDifference& d) {
  using Kind = FirstDifference::Kind;
  switch (d.kind) {
    case Kind::kCommunication: return Cause::kReceived;
    case Kind::kInput: return d.inside.empty() ? Cause::kInput : Cause::kCode;
    case Kind::kParameter: return Cause::kWeight;
    case Kind::kArgument: return Cause::kArgument;
    case Kind::kShape: return Cause::kShape;
    case Kind::kMissingOp: return Cause::kMissingOp;
    case Kind::kExtraOp: return Cause::kExtraOp;
    case Kind::kDType: return Cause::kDType;
    case Kind::kGrows: return Cause::kGrows;
    case Kind::kDraw: return Cause::kDraw;
    default: return Cause::kOp;
  }
}

Cause CauseOf(const Origin& o) { return o.collective ? Cause::kCollective : CauseOf(o.difference); }

std::string_view CauseName(Cause cause) {
  switch (cause) {
    case Cause::kOp: return "op";
    case Cause::kCollective: return "collective";
    case Cause::kReceived: return "received";
    case Cause::kWeight: return "weight";
    case Cause::kInput: return "input";
    case Cause::kCode: return "code";
    case Cause::kArgument: return "argument";
    case Cause::kMissingOp: return "missing_op";
    case Cause::kExtraOp: return "extra_op";
    case Cause::kShape: return "shape";
    case Cause::kDType: return "dtype";
    case Cause::kGrows: return "grows";
    case Cause::kDraw: return "random_draw";
    case Cause::kUninitialised: return "uninitialised";
    case Cause::kMask: return "mask";
  }
  return "";
}

void Story::Weigh() {
  if (!whole() && outcome != Outcome::kOrigin) outcome = Outcome::kUnknown;
}

Story StoryOf(const Divergence& d, const RulerCounts& ops, uint64_t target_only, uint64_t golden_only) {
  Story out;
  out.ops = ops;
  out.target_only = target_only;
  out.golden_only = golden_only;
  if (!d.found) {
    const bool differs = ops.inherited + ops.suspicious + ops.bug > 0;
    const bool compared = ops.bit_equal + ops.round_off > 0;
    const bool rounds = ops.round_off + ops.rewritten > 0;
    if (compared && !differs) out.outcome = rounds ? Story::Outcome::kRoundOff : Story::Outcome::kEqual;
    return out;
  }
  const bool cut = d.creator.difference.pieces || d.creator.difference.kind == FirstDifference::Kind::kDraw;
  (cut ? out.cut : out.origins).push_back(OriginOf(d.creator, d.step));
  if (cut && d.others.empty()) return out;
  out.outcome = Story::Outcome::kOrigin;
  for (const Origin& o : d.others) {
    StoryOrigin other = OriginOf(o, d.step);
    const bool told = other.cause == Cause::kWeight && std::ranges::any_of(out.origins, [&](const StoryOrigin& known) {
                        return known.cause == Cause::kWeight && SamePlace(known, other);
                      });
    if (!told) out.origins.push_back(std::move(other));
  }
  for (const Handover& h : d.handovers) out.reached.push_back({h.rank, h.from, h.op});
  AddInherited(d, &out);
  return out;
}

Story StoryOf(const OverflowReport& report) {
  Story out;
  out.compared = false;
  out.steps = report.steps;
  out.ranks = report.ranks;
  out.outcome = report.first.empty() ? Story::Outcome::kEqual : Story::Outcome::kOrigin;
  const int step = StepNumber(report.step);
  for (const OverflowFinding& f : report.first) out.origins.push_back(OriginOf(f, step));
  if (!report.first.empty()) {
    AddReached(report.first.front(), &out);
    out.inherited = report.first.front().carriers;
  }
  out.gaps = report.gaps;
  out.not_compared = report.left_out;
  out.first_not_compared = report.first_left_out;
  out.Weigh();
  return out;
}

void AddOverflow(const OverflowReport& target, const OverflowReport* golden, Story* story) {
  const int step = StepNumber(target.step);
  for (const OverflowFinding& f : target.first) {
    if ((golden && AlsoIn(*golden, f)) || (f.unused && !story->origins.empty())) continue;
    StoryOrigin origin = OriginOf(f, step);
    const auto same = std::find_if(story->origins.begin(), story->origins.end(),
                                   [&](const StoryOrigin& o) { return SamePlace(o, origin); });
    if (same != story->origins.end()) {
      same->overflow = true;
      if (same->since.kind == BadSince::Kind::kUnknown) same->since = origin.since;
      if (same->parameter.empty()) same->parameter = origin.parameter;
      same->mechanism = origin.mechanism;
      if (same->cause == Cause::kOp || same->cause == Cause::kInput) same->cause = origin.cause;
      AddReached(f, story);
      continue;
    }
    // What begins in an earlier step, or where nothing else begins, leads.
    const bool harmless = !story->origins.empty() && story->Harmless() && !f.unused;
    const bool first = story->origins.empty() || harmless || (step >= 0 && step < story->origins.front().step);
    if (first) AddReached(f, story);
    story->origins.insert(first ? story->origins.begin() : story->origins.end(), std::move(origin));
    story->outcome = Story::Outcome::kOrigin;
  }
}

}  // namespace msprobe
