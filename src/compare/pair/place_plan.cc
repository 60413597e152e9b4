#include "compare/pair/place_plan.h"

#include <array>
#include <bit>
#include <deque>
#include <string>
#include <unordered_map>

#include "match/modules/hash_mix.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

/// What a dump tells of the values of an op.
uint64_t ValuesHash(std::string_view name, const JsonValue& op, std::vector<Item>* scratch) {
  static constexpr std::array kTold{"Max", "Min", "Mean", "Norm", "md5", "value"};
  scratch->clear();
  FlattenOp(name, op, scratch);
  uint64_t hash = scratch->size();
  for (const Item& item : *scratch) {
    for (const char* key : kTold) {
      const JsonValue* v = item.leaf ? item.leaf->Find(key) : nullptr;
      if (!v) continue;
      hash = MixHash(hash, v->IsNumber() ? std::bit_cast<uint64_t>(v->Number()) : HashOf(v->Text()));
    }
  }
  return hash;
}

/// The keys of one run's functions. Modules have none: their calls are numbered by module.
class Places {
 public:
  Places(const DumpFile& dump, const ModuleTree& tree) : dump_(dump), tree_(tree) {}

  /// What calls of one function in one direction have in common.
  static uint64_t KindOf(const NameParts& name) {
    return MixHash(HashOf(name.base), static_cast<uint64_t>(name.direction));
  }

  StatusOr<uint64_t> KeyOf(size_t op) {
    const std::string_view name = dump_.ops().NameAt(op);
    const NameParts parts = ParseOpName(name);
    uint64_t key = KindOf(parts);
    const std::string_view parent = tree_.ParentOf(name);
    if (!parent.empty()) {
      key = MixHash(key, HashOf(parent));
    } else {
      MSP_RETURN_IF_ERROR(dump_.ParseOp(op, &doc_));
      key = MixHash(key, ValuesHash(name, doc_, &scratch_));
    }
    return MixHash(key, ++seen_[key]);
  }

 private:
  const DumpFile& dump_;
  const ModuleTree& tree_;
  JsonDoc doc_;
  std::vector<Item> scratch_;
  std::unordered_map<uint64_t, uint64_t> seen_;
};

class PlacePlan {
 public:
  PlacePlan(const DumpPair& pair, const ModuleTree& target, const ModuleTree& golden)
      : pair_(pair), target_(target), golden_(golden), plan_(pair.plan), taken_(pair.golden->ops().size(), false) {}

  StatusOr<MatchPlan> Make() {
    for (uint32_t& g : plan_.golden_of) g = kNoOp;
    PairModules();
    for (const bool backward : {false, true}) {
      if (backward) PairBackward();
      MSP_RETURN_IF_ERROR(PairPlaces(backward));
      PairRest(backward);
    }
    CountMatches(taken_.size(), &plan_);
    return std::move(plan_);
  }

 private:
  std::string_view NameOf(size_t op) const { return pair_.target->ops().NameAt(op); }

  void Take(size_t op, uint32_t partner) {
    plan_.golden_of[op] = partner;
    taken_[partner] = true;
  }

  void PairModules() {
    for (size_t i = 0; i < plan_.golden_of.size(); ++i) {
      const uint32_t g = pair_.plan.golden_of[i];
      if (g != kNoOp && IsModuleName(NameOf(i))) Take(i, g);
    }
  }

  /// Whether it is a function that this round is about.
  static bool IsWanted(std::string_view name, bool backward) {
    return !IsModuleName(name) && (ParseOpName(name).direction == OpDirection::kBackward) == backward;
  }

  /// What is backward of a pair is one.
  void PairBackward() {
    for (size_t i = 0; i < plan_.golden_of.size(); ++i) {
      if (!IsWanted(NameOf(i), true)) continue;
      if (const auto partner = BackwardOfPair(i)) Take(i, *partner);
    }
  }

  Status PairPlaces(bool backward) {
    std::unordered_map<uint64_t, uint32_t> golden;
    Places theirs(*pair_.golden, golden_), ours(*pair_.target, target_);
    for (uint32_t g = 0; g < taken_.size(); ++g) {
      if (taken_[g] || !IsWanted(pair_.golden->ops().NameAt(g), backward)) continue;
      MSP_ASSIGN_OR_RETURN(const uint64_t key, theirs.KeyOf(g));
      golden.emplace(key, g);
    }
    for (size_t i = 0; i < plan_.golden_of.size(); ++i) {
      if (plan_.golden_of[i] != kNoOp || !IsWanted(NameOf(i), backward)) continue;
      MSP_ASSIGN_OR_RETURN(const uint64_t key, ours.KeyOf(i));
      const auto found = golden.find(key);
      if (found != golden.end() && !taken_[found->second]) Take(i, found->second);
    }
    return OkStatus();
  }

  /// Others go by their order.
  void PairRest(bool backward) {
    std::unordered_map<uint64_t, std::deque<uint32_t>> left;
    for (uint32_t g = 0; g < taken_.size(); ++g) {
      if (!taken_[g] && IsWanted(pair_.golden->ops().NameAt(g), backward))
        left[Places::KindOf(ParseOpName(pair_.golden->ops().NameAt(g)))].push_back(g);
    }
    for (size_t i = 0; i < plan_.golden_of.size(); ++i) {
      if (plan_.golden_of[i] != kNoOp || !IsWanted(NameOf(i), backward)) continue;
      std::deque<uint32_t>& alike = left[Places::KindOf(ParseOpName(NameOf(i)))];
      while (!alike.empty() && taken_[alike.front()]) alike.pop_front();
      if (alike.empty()) continue;
      Take(i, alike.front());
      alike.pop_front();
    }
  }

  std::optional<uint32_t> BackwardOfPair(size_t op) const {
    constexpr std::string_view kForward = "forward", kBackward = "backward";
    const NameParts parts = ParseOpName(NameOf(op));
    if (parts.direction != OpDirection::kBackward) return std::nullopt;
    const auto forward = pair_.target->FindOp(ForwardNameOf(parts));
    const uint32_t partner = forward ? plan_.golden_of[*forward] : kNoOp;
    if (partner == kNoOp) return std::nullopt;
    std::string name(pair_.golden->ops().NameAt(partner));
    if (!name.ends_with(kForward)) return std::nullopt;
    name.replace(name.size() - kForward.size(), kForward.size(), kBackward);
    const auto found = pair_.golden->FindOp(name);
    if (!found || taken_[*found]) return std::nullopt;
    return static_cast<uint32_t>(*found);
  }

  const DumpPair& pair_;
  const ModuleTree &target_, &golden_;
  MatchPlan plan_;
  std::vector<bool> taken_;
};

}  // namespace

bool HasOtherOrder(const DumpPair& pair) {
  const MatchPlan& plan = pair.plan;
  if (plan.target_only() > 0 || !plan.golden_only.empty() || plan.options.exact || !pair.options.check_dtype)
    return false;
  if (plan.how != "exact" || plan.fused || plan.cross || !plan.links.empty()) return false;
  size_t same = 0;
  while (same < plan.golden_of.size() && plan.golden_of[same] == same) ++same;
  if (same == plan.golden_of.size()) return false;
  for (size_t i = 0; i < plan.golden_of.size(); ++i) {
    if (IsModuleName(pair.target->ops().NameAt(i))) return true;
  }
  return false;  // without modules no call has a place
}

StatusOr<MatchPlan> AlignByPlace(const DumpPair& pair, const ModuleTree& target, const ModuleTree& golden) {
  return PlacePlan(pair, target, golden).Make();
}

}  // namespace msprobe
