#include "match/match_plan.h"

#include <algorithm>

#include "base/page_trim.h"
#include "base/slot_table.h"
#include "json/writer.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

/// What two ops must share to be one. Backward ops are known by how often their base was seen before; others by their
/// name.
struct OpKey {
  std::string_view text;
  uint32_t order = 0;
  uint8_t form = 0;  // 0: text is the name; 1, 2: text is the base and `order` the call
  bool operator==(const OpKey&) const = default;
};

uint32_t HashKey(const OpKey& k) {
  const uint64_t more = (uint64_t{k.order} << 2 | k.form) * 0x9E3779B97F4A7C15ull;
  return HashName(k.text) ^ static_cast<uint32_t>(more >> 32);
}

/// The keys of one run. Of each op only the call number is kept: the rest is in its name.
class Keys {
 public:
  Keys(const NameSequence& names, const MatchOptions& options) : names_(names), options_(options) {
    if (options.fuzzy || options.exact) return;
    orders_.reserve(names.size());
    TextIds bases;
    BigArray<uint32_t> calls;  // of backward ops, by base
    for (size_t i = 0; i < names.size(); ++i) {
      if (i % kStepsBetweenTrims == 0) TrimMaps();
      const NameParts parts = ParseOpName(names[i]);
      uint32_t order = 0;
      if (parts.direction == OpDirection::kBackward) {
        const uint32_t base = bases.Enter(parts.base);
        if (base == calls.size()) calls.push_back(0);
        order = calls[base]++;
      }
      orders_.push_back(order);
    }
  }

  size_t size() const { return names_.size(); }
  OpKey operator[](size_t i) const {
    const std::string_view name = names_[i];
    const NameParts parts = options_.exact ? NameParts() : ParseOpName(name);
    if (options_.fuzzy && parts.direction != OpDirection::kNone) {
      return {parts.base, 0, static_cast<uint8_t>(parts.direction)};
    }
    if (options_.fuzzy || parts.direction != OpDirection::kBackward || parts.number.empty()) return {name};
    return {parts.base, orders_[i], static_cast<uint8_t>(parts.number_last ? 2 : 1)};
  }

 private:
  const NameSequence& names_;
  const MatchOptions& options_;
  BigArray<uint32_t> orders_;
};

/// How many ops have one name after the other at the start. Runs are mostly equal from there on, many to the end.
uint32_t CommonFront(const NameSequence& target, const NameSequence& golden) {
  uint32_t front = 0;
  for (const size_t most = std::min(target.size(), golden.size()); front < most && target[front] == golden[front];
       ++front) {
    if (front % kStepsBetweenTrims == 0) TrimMaps();
  }
  return front;
}

/// No key is twice in the golden run: only what follows the equal start is looked up.
void MatchByKey(const NameSequence& target_names, const NameSequence& golden_names, MatchPlan* plan) {
  const uint32_t front = CommonFront(target_names, golden_names);
  for (uint32_t i = 0; i < front; ++i) plan->golden_of[i] = i;
  if (front == target_names.size() || front == golden_names.size()) return;
  const Keys target(target_names, plan->options), golden(golden_names, plan->options);
  SlotTable at;
  for (uint32_t i = front; i < golden.size(); ++i) {
    if (i % kStepsBetweenTrims == 0) TrimMaps();
    const OpKey key = golden[i];
    at.Enter(HashKey(key), i, [&](uint32_t j) { return golden[j] == key; });
  }
  std::vector<bool> taken(golden.size(), false);
  for (uint32_t i = front; i < target.size(); ++i) {
    if (i % kStepsBetweenTrims == 0) TrimMaps();
    const OpKey key = target[i];
    const uint32_t g = at.Find(HashKey(key), [&](uint32_t j) { return golden[j] == key; });
    if (g == SlotTable::kNone || taken[g]) continue;
    plan->golden_of[i] = g;
    taken[g] = true;
  }
}

void MatchBySequence(const NameSequence& target_names, const NameSequence& golden_names, MatchPlan* plan) {
  const Keys target(target_names, plan->options), golden(golden_names, plan->options);
  // Ids of keys: the position of the first op that has it, behind those of the target for ops of the golden run.
  const auto first = static_cast<uint32_t>(target.size());
  const auto key_at = [&](uint32_t i) { return i < first ? target[i] : golden[i - first]; };
  SlotTable ids;
  const auto intern = [&](const Keys& keys, uint32_t from) {
    BigArray<uint32_t> out;
    out.reserve(keys.size());
    for (uint32_t i = 0; i < keys.size(); ++i) {
      if (i % kStepsBetweenTrims == 0) TrimMaps();
      const OpKey key = keys[i];
      out.push_back(ids.Enter(HashKey(key), from + i, [&](uint32_t j) { return key_at(j) == key; }));
    }
    return out;
  };
  const BigArray<uint32_t> a = intern(target, 0), b = intern(golden, first);
  for (const auto& [i, j] : AlignSequences(a, b)) plan->golden_of[i] = j;
}

/// One window of Myers' greedy alignment from (x0, y0): pairs are appended, the position behind the window is returned.
class Window {
 public:
  Window(const BigArray<uint32_t>& a, const BigArray<uint32_t>& b, uint32_t max_edits)
      : a_(a), b_(b), max_edits_(static_cast<int>(max_edits)) {}

  void Run(size_t* x0, size_t* y0, BigArray<IndexPair>* pairs) {
    x0_ = *x0;
    y0_ = *y0;
    n_ = static_cast<int64_t>(a_.size() - x0_);
    m_ = static_cast<int64_t>(b_.size() - y0_);
    rows_.clear();
    int best_d = 0, best_k = 0;
    int64_t best_sum = -1;
    for (int d = 0;; ++d) {
      rows_.emplace_back(static_cast<size_t>(2 * d + 1), int64_t{-1});
      bool done = false;
      for (int k = -d; k <= d && !done; k += 2) {
        const int64_t x = Extend(d, k);
        if (x < 0) continue;
        if (2 * x - k > best_sum) {
          best_sum = 2 * x - k;
          best_d = d;
          best_k = k;
        }
        done = x >= n_ && x - k >= m_;
      }
      if (done || d >= max_edits_) break;
    }
    Trace(best_d, best_k, pairs);
    const int64_t x = At(best_d, best_k);
    *x0 = x0_ + static_cast<size_t>(x);
    *y0 = y0_ + static_cast<size_t>(x - best_k);
  }

 private:
  int64_t At(int d, int k) const {
    return k < -d || k > d ? -1 : rows_[static_cast<size_t>(d)][static_cast<size_t>(k + d)];
  }

  /// Furthest x on diagonal k with d edits; -1 when the diagonal is outside.
  int64_t Extend(int d, int k) {
    int64_t x = d == 0 ? 0 : Start(d, k);
    if (x < 0 || x > n_ || x - k > m_ || x - k < 0) return -1;
    while (x < n_ && x - k < m_ && a_[x0_ + static_cast<size_t>(x)] == b_[y0_ + static_cast<size_t>(x - k)]) ++x;
    rows_[static_cast<size_t>(d)][static_cast<size_t>(k + d)] = x;
    return x;
  }

  /// Where the d-th edit leads to on diagonal k: an op of `a` skipped (from k - 1) or one of `b` (from k + 1).
  int64_t Start(int d, int k) const {
    const int64_t skip_a = At(d - 1, k - 1) < 0 ? -1 : At(d - 1, k - 1) + 1;
    const int64_t skip_b = At(d - 1, k + 1);
    const bool a_fits = skip_a >= 0 && skip_a <= n_;
    const bool b_fits = skip_b >= 0 && skip_b - k <= m_;
    if (a_fits && (!b_fits || skip_a > skip_b)) return skip_a;
    return b_fits ? skip_b : -1;
  }

  void Trace(int d, int k, BigArray<IndexPair>* pairs) const {
    const size_t from = pairs->size();
    for (; d >= 0; --d) {
      const int64_t x = At(d, k);
      const int64_t start = d == 0 ? 0 : Start(d, k);
      for (int64_t i = x - 1; i >= start; --i) {
        pairs->push_back({static_cast<uint32_t>(x0_ + static_cast<size_t>(i)),
                          static_cast<uint32_t>(y0_ + static_cast<size_t>(i - k))});
      }
      if (d > 0) k += start == At(d - 1, k + 1) && !(At(d - 1, k - 1) >= 0 && start == At(d - 1, k - 1) + 1) ? 1 : -1;
    }
    std::reverse(pairs->begin() + static_cast<std::ptrdiff_t>(from), pairs->end());
  }

  const BigArray<uint32_t>&a_, &b_;
  const int max_edits_;
  size_t x0_ = 0, y0_ = 0;
  int64_t n_ = 0, m_ = 0;
  std::vector<std::vector<int64_t>> rows_;  // rows_[d][k + d]: furthest x
};

}  // namespace

BigArray<IndexPair> AlignSequences(const BigArray<uint32_t>& a, const BigArray<uint32_t>& b, uint32_t max_edits) {
  // What only one side has can never pair; without it the window sees further.
  const auto most = [](const BigArray<uint32_t>& ids) {
    return ids.empty() ? uint32_t{0} : *std::max_element(ids.begin(), ids.end());
  };
  const size_t bits = size_t{std::max(most(a), most(b))} + 1;
  std::vector<bool> in_a(bits, false), in_b(bits, false);
  for (const uint32_t id : a) in_a[id] = true;
  for (const uint32_t id : b) in_b[id] = true;
  BigArray<uint32_t> ids_a, at_a, ids_b, at_b;
  const auto keep = [](const BigArray<uint32_t>& from, const std::vector<bool>& other, BigArray<uint32_t>* ids,
                       BigArray<uint32_t>* at) {
    for (uint32_t i = 0; i < from.size(); ++i) {
      if (!other[from[i]]) continue;
      ids->push_back(from[i]);
      at->push_back(i);
    }
  };
  keep(a, in_b, &ids_a, &at_a);
  keep(b, in_a, &ids_b, &at_b);
  BigArray<IndexPair> pairs;
  Window window(ids_a, ids_b, std::max<uint32_t>(max_edits, 1));
  for (size_t x = 0, y = 0; x < ids_a.size() && y < ids_b.size();) window.Run(&x, &y, &pairs);
  for (auto& [x, y] : pairs) {
    x = at_a[x];
    y = at_b[y];
  }
  return pairs;
}

MatchPlan MatchOps(const NameSequence& target, const NameSequence& golden, const MatchOptions& options) {
  MatchPlan plan;
  plan.options = options;
  plan.golden_of.assign(target.size(), kNoOp);
  options.fuzzy ? MatchBySequence(target, golden, &plan) : MatchByKey(target, golden, &plan);
  if (options.fuzzy) plan.how = "fuzzy";
  CountMatches(golden.size(), &plan);
  return plan;
}

std::vector<uint32_t> MatchPlan::JoinedWith(size_t op) const {
  const auto it = links.find(static_cast<uint32_t>(op));
  if (it == links.end() || !it->second.joins_targets) return {};
  std::vector<uint32_t> out = it->second.joined;
  std::erase(out, static_cast<uint32_t>(op));
  return out;
}

void CountMatches(size_t golden_ops, MatchPlan* plan) {
  std::vector<bool> used(golden_ops, false);
  plan->matched = 0;
  plan->golden_only.clear();
  for (const uint32_t g : plan->golden_of) {
    if (g == kNoOp) continue;
    used[g] = true;
    ++plan->matched;
  }
  if (plan->fused) {
    for (const FusedGroup& group : plan->fused->groups) {
      for (const uint32_t g : group.goldens) used[g] = true;
    }
    plan->skipped = static_cast<size_t>(std::count(plan->fused->skipped.begin(), plan->fused->skipped.end(), true));
  }
  for (const auto& [op, links] : plan->links) {
    for (const ItemLink& link : links.links) {
      if (link.golden_op != kNoOp) used[link.golden_op] = true;
    }
    if (links.others != kNoOp) used[links.others] = true;
    for (const uint32_t g : links.joined) used[g] = used[g] || !links.joins_targets;
  }
  for (uint32_t i = 0; i < golden_ops; ++i) {
    if (!used[i]) plan->golden_only.push_back(i);
  }
}

namespace {

/// The elements of "items".
void WriteLinks(JsonWriter* json, const MatchPlan& plan, const NameSequence& target, const NameSequence& golden) {
  for (uint32_t i = 0; i < target.size(); ++i) {
    const auto it = plan.links.find(i);
    if (it == plan.links.end()) continue;
    for (const ItemLink& link : it->second.links) {
      json->BeginArray();
      json->String(std::string(target[i]) + link.target);
      link.golden_op == kNoOp ? json->Null() : json->String(std::string(golden[link.golden_op]) + link.golden);
      json->EndArray();
    }
    for (const uint32_t op : it->second.joined) {  // as a whole
      json->BeginArray();
      json->String(it->second.joins_targets ? target[op] : target[i]);
      json->String(golden[it->second.joins_targets ? it->second.others : op]);
      json->EndArray();
    }
  }
}

}  // namespace

void WriteMatchPlan(JsonWriter* json, const MatchPlan& plan, const NameSequence& target, const NameSequence& golden) {
  json->BeginObject();
  json->Member("how", plan.how);
  json->Member("fuzzy", plan.options.fuzzy);
  json->Member("matched", plan.matched);
  json->Key("pairs");
  json->BeginArray();
  for (size_t i = 0; i < target.size(); ++i) {
    if (plan.golden_of[i] == kNoOp) continue;
    json->BeginArray();
    json->String(target[i]);
    json->String(golden[plan.golden_of[i]]);
    json->EndArray();
  }
  json->EndArray();
  json->Key("target_only");
  json->BeginArray();
  for (size_t i = 0; i < target.size(); ++i) {
    if (plan.golden_of[i] == kNoOp && !plan.Skips(i)) json->String(target[i]);
  }
  json->EndArray();
  json->ArrayMember("golden_only", plan.golden_only, [&](uint32_t i) { json->String(golden[i]); });
  if (!plan.links.empty()) {
    json->Key("items");
    json->BeginArray();
    WriteLinks(json, plan, target, golden);
    json->EndArray();
  }
  json->EndObject();
}

}  // namespace msprobe
