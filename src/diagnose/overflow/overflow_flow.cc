#include "diagnose/overflow/overflow_flow.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "ops/collective.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

using Kind = OverflowSource::Kind;
constexpr int kNoSource = -1;
constexpr uint32_t kNoItem = UINT32_MAX;
constexpr size_t kShownAbsorbers = 8;
constexpr size_t kMostCandidates = 64;  // outputs that may be what a cast that is not recorded was given

bool Has(std::string_view api, uint16_t trait) { return TraitsOf(api).Has(trait); }
/// Ops that put a value where they are told to and are no way to make a mask of values that are there already.
bool Overwrites(std::string_view api) { return Has(api, op_trait::kOverwrites) && ChangesArguments(api); }

bool IsOutput(const BadItem& item) {
  return item.state == ItemState::kOutput || item.state == ItemState::kParameterGrad;
}

/// What is known about the bad items of one rank while time goes on.
struct RankState {
  std::vector<int> source;                                  // of each item
  std::vector<bool> consumed;                               // outputs that somebody read
  std::unordered_map<uint64_t, uint32_t> by_key, by_loose;  // the latest item with these values
  std::unordered_map<uint64_t, uint32_t> parameters;        // values -> position in scan.ops of the module
  std::unordered_map<std::string_view, uint32_t> forwards;  // forward ops with findings so far
  std::vector<uint32_t> open;                               // outputs that last and were not read so far, in order
  std::vector<uint32_t> open_grad;                          // those of them that a backward pass may go through
  std::unordered_map<uint64_t, uint32_t> cuts;  // integers that a cast cut off -> items when somebody last had them
};

class Follower {
 public:
  Follower(const std::vector<OverflowRank>& ranks, const CommGraph& graph)
      : ranks_(ranks), graph_(graph), state_(ranks.size()) {}

  std::vector<OverflowSource> Run() {
    std::vector<Step> steps = Order();
    for (size_t i = 0; i < steps.size();) {
      // Calls of one layer may depend on each other: what they put in comes before what they got.
      size_t end = i + 1;
      while (end < steps.size() && steps[i].time.sub == 0 && steps[end].time == steps[i].time) ++end;
      for (size_t k = i; k < end; ++k) TakeInputs(steps[k]);
      for (size_t k = i; k < end; ++k) GiveOutputs(steps[k]);
      i = end;
    }
    Finish();
    return std::move(sources_);
  }

 private:
  struct Step {
    CommTime time;
    uint32_t rank = 0, position = 0;  // in scan.ops
    int from = kNoSource;             // of its inputs
    uint8_t kinds = 0;                // of its inputs
    bool takes = false;               // some input is bad
    bool taken_away = false;          // of some of them it makes integers
  };
  struct Source {
    int id = kNoSource;
    uint32_t item = 0;
  };

  const BadOp& OpOf(const Step& s) const { return ranks_[s.rank].scan.ops[s.position]; }
  std::string_view NameOf(const Step& s) const { return ranks_[s.rank].dump->ops()[OpOf(s).op].name; }
  const std::vector<BadItem>& ItemsOf(const Step& s) const { return ranks_[s.rank].scan.items; }
  OpPlace PlaceOf(const Step& s) const { return {s.rank, OpOf(s).op}; }

  std::vector<Step> Order() {
    std::vector<Step> steps;
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      const OverflowScan& scan = ranks_[r].scan;
      RankState& state = state_[r];
      state.source.assign(scan.items.size(), kNoSource);
      state.consumed.assign(scan.items.size(), false);
      for (uint32_t p = 0; p < scan.ops.size(); ++p) {
        Step step;
        step.rank = r;
        step.position = p;
        step.time = graph_.TimeOf(r, scan.ops[p].op);
        steps.push_back(step);
        for (uint32_t i = scan.ops[p].begin; i < scan.ops[p].end; ++i) {
          if (scan.items[i].state == ItemState::kParameter) state.parameters.emplace(scan.items[i].key, p);
        }
      }
    }
    std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.time < b.time; });
    return steps;
  }

  int NewSource(Kind kind, const Step& step, OpPlace place, uint8_t kinds, uint32_t item) {
    OverflowSource s;
    s.kind = kind;
    s.places.push_back(place);
    s.reader = PlaceOf(step);
    s.time = step.time;
    s.kinds = kinds;
    s.item = item;
    s.constant = OpOf(step).constants != 0;
    sources_.push_back(std::move(s));
    return static_cast<int>(sources_.size()) - 1;
  }

  /// -inf as masks have it, which softmax and its kind take without harm.
  bool IsQuiet(int source) const {
    const OverflowSource& s = sources_[static_cast<size_t>(source)];
    return s.kind == Kind::kMask || (s.kind == Kind::kInput && s.kinds == kBadNegInf);
  }

  void Consume(RankState* state, uint32_t item) { state->consumed[item] = true; }

  /// The latest lasting output that nobody has read, which an op that is not in the dump may have read. A backward pass
  /// has nothing of what wants no gradient.
  int LatestOpen(RankState* state, bool backward) {
    std::vector<uint32_t>& open = backward ? state->open_grad : state->open;
    while (!open.empty() && state->consumed[open.back()]) open.pop_back();
    return open.empty() ? kNoSource : state->source[open.back()];
  }

  bool IsBackward(const Step& step) const { return ParseOpName(NameOf(step)).direction == OpDirection::kBackward; }

  /// Whether the op makes integers, or true and false, of what it is given. A comparison of one value with another
  /// decides what the program does: the value is still there.
  bool TakesAway(const Step& step, const BadItem& item) const {
    if (!OpOf(step).has_whole_output) return false;
    const OpTraits traits = TraitsOf(ApiOrClassOf(NameOf(step)));
    return traits.Has(op_trait::kCasts) || (traits.Has(op_trait::kCompares) && item.elements > 1);
  }

  /// Integers that only a cast makes, and no recorded op gave: the cast is not recorded, what it was given ends here.
  void TakeCuts(const Step& step) {
    const BadOp& op = OpOf(step);
    RankState& state = state_[step.rank];
    for (uint32_t c = op.cuts_begin; c < op.cuts_end; ++c) {
      const CutItem& cut = ranks_[step.rank].scan.cuts[c];
      const uint32_t since = std::exchange(state.cuts[cut.key], op.end);
      size_t seen = 0;
      for (size_t k = cut.output ? 0 : state.open.size(); k-- > 0 && seen < kMostCandidates; ++seen) {
        const uint32_t i = state.open[k];
        if (i < since) break;
        if (state.consumed[i] || ranks_[step.rank].scan.items[i].elements != cut.elements) continue;
        Consume(&state, i);
        Absorb(step, state.source[i]);
        break;
      }
    }
  }

  /// The earlier output that this item is, by its values; kNoItem without one.
  uint32_t Earlier(RankState* state, const BadItem& item, bool distinctive_only) {
    if (const auto it = state->by_key.find(item.key); it != state->by_key.end()) {
      if (item.distinctive || !distinctive_only) return it->second;
    }
    if (!item.distinctive) return kNoItem;
    const auto it = state->by_loose.find(item.loose);
    return it == state->by_loose.end() ? kNoItem : it->second;
  }

  bool IsUninitialised(int source) const { return sources_[static_cast<size_t>(source)].kind == Kind::kUninitialised; }

  /// `certain`: the values themselves tell it, not just a shape or the order.
  struct Link {
    int source = kNoSource;
    bool certain = false;
  };

  void Count(int source, const BadItem& item, bool same_key) {
    OverflowSource& s = sources_[static_cast<size_t>(source)];
    ++(item.distinctive ? (same_key ? s.by_identity : s.by_statistics) : s.by_shape);
  }

  /// Source of an input; makes one when it comes from outside.
  Link LinkOfInput(const Step& step, uint32_t index) {
    RankState& state = state_[step.rank];
    const BadItem& item = ItemsOf(step)[index];
    uint32_t earlier = Earlier(&state, item, true);
    if (earlier == kNoItem) {
      if (const auto it = state.parameters.find(item.key); it != state.parameters.end())
        return {ParameterSource(step, it->second, item), true};
      earlier = Earlier(&state, item, false);
      // All NaN says too little to blame memory that nobody may have read.
      if (earlier != kNoItem && IsUninitialised(state.source[earlier])) earlier = kNoItem;
    }
    if (earlier != kNoItem) {
      if (OpOf(step).has_float_output || TakesAway(step, item)) Consume(&state, earlier);
      const int source = state.source[earlier];
      Count(source, item, ranks_[step.rank].scan.items[earlier].key == item.key);
      return {source, item.distinctive};
    }
    // A constant that was made a tensor.
    if (item.scalar && (item.kinds & kBadNaN) == 0 && Has(ApiOrClassOf(NameOf(step)), op_trait::kPutsConstant)) {
      return {Remember(step, index, NewSource(Kind::kMask, step, PlaceOf(step), item.kinds, item.index)), true};
    }
    if (const int open = LatestOpen(&state, IsBackward(step)); open != kNoSource) {
      ++sources_[static_cast<size_t>(open)].by_order;
      return {open, false};
    }
    const int source = NewSource(Kind::kInput, step, PlaceOf(step), item.kinds, item.index);
    sources_[static_cast<size_t>(source)].weak = true;
    sources_[static_cast<size_t>(source)].leaf_grad = item.leaf_grad && item.state == ItemState::kInput;
    return {Remember(step, index, source), false};
  }

  bool GivesBad(const Step& step) const {
    const auto& items = ItemsOf(step);
    const BadOp& op = OpOf(step);
    return std::any_of(items.begin() + op.begin, items.begin() + op.end, IsOutput);
  }

  int Unwritten(const Step& step, uint32_t index) {
    const BadItem& item = ItemsOf(step)[index];
    const int source = NewSource(Kind::kUninitialised, step, PlaceOf(step), item.kinds, item.index);
    // A framework freed what was in it, as Megatron does with the outputs of its stages: only its gradient counts.
    sources_[static_cast<size_t>(source)].freed = item.leaf_grad;
    return source;
  }

  void CarryOn(int source, std::string_view op) {
    OverflowSource& s = sources_[static_cast<size_t>(source)];
    ++s.carriers;
    if (IsModuleName(op) || ParseOpName(op).direction != OpDirection::kForward) s.freed = false;
  }

  /// So that others who read the same tensor find this source.
  int Remember(const Step& step, uint32_t index, int source) {
    RankState& state = state_[step.rank];
    const BadItem& item = ItemsOf(step)[index];
    state.source[index] = source;
    state.consumed[index] = true;
    state.by_key[item.key] = index;
    if (item.distinctive) state.by_loose[item.loose] = index;
    return source;
  }

  int ParameterSource(const Step& step, uint32_t module, const BadItem& item) {
    const OverflowScan& scan = ranks_[step.rank].scan;
    const BadOp& op = scan.ops[module];
    for (uint32_t i = op.begin; i < op.end; ++i) {
      const BadItem& p = scan.items[i];
      if (p.state != ItemState::kParameter || p.key != item.key) continue;
      const int source = NewSource(Kind::kParameter, step, {step.rank, op.op}, item.kinds, p.index);
      sources_[static_cast<size_t>(source)].weak = true;
      return Remember(step, i, source);
    }
    return kNoSource;
  }

  void TakeInputs(Step& step) {
    const BadOp& op = OpOf(step);
    if (!Reads(step)) return;
    TakeCuts(step);
    int quiet = kNoSource, likely = kNoSource;
    for (uint32_t i = op.begin; i < op.end; ++i) {
      const BadItem& item = ItemsOf(step)[i];
      // What nobody wrote begins where something is made of it, and not before.
      if (IsOutput(item) || (item.unwritten && !GivesBad(step))) continue;
      const auto [source, certain] = item.unwritten ? Link{Unwritten(step, i), true} : LinkOfInput(step, i);
      state_[step.rank].source[i] = source;
      step.takes = true;
      step.taken_away = step.taken_away || TakesAway(step, item);
      step.kinds |= item.kinds;
      int* best = IsQuiet(source) ? &quiet : certain ? &step.from : &likely;
      if (*best == kNoSource || source < *best) *best = source;
    }
    if (step.from == kNoSource) step.from = likely;
    if (step.from == kNoSource) step.from = quiet;
    if (step.takes && !CommApi(NameOf(step)).empty()) pending_[PlaceOf(step)] = step.from;
  }

  /// False for calls that fill their arguments and give nothing to others.
  bool Reads(const Step& step) const {
    const CommCall* call = CallOf(step);
    if (!call || call->parts.empty()) return true;
    return std::any_of(call->parts.begin(), call->parts.end(), [](const CommPart& p) { return p.gives; });
  }

  static bool Takes(const CommCall& call) {
    return std::any_of(call.parts.begin(), call.parts.end(), [](const CommPart& p) { return p.takes; });
  }

  const CommCall* CallOf(const Step& step) const {
    const CommRank& rank = graph_.ranks[step.rank];
    const size_t call = rank.CallFrom(OpOf(step).op);
    return call < rank.calls.size() && rank.calls[call].op == OpOf(step).op ? &rank.calls[call] : nullptr;
  }

  void GiveOutputs(Step& step) {
    const BadOp& op = OpOf(step);
    RankState& state = state_[step.rank];
    uint8_t kinds = 0;
    uint32_t first = kNoItem;
    for (uint32_t i = op.begin; i < op.end; ++i) {
      if (!IsOutput(ItemsOf(step)[i])) continue;
      kinds |= ItemsOf(step)[i].kinds;
      if (first == kNoItem) first = i;
    }
    if (first == kNoItem) {
      if (step.takes && (op.has_float_output || step.taken_away)) Absorb(step, step.from);
      return;
    }
    // What a reduction leaves in the buffers of those it is not for is nobody's value.
    if (const CommCall* call = CallOf(step); call && !step.takes && !call->parts.empty() && !Takes(*call)) return;
    const int source = SourceOfOutput(step, kinds, first);
    sources_[static_cast<size_t>(source)].carried |= kinds;
    if (step.takes) CarryOn(source, NameOf(step));
    for (uint32_t i = op.begin; i < op.end; ++i) {
      const BadItem& item = ItemsOf(step)[i];
      if (!IsOutput(item)) continue;
      // A module gives what one of its ops gave: the same tensor, not another one.
      if (const uint32_t earlier = Earlier(&state, item, false); earlier != kNoItem) Consume(&state, earlier);
      state.source[i] = source;
      state.by_key[item.key] = i;
      if (item.distinctive) state.by_loose[item.loose] = i;
      if (IsQuiet(source) || sources_[static_cast<size_t>(source)].kind == Kind::kUninitialised) continue;
      state.open.push_back(i);
      // Gradients themselves want none.
      if (!item.no_grad || item.state == ItemState::kParameterGrad || IsBackward(step)) state.open_grad.push_back(i);
    }
    if (ParseOpName(NameOf(step)).direction == OpDirection::kForward)
      state.forwards.emplace(NameOf(step), step.position);
  }

  void Absorb(const Step& step, int source) {
    OverflowSource& s = sources_[static_cast<size_t>(source)];
    ++s.absorbers;
    if (s.absorbed_at.size() < kShownAbsorbers) s.absorbed_at.push_back(PlaceOf(step));
    RankState& state = state_[step.rank];
    if (ParseOpName(NameOf(step)).direction == OpDirection::kForward)
      state.forwards.emplace(NameOf(step), step.position);
  }

  int SourceOfOutput(Step& step, uint8_t kinds, uint32_t first) {
    const BadItem& item = ItemsOf(step)[first];
    const std::string_view name = NameOf(step);
    const std::string_view api = ApiOrClassOf(name);
    if (Has(api, op_trait::kUndefined)) return NewSource(Kind::kUninitialised, step, PlaceOf(step), kinds, item.index);
    if (step.takes) return Carried(step, kinds, item);
    if (!CommApi(name).empty()) {
      if (const int source = Received(step, kinds, item); source != kNoSource) return source;
    }
    RankState& state = state_[step.rank];
    const bool module = IsModuleName(name);
    if (const uint32_t earlier = Earlier(&state, item, !module); earlier != kNoItem) {
      CarryOn(state.source[earlier], name);
      return state.source[earlier];
    }
    if (const int source = FromForward(&state, name); source != kNoSource) {
      CarryOn(source, name);
      return source;
    }
    const bool gradient = item.state == ItemState::kParameterGrad;
    if (module || gradient) {
      if (const int open = LatestOpen(&state, gradient || IsBackward(step)); open != kNoSource) {
        ++sources_[static_cast<size_t>(open)].by_order;
        return open;
      }
    }
    if (gradient) {
      if (const int source = ArrivedAtBackward(step); source != kNoSource) return source;
    }
    const bool mask = kinds == kBadNegInf && (Has(api, op_trait::kPutsConstant) || (OpOf(step).constants & kBadNegInf));
    const int source = NewSource(mask ? Kind::kMask : Kind::kOp, step, PlaceOf(step), kinds, item.index);
    sources_[static_cast<size_t>(source)].weak = gradient;
    sources_[static_cast<size_t>(source)].own =
        !gradient && !module && !mask && OpOf(step).plain && CommApi(name).empty();
    sources_[static_cast<size_t>(source)].api = ParseOpName(name).base;
    return source;
  }

  /// Gradients of parameters stand before their module's backward op, which shows whether its own input was bad.
  int ArrivedAtBackward(const Step& step) {
    constexpr uint32_t kLookAhead = 16;
    const OverflowScan& scan = ranks_[step.rank].scan;
    const NameParts own = ParseOpName(NameOf(step));
    for (uint32_t p = step.position + 1; p < scan.ops.size() && p <= step.position + kLookAhead; ++p) {
      const BadOp& op = scan.ops[p];
      const NameParts other = ParseOpName(ranks_[step.rank].dump->ops()[op.op].name);
      if (other.base != own.base || other.direction != OpDirection::kBackward || op.begin == op.end) continue;
      uint32_t item = op.begin;
      const int source = NewSource(IsOutput(scan.items[item]) ? Kind::kOp : Kind::kInput, step, {step.rank, op.op},
                                   scan.items[item].kinds, scan.items[item].index);
      sources_[static_cast<size_t>(source)].weak = true;
      return source;
    }
    return kNoSource;
  }

  /// Of an op with bad inputs. NaN made of a mask's -inf is a beginning: the mask alone does no harm.
  int Carried(const Step& step, uint8_t kinds, const BadItem& item) {
    OverflowSource& from = sources_[static_cast<size_t>(step.from)];
    if (from.kind == Kind::kUninitialised && from.carriers == 0) {
      from.reader = PlaceOf(step);
      from.time = step.time;
    }
    if (!IsQuiet(step.from)) return step.from;
    const std::string_view api = ApiOrClassOf(NameOf(step));
    const bool makes_nan = (kinds & kBadNaN) && !(step.kinds & kBadNaN);
    const bool makes_inf = (kinds & kBadPosInf) && !(step.kinds & kBadPosInf) && Has(api, op_trait::kTakesMask);
    if (!makes_nan && !makes_inf) return step.from;
    const std::string_view origin = ranks_[from.reader.rank].dump->ops()[from.reader.op].name;
    if (!Has(api, op_trait::kTakesMask) && from.kind == Kind::kMask && Overwrites(ApiOrClassOf(origin))) {
      from.kind = Kind::kOp;  // no mask, as it turns out
      return step.from;
    }
    const int mask = step.from;
    const int source = NewSource(Kind::kOp, step, PlaceOf(step), kinds, item.index);
    sources_[static_cast<size_t>(source)].mask = mask;
    return source;
  }

  /// The forward op of a backward op keeps its inputs and outputs for it.
  int FromForward(RankState* state, std::string_view name) {
    const NameParts parsed = ParseOpName(name);
    if (parsed.direction != OpDirection::kBackward) return kNoSource;
    std::string forward(parsed.base);
    forward.append(parsed.number_last ? ".forward." : ".").append(parsed.number);
    if (!parsed.number_last) forward.append(".forward");
    const auto it = state->forwards.find(forward);
    if (it == state->forwards.end()) return kNoSource;
    const OverflowScan& scan = ranks_[static_cast<size_t>(state - state_.data())].scan;
    int best = kNoSource;
    for (uint32_t i = scan.ops[it->second].begin; i < scan.ops[it->second].end; ++i) {
      const int source = state->source[i];
      if (source == kNoSource || IsQuiet(source)) continue;
      if (best == kNoSource || source < best) best = source;
    }
    return best;
  }

  /// What a call brought from others; kNoSource for calls that only give.
  int Received(const Step& step, uint8_t kinds, const BadItem& item) {
    const CommCall* call = CallOf(step);
    if (!call) return kNoSource;
    int best = kNoSource;
    const auto position = static_cast<size_t>(call - graph_.ranks[step.rank].calls.data());
    for (const CommMember& m : graph_.GiversOf(step.rank, position)) {
      const OpPlace giver{m.rank, static_cast<uint32_t>(graph_.ranks[m.rank].calls[m.call].op)};
      const auto it = pending_.find(giver);
      if (it != pending_.end() && (best == kNoSource || it->second < best)) best = it->second;
    }
    if (best != kNoSource) {
      OverflowSource& s = sources_[static_cast<size_t>(best)];
      ++s.carriers;
      if (s.places[0].rank != step.rank) s.reached.emplace(step.rank, PlaceOf(step));
      return best;
    }
    bool missing = call->parts.empty();
    for (const CommPart& part : call->parts) {
      if (!part.takes) continue;
      missing = missing || !graph_.events[part.event].missing.empty();
      if (const auto it = overflown_.find(part.event); it != overflown_.end()) {
        sources_[static_cast<size_t>(it->second)].places.push_back(PlaceOf(step));
        return it->second;
      }
    }
    const int source =
        NewSource(missing ? Kind::kMissingRank : Kind::kCommunication, step, PlaceOf(step), kinds, item.index);
    for (const CommPart& part : call->parts) {
      if (part.takes) overflown_.emplace(part.event, source);
    }
    return source;
  }

  void Finish() {
    for (const RankState& state : state_) {
      const OverflowScan& scan = ranks_[static_cast<size_t>(&state - state_.data())].scan;
      for (uint32_t i = 0; i < scan.items.size(); ++i) {
        if (IsOutput(scan.items[i]) && state.source[i] != kNoSource && !state.consumed[i])
          ++sources_[static_cast<size_t>(state.source[i])].open;
      }
    }
  }

  const std::vector<OverflowRank>& ranks_;
  const CommGraph& graph_;
  std::vector<RankState> state_;
  std::vector<OverflowSource> sources_;
  std::map<OpPlace, int> pending_;     // what calls and ops put in
  std::map<uint32_t, int> overflown_;  // event -> source
};

}  // namespace

std::vector<OverflowSource> FollowOverflow(const std::vector<OverflowRank>& ranks, const CommGraph& graph) {
  return Follower(ranks, graph).Run();
}

}  // namespace msprobe
