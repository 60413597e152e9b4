#include "match/match_plan.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "match/op_name.h"

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

struct OpKeyHash {
  size_t operator()(const OpKey& k) const {
    return std::hash<std::string_view>()(k.text) ^ ((size_t{k.order} << 2 | k.form) * 0x9E3779B97F4A7C15ull);
  }
};

std::vector<OpKey> KeysOf(const std::vector<std::string_view>& names, const MatchOptions& options) {
  std::vector<OpKey> keys;
  keys.reserve(names.size());
  std::unordered_map<std::string_view, uint32_t> calls;  // of backward ops, by base
  for (const std::string_view name : names) {
    const NameParts parts = options.exact ? NameParts() : ParseOpName(name);
    if (options.fuzzy && parts.direction != OpDirection::kNone) {
      keys.push_back({parts.base, 0, static_cast<uint8_t>(parts.direction)});
    } else if (!options.fuzzy && parts.direction == OpDirection::kBackward) {
      const uint32_t order = calls[parts.base]++;
      const uint8_t form = parts.number_last ? 2 : 1;
      keys.push_back(parts.number.empty() ? OpKey{name} : OpKey{parts.base, order, form});
    } else {
      keys.push_back({name});
    }
  }
  return keys;
}

/// No key is twice in the golden run. Runs are mostly equal, from the start on: only what follows is looked up.
void MatchByKey(const std::vector<OpKey>& target, const std::vector<OpKey>& golden, MatchPlan* plan) {
  uint32_t front = 0;
  for (const size_t most = std::min(target.size(), golden.size()); front < most && target[front] == golden[front];
       ++front)
    plan->golden_of[front] = front;
  std::unordered_map<OpKey, uint32_t, OpKeyHash> at;
  at.reserve(golden.size() - front);
  for (uint32_t i = front; i < golden.size(); ++i) at.try_emplace(golden[i], i);
  for (uint32_t i = front; i < target.size(); ++i) {
    const auto it = at.find(target[i]);
    if (it == at.end() || it->second == kNoOp) continue;
    plan->golden_of[i] = it->second;
    it->second = kNoOp;
  }
}

void MatchBySequence(const std::vector<OpKey>& target, const std::vector<OpKey>& golden, MatchPlan* plan) {
  std::unordered_map<OpKey, uint32_t, OpKeyHash> ids;
  const auto intern = [&](const std::vector<OpKey>& keys) {
    std::vector<uint32_t> out;
    out.reserve(keys.size());
    for (const OpKey& key : keys) out.push_back(ids.try_emplace(key, static_cast<uint32_t>(ids.size())).first->second);
    return out;
  };
  const std::vector<uint32_t> a = intern(target), b = intern(golden);
  for (const auto& [i, j] : AlignSequences(a, b)) plan->golden_of[i] = j;
}

/// One window of Myers' greedy alignment from (x0, y0): pairs are appended, the position behind the window is returned.
class Window {
 public:
  Window(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b, uint32_t max_edits)
      : a_(a), b_(b), max_edits_(static_cast<int>(max_edits)) {}

  void Run(size_t* x0, size_t* y0, std::vector<std::pair<uint32_t, uint32_t>>* pairs) {
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

  void Trace(int d, int k, std::vector<std::pair<uint32_t, uint32_t>>* pairs) const {
    const size_t from = pairs->size();
    for (; d >= 0; --d) {
      const int64_t x = At(d, k);
      const int64_t start = d == 0 ? 0 : Start(d, k);
      for (int64_t i = x - 1; i >= start; --i) {
        pairs->emplace_back(static_cast<uint32_t>(x0_ + static_cast<size_t>(i)),
                            static_cast<uint32_t>(y0_ + static_cast<size_t>(i - k)));
      }
      if (d > 0) k += start == At(d - 1, k + 1) && !(At(d - 1, k - 1) >= 0 && start == At(d - 1, k - 1) + 1) ? 1 : -1;
    }
    std::reverse(pairs->begin() + static_cast<std::ptrdiff_t>(from), pairs->end());
  }

  const std::vector<uint32_t>&a_, &b_;
  const int max_edits_;
  size_t x0_ = 0, y0_ = 0;
  int64_t n_ = 0, m_ = 0;
  std::vector<std::vector<int64_t>> rows_;  // rows_[d][k + d]: furthest x
};

}  // namespace

std::vector<std::pair<uint32_t, uint32_t>> AlignSequences(const std::vector<uint32_t>& a,
                                                          const std::vector<uint32_t>& b, uint32_t max_edits) {
  // What only one side has can never pair; without it the window sees further.
  const std::unordered_set<uint32_t> in_a(a.begin(), a.end()), in_b(b.begin(), b.end());
  std::vector<uint32_t> ids_a, at_a, ids_b, at_b;
  const auto keep = [](const std::vector<uint32_t>& from, const std::unordered_set<uint32_t>& other,
                       std::vector<uint32_t>* ids, std::vector<uint32_t>* at) {
    for (uint32_t i = 0; i < from.size(); ++i) {
      if (!other.count(from[i])) continue;
      ids->push_back(from[i]);
      at->push_back(i);
    }
  };
  keep(a, in_b, &ids_a, &at_a);
  keep(b, in_a, &ids_b, &at_b);
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  Window window(ids_a, ids_b, std::max<uint32_t>(max_edits, 1));
  for (size_t x = 0, y = 0; x < ids_a.size() && y < ids_b.size();) window.Run(&x, &y, &pairs);
  for (auto& [x, y] : pairs) {
    x = at_a[x];
    y = at_b[y];
  }
  return pairs;
}

MatchPlan MatchOps(const std::vector<std::string_view>& target, const std::vector<std::string_view>& golden,
                   const MatchOptions& options) {
  MatchPlan plan;
  plan.options = options;
  plan.golden_of.assign(target.size(), kNoOp);
  const std::vector<OpKey> a = KeysOf(target, options), b = KeysOf(golden, options);
  options.fuzzy ? MatchBySequence(a, b, &plan) : MatchByKey(a, b, &plan);
  if (options.fuzzy) plan.how = "fuzzy";
  CountMatches(golden.size(), &plan);
  return plan;
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
  }
  for (uint32_t i = 0; i < golden_ops; ++i) {
    if (!used[i]) plan->golden_only.push_back(i);
  }
}

namespace {

/// The members of "items".
void AppendLinks(const MatchPlan& plan, const std::vector<std::string_view>& target,
                 const std::vector<std::string_view>& golden, std::string* out) {
  const char* separator = "";
  for (uint32_t i = 0; i < target.size(); ++i) {
    const auto it = plan.links.find(i);
    if (it == plan.links.end()) continue;
    for (const ItemLink& link : it->second.links) {
      *out += separator;
      *out += '[';
      separator = ", ";
      AppendJsonString(*out, std::string(target[i]) + link.target);
      *out += ", ";
      if (link.golden_op == kNoOp) {
        *out += "null]";
        continue;
      }
      AppendJsonString(*out, std::string(golden[link.golden_op]) + link.golden);
      *out += ']';
    }
  }
}

}  // namespace

std::string MatchPlanJson(const MatchPlan& plan, const std::vector<std::string_view>& target,
                          const std::vector<std::string_view>& golden) {
  std::string out = "{\"how\": ";
  AppendJsonString(out, plan.how);
  out += plan.options.fuzzy ? ", \"fuzzy\": true" : ", \"fuzzy\": false";
  out += ", \"matched\": ";
  AppendInt(out, static_cast<int64_t>(plan.matched));
  const char* separator = "";
  const auto name = [&](std::string_view text) {
    out += separator;
    AppendJsonString(out, text);
    separator = ", ";
  };
  out += ", \"pairs\": [";
  for (size_t i = 0; i < target.size(); ++i) {
    if (plan.golden_of[i] == kNoOp) continue;
    out += separator;
    out += '[';
    separator = "";
    name(target[i]);
    name(golden[plan.golden_of[i]]);
    out += ']';
  }
  separator = "";
  out += "], \"target_only\": [";
  for (size_t i = 0; i < target.size(); ++i) {
    if (plan.golden_of[i] == kNoOp && !plan.Skips(i)) name(target[i]);
  }
  separator = "";
  out += "], \"golden_only\": [";
  for (const uint32_t i : plan.golden_only) name(golden[i]);
  if (!plan.links.empty()) {
    out += "], \"items\": [";
    AppendLinks(plan, target, golden, &out);
  }
  return out + "]}";
}

}  // namespace msprobe
