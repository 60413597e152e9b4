#include "compare/pair/order_plan.h"

#include <algorithm>

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

StatusOr<PlaceKeys> Keys(const DumpFile& dump, const ModuleTree& tree) {
  const OpList& ops = dump.ops();
  PlaceKeys keys{BigArray<uint64_t>(ops.size()), BigArray<uint64_t>(ops.size())};
  const auto fill = [&](size_t task) -> Status {
    JsonDoc doc;
    std::vector<Item> scratch;
    for (size_t i = task * kOpsPerTask; i < std::min(ops.size(), (task + 1) * kOpsPerTask); ++i) {
      if (i % kStepsBetweenTrims == 0) TrimMaps();
      const NameParts name = ParseOpName(ops.NameAt(i));
      uint64_t key = MixHash(HashOf(name.base), static_cast<uint64_t>(name.direction));
      // The number of a module's call is another one where a part of the forward pass runs again.
      const NameParts parent = ParseOpName(tree.ParentOf(name.full));
      key = MixHash(key, HashOf(parent.base) + static_cast<uint64_t>(parent.direction));
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

/// True when some pair has different bases: a mapping file says what belongs together.
bool IsMapped(const DumpPair& pair) {
  for (size_t i = 0; i < pair.plan.golden_of.size(); ++i) {
    const uint32_t g = pair.plan.golden_of[i];
    if (g == kNoOp) continue;
    const std::string_view target = pair.target->ops().NameAt(i), golden = pair.golden->ops().NameAt(g);
    if (target != golden && ParseOpName(target).base != ParseOpName(golden).base) return true;
  }
  return false;
}

}  // namespace

StatusOr<MatchPlan> AlignByOrder(const DumpPair& pair, const ModuleTree& target, const ModuleTree& golden) {
  const size_t unmatched = pair.plan.target_only() + pair.plan.golden_only.size();
  if (unmatched == 0 || pair.plan.options.exact || !pair.options.check_dtype || IsMapped(pair)) return MatchPlan();
  MSP_ASSIGN_OR_RETURN(const PlaceKeys a, Keys(*pair.target, target));
  MSP_ASSIGN_OR_RETURN(const PlaceKeys b, Keys(*pair.golden, golden));
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
