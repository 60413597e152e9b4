#include "compare/pair/order_plan.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/page_trim.h"
#include "base/parallel.h"
#include "base/text.h"
#include "compare/pair/unseen.h"
#include "match/modules/hash_mix.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr size_t kOpsPerTask = 512;

/// The shapes of an op's tensors, and how many items it has.
uint64_t ShapesHash(std::string_view name, const JsonValue& op, std::vector<Item>* scratch) {
  scratch->clear();
  FlattenOp(name, op, scratch);
  uint64_t hash = scratch->size();
  for (const Item& item : *scratch) {
    const JsonValue* shape = item.leaf ? item.leaf->Find("shape") : nullptr;
    hash = MixHash(hash, shape && shape->IsArray() ? shape->size() : 99);
    if (!shape || !shape->IsArray()) continue;
    for (const JsonValue& n : shape->Items()) hash = MixHash(hash, n.IsUInt() ? n.UInt() : 0);
  }
  return hash;
}

/// What ops at the same place have in common, and that with the shapes of calls. Finding the module of an op costs more
/// than its place here.
struct PlaceKeys {
  BigArray<uint64_t> plain, shaped;
};

/// What modules of the target are called in the golden run, where one of the runs wraps them or has another class
/// there.
struct GoldenNames {
  std::unordered_map<std::string_view, std::string_view> of;
  /// Then what wraps modules, and is in one run only, is not where they are called.
  std::unordered_set<std::string_view> paired[2];
};

GoldenNames NamesInGolden(const DumpPair& pair) {
  GoldenNames out;
  for (size_t i = 0; i < pair.plan.golden_of.size(); ++i) {
    const uint32_t g = pair.plan.golden_of[i];
    if (g == kNoOp || !IsModuleName(pair.target->ops().NameAt(i))) continue;
    const std::string_view mine = ParseOpName(pair.target->ops().NameAt(i)).base;
    const std::string_view theirs = ParseOpName(pair.golden->ops().NameAt(g)).base;
    if (mine != theirs) out.of.emplace(mine, theirs);
  }
  for (size_t i = 0; i < pair.plan.golden_of.size() && !out.of.empty(); ++i) {
    const uint32_t g = pair.plan.golden_of[i];
    if (g == kNoOp) continue;
    out.paired[0].insert(ParseOpName(pair.target->ops().NameAt(i)).base);
    out.paired[1].insert(ParseOpName(pair.golden->ops().NameAt(g)).base);
  }
  return out;
}

StatusOr<PlaceKeys> Keys(const DumpFile& dump, const ModuleTree& tree, const GoldenNames& names, bool golden) {
  const auto named = [&](std::string_view base) {
    const auto found = golden || names.of.empty() ? names.of.end() : names.of.find(base);
    return found == names.of.end() ? base : found->second;
  };
  const auto parent_of = [&](std::string_view op) {
    std::string_view parent = tree.ParentOf(op);
    if (names.of.empty()) return parent;
    tree.ForEachAround(op, [&](std::string_view around) {
      parent = IsModuleName(around) && !names.paired[golden].contains(ParseOpName(around).base) ? "" : around;
      return parent.empty();
    });
    return parent;
  };
  const OpList& ops = dump.ops();
  PlaceKeys keys{BigArray<uint64_t>(ops.size()), BigArray<uint64_t>(ops.size())};
  const auto fill = [&](size_t task) -> Status {
    JsonDoc doc;
    std::vector<Item> scratch;
    for (size_t i = task * kOpsPerTask; i < std::min(ops.size(), (task + 1) * kOpsPerTask); ++i) {
      if (i % kStepsBetweenTrims == 0) TrimMaps();
      const NameParts name = ParseOpName(ops.NameAt(i));
      uint64_t key = MixHash(HashOf(named(name.base)), static_cast<uint64_t>(name.direction));
      // The number of a module's call is another one where a part of the forward pass runs again.
      const NameParts parent = ParseOpName(parent_of(name.full));
      key = MixHash(key, HashOf(named(parent.base)) + static_cast<uint64_t>(parent.direction));
      keys.plain[i] = key;
      if (!IsModuleName(name.full)) {
        MSP_RETURN_IF_ERROR(dump.ParseOp(i, &doc));
        key = MixHash(key, ShapesHash(name.full, doc, &scratch));
      }
      keys.shaped[i] = key;
    }
    return OkStatus();
  };
  MSP_RETURN_IF_ERROR(ParallelFor((ops.size() + kOpsPerTask - 1) / kOpsPerTask, fill));
  return keys;
}

MatchPlan PlanOf(const DumpPair& pair, const BigArray<uint64_t>& target, const BigArray<uint64_t>& golden) {
  NumberIds ids;
  const auto intern = [&](const BigArray<uint64_t>& keys) {
    BigArray<uint32_t> out;
    out.reserve(keys.size());
    for (const uint64_t key : keys) out.push_back(ids.Enter(key));
    return out;
  };
  const BigArray<uint32_t> a = intern(target), b = intern(golden);
  MatchPlan plan;
  plan.options = pair.plan.options;
  plan.golden_of.assign(a.size(), kNoOp);
  std::vector<bool> taken(b.size(), false);
  for (const auto& [i, j] : AlignSequences(a, b)) {
    plan.golden_of[i] = j;
    taken[j] = true;
    ++plan.matched;
  }
  for (uint32_t j = 0; j < b.size(); ++j) {
    if (!taken[j]) plan.golden_only.push_back(j);
  }
  return plan;
}

/// Pairs ops of equal keys that stand between the same paired ops: an op whose shapes differ is still that op.
void FillGaps(const BigArray<uint64_t>& target, const BigArray<uint64_t>& golden, MatchPlan* plan) {
  std::vector<bool> taken(golden.size(), true);
  for (const uint32_t j : plan->golden_only) taken[j] = false;
  uint32_t next = 0;
  for (size_t i = 0; i < target.size(); ++i) {
    if (plan->golden_of[i] != kNoOp) {
      next = std::max(next, plan->golden_of[i] + 1);
      continue;
    }
    uint32_t j = next;
    while (j < golden.size() && !taken[j] && golden[j] != target[i]) ++j;
    if (j >= golden.size() || taken[j]) continue;
    plan->golden_of[i] = j;
    taken[j] = true;
    ++plan->matched;
    next = j + 1;
  }
  const auto left =
      std::remove_if(plan->golden_only.begin(), plan->golden_only.end(), [&](uint32_t j) { return taken[j]; });
  plan->golden_only.resize(static_cast<size_t>(left - plan->golden_only.begin()));
}

/// True when a mapping file says what belongs together.
bool IsMapped(const DumpPair& pair) {
  for (size_t i = 0; i < pair.plan.golden_of.size(); ++i) {
    const uint32_t g = pair.plan.golden_of[i];
    if (g == kNoOp) continue;
    const std::string_view target = pair.target->ops().NameAt(i), golden = pair.golden->ops().NameAt(g);
    if (target == golden || ParseOpName(target).base == ParseOpName(golden).base) continue;
    if (!IsModuleName(target) || pair.plan.how != "exact") return true;
  }
  return false;
}

}  // namespace

StatusOr<MatchPlan> AlignByOrder(const DumpPair& pair, const ModuleTree& target, const ModuleTree& golden) {
  const size_t unmatched = pair.plan.target_only() + pair.plan.golden_only.size();
  if (unmatched == 0 || pair.plan.options.exact || !pair.options.check_dtype || IsMapped(pair)) return MatchPlan();
  const GoldenNames names = NamesInGolden(pair);
  MSP_ASSIGN_OR_RETURN(const PlaceKeys a, Keys(*pair.target, target, names, false));
  MSP_ASSIGN_OR_RETURN(const PlaceKeys b, Keys(*pair.golden, golden, names, true));
  MatchPlan plan = PlanOf(pair, a.shaped, b.shaped);
  // Runs that are split differently share no shapes.
  if (plan.matched * 2 < pair.plan.matched) {
    plan = PlanOf(pair, a.plain, b.plain);
  } else {
    FillGaps(a.plain, b.plain, &plan);
  }
  LeaveOutUnseen(pair.gaps, *pair.target, *pair.golden, &plan);
  return plan;
}

}  // namespace msprobe
