#include "compare/first_difference/lone_ops.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "compare/first_difference/random_draw.h"
#include "compare/first_difference/walk_parts.h"
#include "compare/values/item_views.h"
#include "ops/collective.h"
#include "ops/framework_names.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

using FoundKind = FirstDifference::Kind;

constexpr size_t kMostAround = 200;  // ops looked at for one that agrees
constexpr size_t kMostMoved = 500;   // pairs of lone ops that are looked at
constexpr size_t kNear = 2;          // matched ops that may stand between a lone op and what it changes

}  // namespace

void LoneOps::Add(bool golden, uint32_t op, size_t before) {
  Lone lone;
  lone.golden = golden;
  lone.op = op;
  lone.before = before;
  const std::string_view name = DumpOf(golden).ops().NameAt(op);
  lone.moves = OnlyMovesOrCasts(name) || (in_.plan.cross && CommonFunctionOf(ApiOrClassOf(name)).moves);
  lone.parent = TreeOf(golden).ParentOf(name);
  if (!sought_moved_) FindMoved();
  if (moved_[golden].contains(op)) return;
  const bool covered = rewrites_.Cover(name, golden, before);
  const auto is_this = [&](const OneSidedModule& m) { return m.golden == golden && m.op == op; };
  const bool other_form = IsInOtherForm(in_, name, golden);  // what the module around it gives will tell
  // Modules of two frameworks need not be the same.
  if (!in_.plan.cross && !other_form && std::ranges::any_of(in_.one_sided, is_this))
    own_modules_.push_back({lone, covered});
  if (covered && !lone.moves && !IsModuleName(name)) AddReplaced(name, golden);
  lone.known = other_form || (!covered && rewrites_.Knows(name, golden));
  const bool forward = !IsModuleName(name) && ParseOpName(name).direction == OpDirection::kForward && !lone.moves;
  if (forward && (ChangesArguments(ApiOf(name)) || (!covered && !lone.known))) makers_[golden].push_back(op);
  if (covered) return rewrites_.Learn(name, golden);
  lone_.push_back(lone);
}

void LoneOps::FindMoved() {
  sought_moved_ = true;
  if (in_.plan.cross || in_.plan.fused) return;
  std::unordered_map<std::string, std::vector<uint32_t>> places;  // of the golden run, by function and module
  const auto place_of = [&](bool golden, uint32_t op) {
    const std::string_view name = DumpOf(golden).ops().NameAt(op);
    const bool function = !IsModuleName(name) && ParseOpName(name).direction == OpDirection::kForward;
    return function && !IsCommunication(name)
               ? std::string(ApiOf(name)) + " " + std::string(TreeOf(golden).ParentOf(name))
               : std::string();
  };
  for (const uint32_t op : in_.plan.golden_only) {
    if (std::string place = place_of(true, op); !place.empty()) places[std::move(place)].push_back(op);
  }
  size_t read = 0;
  JsonDoc a, b;
  OpDiff diff;
  for (uint32_t op = 0; op < ops_.size() && !places.empty() && read < kMostMoved; ++op) {
    if (in_.plan.golden_of[op] != kNoOp || in_.plan.NotSeen(op)) continue;
    const auto at = places.find(place_of(false, op));
    if (at == places.end()) continue;
    for (uint32_t& golden : at->second) {
      if (golden == kNoOp || ++read > kMostMoved) continue;
      if (!in_.pair.target->ParseOp(op, &a).ok() || !in_.pair.golden->ParseOp(golden, &b).ok()) return;
      DiffOps(ops_.NameAt(op), a, in_.pair.golden->ops().NameAt(golden), &b, in_.pair.options, &diff);
      const OpDistance d = DistanceOf(diff, in_.pair.options.mode);
      if (!d.has_input || !d.has_output || d.argument || d.chosen || d.input > 1 || d.output > 1) continue;
      moved_[0].insert(op);
      moved_[1].insert(golden);
      golden = kNoOp;
      break;
    }
  }
}

void LoneOps::AddReplaced(std::string_view op, bool golden) {
  bool outside = true;  // of all modules
  TreeOf(golden).ForEachAround(op, [&](std::string_view name) {
    outside = outside && !IsModuleName(name);
    replaced_[golden].Insert(name);
    return true;
  });
  if (outside) replaced_[golden].Insert("");
}

const Lone* LoneOps::FirstOwnModule() const {
  const auto found = std::ranges::find(own_modules_, false, &OwnModule::covered);
  return found == own_modules_.end() ? nullptr : &found->lone;
}

bool LoneOps::IsReplaced(const Lone& own) const {
  return std::ranges::any_of(lone_, [&](const Lone& other) {
    const std::string_view name = DumpOf(other.golden).ops().NameAt(other.op);
    return other.golden != own.golden && !other.moves && !IsModuleName(name) && other.parent == own.parent;
  });
}

std::vector<std::string> LoneOps::ShapesOf(size_t i, bool results) const {
  std::vector<std::string> out;
  ItemViews reader(*in_.pair.target, CompareMode::kStructure);
  if (!reader.Read(i).ok()) return out;  // it was read before
  for (const ItemView& item : reader.items()) {
    if (item.tensor && IsResult(item.state) == results) out.push_back(item.shape);
  }
  return out;
}

const Lone* LoneOps::LastOfShape(const std::vector<std::string>& shapes, size_t begin, size_t i) const {
  const auto fits = [&](const ItemView& item) {
    return item.tensor && item.shape != "[]" && std::ranges::find(shapes, item.shape) != shapes.end();
  };
  for (size_t k = lone_.size(); k-- > 0;) {
    const Lone& lone = lone_[k];
    if (lone.before > i || lone.before < begin || !IsCommunication(DumpOf(lone.golden).ops().NameAt(lone.op))) continue;
    ItemViews call(DumpOf(lone.golden), CompareMode::kStructure);
    if (!call.Read(lone.op).ok()) return nullptr;  // the same
    if (std::ranges::any_of(call.items(), fits)) return &lone;
  }
  return nullptr;
}

const Lone* LoneOps::Exchange(size_t i) const { return LastOfShape(ShapesOf(i, false), 0, i); }

std::optional<Lone> LoneOps::ForwardOf(size_t i) const {
  for (const bool golden : {false, true}) {
    const uint32_t op = golden ? in_.plan.golden_of[i] : static_cast<uint32_t>(i);
    const uint32_t forward = op == kNoOp ? op : CalledBefore(golden, op);
    if (forward == op) continue;
    Lone out;
    out.golden = golden;
    out.op = forward;
    out.before = i;
    return out;
  }
  return std::nullopt;
}

const Lone* LoneOps::ExchangeOfGradient(size_t i) const {
  const NameParts name = ParseOpName(ops_.NameAt(i));
  if (name.direction != OpDirection::kParameterGrad || lone_.empty()) return nullptr;
  for (size_t k = i; k-- > 0;) {
    const NameParts other = ParseOpName(ops_.NameAt(k));
    if (other.direction == name.direction && other.base == name.base) return LastOfShape(ShapesOf(i, true), k + 1, i);
  }
  return nullptr;
}

const Lone* LoneOps::FirstBehindDraw(size_t op) const {
  if (in_.plan.fused || in_.plan.cross) return nullptr;
  const auto found = std::ranges::find_if(lone_, [&](const Lone& lone) {
    const std::string_view name = DumpOf(lone.golden).ops().NameAt(lone.op);
    const bool forward = ParseOpName(name).direction == OpDirection::kForward;
    return forward && !lone.moves && !lone.known && lone.before >= op && !DrawsRandomly(name) && !IsReplaced(lone);
  });
  return found == lone_.end() ? nullptr : &*found;
}

/// Whether a module around it has another class in the other run: it is made of other parts, as with adapters.
bool LoneOps::IsPartOfOtherClass(const Lone& own) const {
  bool other = false;
  TreeOf(own.golden).ForEachAround(DumpOf(own.golden).ops().NameAt(own.op), [&](std::string_view name) {
    const auto at = DumpOf(own.golden).FindOp(name);
    if (!at || !IsModuleName(name)) return true;
    const auto& golden_of = in_.plan.golden_of;
    const auto found = std::find(golden_of.begin(), golden_of.end(), static_cast<uint32_t>(*at));
    if (own.golden && found == golden_of.end()) return true;
    const size_t target = own.golden ? static_cast<size_t>(found - golden_of.begin()) : *at;
    if (golden_of[target] == kNoOp) return true;
    const std::string_view golden = in_.pair.golden->ops().NameAt(golden_of[target]);
    other = ApiOrClassOf(ops_.NameAt(target)) != ApiOrClassOf(golden);
    return false;
  });
  return other;
}

const Lone* LoneOps::FirstWithoutEffect() const {
  bool apis = false;
  for (size_t i = 0; i < ops_.size() && !apis && !own_modules_.empty(); ++i) apis = !IsModuleName(ops_.NameAt(i));
  if (!apis) return nullptr;
  for (const OwnModule& own : own_modules_) {
    const std::string_view parent = TreeOf(own.lone.golden).ParentOf(DumpOf(own.lone.golden).ops().NameAt(own.lone.op));
    if (IsPartOfOtherClass(own.lone)) continue;
    if (!replaced_[!own.lone.golden].Has(IsModuleName(parent) ? parent : std::string_view())) return &own.lone;
  }
  return nullptr;
}

/// The outermost module around `lone` that its run has more, or the op itself: of two frameworks modules need not be
/// the same. A module that the other run calls, too, stands elsewhere in its order and is not missing there.
uint32_t LoneOps::Outermost(const Lone& lone) const {
  if (in_.plan.cross) return lone.op;
  const DumpFile& dump = DumpOf(lone.golden);
  const auto is_lone = [&](size_t op) {
    return lone.golden ? std::binary_search(in_.plan.golden_only.begin(), in_.plan.golden_only.end(), op)
                       : in_.plan.golden_of[op] == kNoOp && !in_.plan.NotSeen(op);
  };
  uint32_t out = lone.op;
  TreeOf(lone.golden).ForEachAround(dump.ops().NameAt(lone.op), [&](std::string_view name) {
    const auto at = dump.FindOp(name);
    if (!at || !is_lone(*at) || DumpOf(!lone.golden).FindOp(name)) return false;
    out = static_cast<uint32_t>(*at);
    return true;
  });
  return out;
}

uint32_t LoneOps::CalledBefore(bool golden, uint32_t op) const {
  const DumpFile& dump = DumpOf(golden);
  const NameParts name = ParseOpName(dump.ops().NameAt(op));
  const auto forward =
      name.direction == OpDirection::kBackward ? dump.FindOp(ForwardNameOf(name)) : std::optional<size_t>();
  if (!forward) return op;
  const bool lone = golden ? std::ranges::binary_search(in_.plan.golden_only, static_cast<uint32_t>(*forward))
                           : in_.plan.golden_of[*forward] == kNoOp && !in_.plan.NotSeen(*forward);
  return lone ? static_cast<uint32_t>(*forward) : op;
}

void LoneOps::Set(const Lone& lone, FirstDifference* found) const {
  const uint32_t op = CalledBefore(lone.golden, Outermost(lone));
  found->kind = lone.golden ? FoundKind::kMissingOp : FoundKind::kExtraOp;
  if (lone.golden) {
    found->golden_op = op;
  } else {
    found->op = op;
    found->golden_op = kNoOp;
  }
}

const Lone* LoneOps::Before(FoundKind kind, size_t i) const {
  if (in_.plan.cross) return BeforeAcross(kind, i);
  const bool module = IsModuleName(ops_.NameAt(i));
  // Other ranks see what a permutation before a communication hides from the statistics of its input.
  const bool sent = kind == FoundKind::kOp && IsCommunication(ops_.NameAt(i));
  if (kind == FoundKind::kArgument || (kind == FoundKind::kOp && !module && !sent)) return nullptr;
  const std::string_view parent = module ? std::string_view() : in_.target_tree.ParentOf(ops_.NameAt(i));
  for (size_t k = lone_.size(); k-- > 0;) {
    const Lone& lone = lone_[k];
    const bool inside = module && !lone.parent.empty() && lone.parent == ops_.NameAt(i);
    const bool beside = !sent && !parent.empty() && lone.parent == parent;
    const bool near = (kind != FoundKind::kOp || sent) && i - lone.before <= kNear;
    if (lone.known) continue;
    if (inside || beside || near) return FirstOfGroup(k);
  }
  return nullptr;
}

std::string_view LoneOps::HomeOf(bool golden, std::string_view op) const {
  if (target_of_.empty()) {
    for (size_t t = 0; t < ops_.size(); ++t) {
      const uint32_t g = in_.plan.golden_of[t];
      if (g != kNoOp && IsModuleName(ops_.NameAt(t))) target_of_.emplace(g, static_cast<uint32_t>(t));
    }
    target_of_.emplace(kNoOp, 0);  // so that it is made once
  }
  std::string_view home;
  TreeOf(golden).ForEachAround(op, [&](std::string_view name) {
    const auto at = DumpOf(golden).FindOp(name);
    if (!at || !IsModuleName(name)) return true;
    if (!golden && in_.plan.golden_of[*at] != kNoOp) home = name;
    if (const auto it = golden ? target_of_.find(static_cast<uint32_t>(*at)) : target_of_.end(); it != target_of_.end())
      home = ops_.NameAt(it->second);
    return home.empty();
  });
  return home;
}

const Lone* LoneOps::BeforeAcross(FoundKind kind, size_t i) const {
  // Two implementations are made of other functions and helpers everywhere.
  if (in_.plan.implementations) return nullptr;
  const std::string_view own = ops_.NameAt(i);
  const bool module = IsModuleName(own);
  const NameParts parts = ParseOpName(own);
  if (kind == FoundKind::kArgument || (kind == FoundKind::kOp && !module)) return nullptr;
  const std::string_view home = module ? own : HomeOf(false, own);
  // What stands ahead of an op whose values agree has done its work there.
  size_t agrees = 0;
  for (size_t j = i, seen = 0; j-- > 0 && seen < kMostAround && agrees == 0; ++seen) {
    const std::string_view name = ops_.NameAt(j);
    const OpDistance& d = in_.distances[j];
    const bool compared = d.matched && d.has_input && d.has_output && d.values && !d.shapes;
    if (compared && d.rounded <= 1 && d.output <= 1 && !IsModuleName(name) && HomeOf(false, name) == home)
      agrees = j + 1;
  }
  const Lone* found[2] = {nullptr, nullptr};  // the last of each run
  for (size_t k = lone_.size(); k-- > 0;) {
    const Lone& lone = lone_[k];
    const std::string_view name = DumpOf(lone.golden).ops().NameAt(lone.op);
    if (lone.before < agrees) break;
    if (lone.moves || lone.known || found[lone.golden] || IsModuleName(name)) continue;
    if (ParseOpName(name).direction != parts.direction || HomeOf(lone.golden, name) != home) continue;
    found[lone.golden] = &lone;
    // Where each run has an op of its own, they stand for each other.
    if (found[0] && found[1]) return nullptr;
  }
  return found[0] ? found[0] : found[1];
}

/// The op between the same neighbours in the other run, where both runs have one of their own there.
std::string_view BetweenTheSame(const DumpPair& pair, const MatchPlan& plan, std::string_view op, bool golden) {
  const auto at = (golden ? pair.golden : pair.target)->FindOp(op);
  const auto& golden_of = plan.golden_of;
  size_t own = at ? *at : 0;
  if (golden && at) {
    const auto before = std::ranges::find(golden_of, static_cast<uint32_t>(own - 1));
    own = own > 0 && before != golden_of.end() ? static_cast<size_t>(before - golden_of.begin()) + 1 : 0;
  }
  if (own == 0 || own + 1 >= golden_of.size() || golden_of[own] != kNoOp || plan.NotSeen(own)) return {};
  const uint32_t before = golden_of[own - 1], behind = golden_of[own + 1];
  if (before == kNoOp || behind != before + 2) return {};
  return golden ? pair.target->ops().NameAt(own) : pair.golden->ops().NameAt(before + 1);
}

std::string StandsFor(const DumpPair& pair, const MatchPlan& plan, const ModuleTree& target,
                      const ModuleTree& golden_tree, std::string_view op, bool golden) {
  const auto counts = [](std::string_view name) {
    return !IsModuleName(name) && !OnlyMovesOrCasts(name) && ParseOpName(name).direction == OpDirection::kForward;
  };
  if (plan.cross || !counts(op)) return {};
  const std::string_view own = (golden ? golden_tree : target).ParentOf(op);
  const auto at =
      IsModuleName(op) || !IsModuleName(own) ? std::nullopt : (golden ? pair.golden : pair.target)->FindOp(own);
  if (!at) {
    const std::string_view other = BetweenTheSame(pair, plan, op, golden);
    return counts(other) ? std::string(other) : std::string();
  }
  const auto& golden_of = plan.golden_of;
  size_t module =
      golden ? static_cast<size_t>(std::ranges::find(golden_of, static_cast<uint32_t>(*at)) - golden_of.begin()) : *at;
  if (module == golden_of.size() || golden_of[module] == kNoOp) return {};
  const std::string_view mine = pair.target->ops().NameAt(module),
                         theirs = pair.golden->ops().NameAt(golden_of[module]);
  std::vector<std::string_view> called[2];
  const auto take = [&](bool of_golden, size_t i) {
    const std::string_view name = (of_golden ? pair.golden : pair.target)->ops().NameAt(i);
    if (counts(name) && (of_golden ? golden_tree : target).ParentOf(name) == (of_golden ? theirs : mine))
      called[of_golden].push_back(name);
  };
  for (size_t i = 0; i < golden_of.size(); ++i) {
    if (golden_of[i] == kNoOp && !plan.NotSeen(i)) take(false, i);
  }
  for (const uint32_t i : plan.golden_only) take(true, i);
  const bool one = called[0].size() == 1 && called[1].size() == 1 && called[golden].front() == op;
  return one ? std::string(called[!golden].front()) : std::string();
}

/// The first of the lone ops that stand together with lone_[k], of those that change values if there are any.
const Lone* LoneOps::FirstOfGroup(size_t k) const {
  const auto together = [](const Lone& a, const Lone& b) { return b.before - a.before <= 1 + kNear; };
  size_t first = k;
  while (first > 0 && together(lone_[first - 1], lone_[first])) --first;
  for (size_t j = first; j <= k; ++j) {
    if (!lone_[j].moves && !lone_[j].known) return &lone_[j];
  }
  return &lone_[first];
}

}  // namespace msprobe
