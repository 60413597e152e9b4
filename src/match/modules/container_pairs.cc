#include "match/modules/container_pairs.h"

#include <algorithm>
#include <tuple>

namespace msprobe {
namespace {

constexpr double kMost = 0.7;  // share of the layers of either that both have
constexpr size_t kNone = SIZE_MAX;

bool Has(const LayerSpan& span, size_t layer) { return span.first <= layer && layer < span.last; }
bool IsIn(const LayerSpan& inner, const LayerSpan& outer) {
  return outer.first <= inner.first && inner.last <= outer.last;
}

struct Candidate {
  double share = 0;
  bool alike = true;  // both are called, or none
  size_t x = 0, y = 0;
};

/// Links of one container that end in the other, over all that begin or end in one of them.
double ShareOf(const LayerSpan& x, const LayerSpan& y, const std::vector<std::pair<size_t, size_t>>& links,
               const std::vector<size_t>& ending) {
  size_t both = 0, own = 0;
  auto it = std::lower_bound(links.begin(), links.end(), std::make_pair(x.first, size_t{0}));
  for (; it != links.end() && it->first < x.last; ++it) ++(Has(y, it->second) ? both : own);
  const size_t theirs = ending[y.last] - ending[y.first];
  return both == 0 ? 0 : static_cast<double>(both) / static_cast<double>(own + theirs);
}

class Sharing {
 public:
  Sharing(const std::vector<LayerSpan>& target, const std::vector<LayerSpan>& golden)
      : target_(target), golden_(golden), golden_of_(target.size(), kNone), target_of_(golden.size(), kNone) {}

  void Take(const Candidate& c) {
    if (golden_of_[c.x] != kNone || target_of_[c.y] != kNone || !Nests(c)) return;
    golden_of_[c.x] = c.y;
    target_of_[c.y] = c.x;
    taken_.push_back(c);
  }
  std::vector<std::pair<uint32_t, uint32_t>> Pairs() const {
    std::vector<std::pair<uint32_t, uint32_t>> out;
    for (const Candidate& c : taken_) out.emplace_back(target_[c.x].id, golden_[c.y].id);
    return out;
  }

 private:
  /// What is inside a container stays inside its partner. Lists have the outer of two spans first.
  bool Nests(const Candidate& c) const {
    return std::all_of(taken_.begin(), taken_.end(), [&](const Candidate& other) {
      const bool in = c.x > other.x && IsIn(target_[c.x], target_[other.x]);
      const bool around = c.x < other.x && IsIn(target_[other.x], target_[c.x]);
      if (in) return c.y > other.y && IsIn(golden_[c.y], golden_[other.y]);
      return !around || (c.y < other.y && IsIn(golden_[other.y], golden_[c.y]));
    });
  }

  const std::vector<LayerSpan>&target_, &golden_;
  std::vector<size_t> golden_of_, target_of_;
  std::vector<Candidate> taken_;
};

}  // namespace

std::vector<std::pair<uint32_t, uint32_t>> PairByShare(const std::vector<LayerSpan>& target,
                                                       const std::vector<LayerSpan>& golden,
                                                       const std::vector<std::pair<size_t, size_t>>& links) {
  std::vector<std::pair<size_t, size_t>> sorted = links;
  std::sort(sorted.begin(), sorted.end());
  size_t layers = 0;
  for (const LayerSpan& y : golden) layers = std::max(layers, y.last);
  for (const auto& [t, g] : sorted) layers = std::max(layers, g + 1);
  std::vector<size_t> ending(layers + 1, 0);  // links that end in front of a layer
  for (const auto& [t, g] : sorted) ++ending[g + 1];
  for (size_t i = 1; i < ending.size(); ++i) ending[i] += ending[i - 1];
  std::vector<std::vector<size_t>> around(layers);  // containers of the golden run around each layer
  for (size_t y = 0; y < golden.size(); ++y) {
    for (size_t layer = golden[y].first; layer < golden[y].last; ++layer) around[layer].push_back(y);
  }
  std::vector<Candidate> candidates;
  for (size_t x = 0; x < target.size(); ++x) {
    std::vector<size_t> near;
    auto it = std::lower_bound(sorted.begin(), sorted.end(), std::make_pair(target[x].first, size_t{0}));
    // Most of what they share is in both, so a few links show every container that can be meant.
    constexpr size_t kShown = 8;
    const auto end = std::lower_bound(it, sorted.end(), std::make_pair(target[x].last, size_t{0}));
    const auto step = std::max<std::ptrdiff_t>((end - it) / static_cast<std::ptrdiff_t>(kShown), 1);
    for (; it < end; it += std::min(step, end - it)) {
      near.insert(near.end(), around[it->second].begin(), around[it->second].end());
    }
    std::sort(near.begin(), near.end());
    near.erase(std::unique(near.begin(), near.end()), near.end());
    for (const size_t y : near) {
      const double share = ShareOf(target[x], golden[y], sorted, ending);
      if (share >= kMost) candidates.push_back({share, target[x].called == golden[y].called, x, y});
    }
  }
  // Where the other side's model is not wrapped, its partner is what is in the wrappers.
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    if (a.share != b.share) return a.share > b.share;
    if (a.alike != b.alike) return a.alike;
    return a.share == 1 ? std::tie(a.x, a.y) < std::tie(b.x, b.y) : std::tie(a.x, a.y) > std::tie(b.x, b.y);
  });
  Sharing sharing(target, golden);
  for (const Candidate& c : candidates) sharing.Take(c);
  return sharing.Pairs();
}

}  // namespace msprobe
