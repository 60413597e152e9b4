#include "match/leaf_pairs.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "match/hash_mix.h"
#include "match/likeness.h"
#include "match/match_plan.h"

namespace msprobe {
namespace {

// What speaks for two layers being one.
constexpr double kSameKind = 2, kSameShapes = 2, kMoreParameters = 0.5, kNoParameters = 0.5, kOtherSize = -1.5,
                 kAlikeOwnName = 0.6, kAlikeParent = 0.4, kEnoughForLeaves = 1.7, kJoined = 4;
constexpr size_t kMostJoined = 3;         // query, key and value
constexpr size_t kMostCells = 4'000'000;  // of a table of scores; more layers are aligned by kind and shapes alone
constexpr double kMostlyTheSame = 0.5;    // share of layers with a partner in the other module
constexpr double kSomeTheSame = 0.3;      // share of parameters

std::vector<std::string_view> Functions(const Structure& side, uint32_t m) {
  std::vector<std::string_view> out;
  side.ForEachCall(side.modules()[m].functions, [&](uint32_t f) {
    const StructureCall& call = side.calls()[f];
    const bool once = out.empty() || call.caller == side.calls()[side.modules()[m].functions.first].caller;
    if (call.direction == OpDirection::kForward && !call.moves && once) out.push_back(call.function);
    return true;
  });
  std::sort(out.begin(), out.end());
  return out;
}

size_t CountCommon(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  return common.size();
}

bool HasParameters(const Structure& side, uint32_t m) {
  const ModuleNode& node = side.modules()[m];
  if (!node.parameters.empty()) return true;
  return std::any_of(node.children.begin(), node.children.end(), [&](uint32_t c) { return HasParameters(side, c); });
}

/// A layer, or what has no module in it. A layer whose parts have parameters of their own is more than one.
bool IsLeaf(const Structure& side, uint32_t m) {
  const ModuleNode& node = side.modules()[m];
  if (node.type.empty()) return false;
  if (node.children.empty()) return true;
  return node.layer &&
         std::none_of(node.children.begin(), node.children.end(), [&](uint32_t c) { return HasParameters(side, c); });
}

void AddShapesBelow(const Structure& side, uint32_t m, std::vector<std::string>* out) {
  const std::vector<std::string> own = ParameterShapes(side.modules()[m]);
  out->insert(out->end(), own.begin(), own.end());
  for (const uint32_t c : side.modules()[m].children) AddShapesBelow(side, c, out);
}

std::vector<std::string> ShapesBelow(const Structure& side, uint32_t m) {
  std::vector<std::string> out;
  AddShapesBelow(side, m, &out);
  std::sort(out.begin(), out.end());
  return out;
}

/// Rows and other sizes of the weight, "64" and "32" of "weight [64, 32]"; empty where that is not known.
std::pair<int64_t, std::string_view> RowsOf(const ModuleNode& module) {
  const std::string_view all = module.parameters;
  constexpr std::string_view kWeight = "weight [";
  if (!StartsWith(all, kWeight)) return {};
  int64_t rows = 0;
  size_t at = kWeight.size();
  for (; at < all.size() && all[at] >= '0' && all[at] <= '9'; ++at) {
    if (__builtin_mul_overflow(rows, int64_t{10}, &rows) || __builtin_add_overflow(rows, all[at] - '0', &rows)) return {};
  }
  return {rows, all.substr(at, all.find(']') - at)};
}

/// Whether layers that follow each other compute together what one layer of the other side does.
bool AreParts(const Structure& side, const uint32_t* parts, size_t count, const Structure& other, uint32_t whole) {
  const ModuleNode& one = other.modules()[whole];
  const auto [all_rows, width] = RowsOf(one);
  if (!one.layer || all_rows == 0) return false;
  int64_t rows = 0, elements = 0;
  for (size_t i = 0; i < count; ++i) {
    const ModuleNode& part = side.modules()[parts[i]];
    const auto [own, own_width] = RowsOf(part);
    if (part.kind != one.kind || own == 0 || own_width != width || part.parent != side.modules()[parts[0]].parent) {
      return false;
    }
    if (ParameterShapes(part).size() != ParameterShapes(one).size()) return false;
    if (__builtin_add_overflow(rows, own, &rows) || __builtin_add_overflow(elements, part.elements, &elements)) {
      return false;
    }
  }
  return rows == all_rows && (one.elements == 0 || elements == 0 || elements == one.elements);
}

/// One side of a region: the layers in it that have no partner, in the order in which they run.
struct Region {
  const Structure& side;
  const std::vector<uint32_t>& partner;
  std::unordered_set<uint32_t> taken = {};  // layers that are joined
  std::vector<uint32_t> leaves = {}, containers = {};
  std::unordered_map<uint32_t, std::pair<size_t, size_t>> span = {};  // leaves below a container: [first, last)

  void Collect(uint32_t module) {
    for (const uint32_t c : side.modules()[module].children) {
      if (partner[c] != kNoModule || taken.count(c)) continue;
      if (IsLeaf(side, c)) {
        leaves.push_back(c);
        continue;
      }
      const size_t first = leaves.size();
      containers.push_back(c);
      Collect(c);
      span[c] = {first, leaves.size()};
    }
  }
};

class RegionPairing {
 public:
  RegionPairing(const Structure& target, uint32_t t, const Structure& golden, uint32_t g, const ModulePairs& known)
      : t_{target, known.golden_of}, g_{golden, known.target_of} {
    for (const JoinedLayers& layers : known.joined) {
      t_.taken.insert(layers.targets.begin(), layers.targets.end());
      g_.taken.insert(layers.goldens.begin(), layers.goldens.end());
    }
    t_.Collect(t);
    g_.Collect(g);
  }

  LeafPairs Run() {
    if (t_.leaves.empty() || g_.leaves.empty()) return {};
    golden_at_.assign(t_.leaves.size(), kNone);
    target_at_.assign(g_.leaves.size(), kNone);
    t_.leaves.size() * g_.leaves.size() > kMostCells ? AlignByKeys() : AlignByScores();
    ExchangeByName();
    LeafPairs out;
    for (const uint32_t x : t_.containers) PairContainer(x, &out.pairs);
    std::vector<bool> joined(t_.leaves.size(), false);
    for (const auto& [i, n, j, m] : joints_) {
      JoinedLayers layers;
      for (size_t k = 0; k < n; ++k) layers.targets.push_back(t_.leaves[i + k]), joined[i + k] = true;
      for (size_t k = 0; k < m; ++k) layers.goldens.push_back(g_.leaves[j + k]);
      out.joined.push_back(std::move(layers));
    }
    for (size_t i = 0; i < t_.leaves.size(); ++i) {
      if (golden_at_[i] != kNone && !joined[i]) out.pairs.emplace_back(t_.leaves[i], g_.leaves[golden_at_[i]]);
    }
    return out;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  void Join(size_t i, size_t j) { golden_at_[i] = j, target_at_[j] = i; }

  /// How many layers from (i, j) on are one layer of the other side, as (n, 1) or (1, m); (0, 0): no.
  std::pair<size_t, size_t> JointAt(size_t i, size_t j) const {
    for (size_t n = kMostJoined; n > 1; --n) {
      if (i + n <= t_.leaves.size() && AreParts(t_.side, &t_.leaves[i], n, g_.side, g_.leaves[j])) return {n, 1};
      if (j + n <= g_.leaves.size() && AreParts(g_.side, &g_.leaves[j], n, t_.side, t_.leaves[i])) return {1, n};
    }
    return {0, 0};
  }

  /// The alignment with the greatest sum of scores.
  void AlignByScores() {
    const size_t n = t_.leaves.size(), m = g_.leaves.size();
    std::vector<float> best((n + 1) * (m + 1));
    struct Step {
      uint8_t down = 0, right = 0;  // both 1: a pair; one of them more: joined layers
    };
    std::vector<Step> steps(n * m);
    const auto at = [&](size_t i, size_t j) -> float& { return best[i * (m + 1) + j]; };
    for (size_t i = n; i-- > 0;) {
      for (size_t j = m; j-- > 0;) {
        Step* step = &steps[i * m + j];
        *step = at(i + 1, j) >= at(i, j + 1) ? Step{1, 0} : Step{0, 1};
        at(i, j) = std::max(at(i + 1, j), at(i, j + 1));
        const double score = LeafScore(t_.side, t_.leaves[i], g_.side, g_.leaves[j]);
        if (const auto both = static_cast<float>(score) + at(i + 1, j + 1); score >= kEnoughForLeaves && both > at(i, j)) {
          at(i, j) = both, *step = {1, 1};
        }
        const auto [down, right] = JointAt(i, j);
        if (down == 0) continue;
        if (const auto joined = static_cast<float>(kJoined) + at(i + down, j + right); joined > at(i, j)) {
          at(i, j) = joined, *step = {static_cast<uint8_t>(down), static_cast<uint8_t>(right)};
        }
      }
    }
    for (size_t i = 0, j = 0; i < n && j < m;) {
      const Step step = steps[i * m + j];
      if (step.down == 1 && step.right == 1) Join(i, j);
      if (step.down + step.right > 2) {
        joints_.push_back({i, step.down, j, step.right});
        for (size_t k = 0; k < step.down; ++k) golden_at_[i + k] = j;
        for (size_t k = 0; k < step.right; ++k) target_at_[j + k] = i;
      }
      i += step.down, j += step.right;
    }
  }

  void AlignByKeys() {
    std::unordered_map<uint64_t, uint32_t> ids;
    const auto list = [&ids](const Region& region) {
      BigArray<uint32_t> out;
      for (const uint32_t leaf : region.leaves) {
        uint64_t key = HashOf(region.side.modules()[leaf].kind);
        for (const std::string& shape : ParameterShapes(region.side.modules()[leaf])) key = MixHash(key, HashOf(shape));
        out.push_back(ids.try_emplace(key, static_cast<uint32_t>(ids.size())).first->second);
      }
      return out;
    };
    const BigArray<uint32_t> a = list(t_), b = list(g_);
    for (const IndexPair& pair : AlignSequences(a, b)) Join(pair.first, pair.second);
  }

  /// Of layers that look alike and follow each other in different orders, names say which is which.
  void ExchangeByName() {
    constexpr size_t kNear = 8;
    constexpr double kClearly = 0.5;
    const auto likeness = [&](size_t i, size_t j) {
      return Likeness(t_.side.modules()[t_.leaves[i]].name, g_.side.modules()[g_.leaves[j]].name);
    };
    for (size_t i = 0; i < t_.leaves.size(); ++i) {
      for (size_t k = i + 1; k < std::min(i + kNear, t_.leaves.size()); ++k) {
        const size_t x = golden_at_[i], y = golden_at_[k];
        if (x == kNone || y == kNone || target_at_[x] != i || target_at_[y] != k) continue;
        const auto parent = [](const Region& region, size_t a) { return region.side.modules()[region.leaves[a]].parent; };
        if (parent(t_, i) != parent(t_, k) || parent(g_, x) != parent(g_, y)) continue;
        if (LeafScore(t_.side, t_.leaves[i], g_.side, g_.leaves[y]) < kEnoughForLeaves) continue;
        if (LeafScore(t_.side, t_.leaves[k], g_.side, g_.leaves[x]) < kEnoughForLeaves) continue;
        if (likeness(i, y) + likeness(k, x) > likeness(i, x) + likeness(k, y) + kClearly) Join(i, y), Join(k, x);
      }
    }
  }

  /// The innermost container of the other side that holds the partners of the leaves in `span`; kNoModule without.
  static uint32_t Around(const Region& other, const std::vector<size_t>& partner, std::pair<size_t, size_t> span) {
    size_t first = kNone, last = 0, paired = 0;
    for (size_t i = span.first; i < span.second; ++i) {
      if (partner[i] == kNone) continue;
      first = std::min(first, partner[i]), last = std::max(last, partner[i]);
      ++paired;
    }
    if (paired == 0 || static_cast<double>(paired) < kMostlyTheSame * static_cast<double>(span.second - span.first)) {
      return kNoModule;
    }
    uint32_t best = kNoModule;
    size_t least = kNone;
    for (const uint32_t c : other.containers) {
      const auto [from, to] = other.span.at(c);
      // Of those with the same leaves the innermost, which stands behind the others.
      if (from <= first && last < to && to - from <= least) best = c, least = to - from;
    }
    return best;
  }

  void PairContainer(uint32_t x, std::vector<std::pair<uint32_t, uint32_t>>* out) const {
    const uint32_t y = Around(g_, golden_at_, t_.span.at(x));
    if (y == kNoModule) return;
    const uint32_t back = Around(t_, target_at_, g_.span.at(y));
    if (back == kNoModule || t_.span.at(back) != t_.span.at(x)) return;
    // What holds the same leaves one inside the other: one class first, else the innermost.
    const auto chain = [](const Region& region, uint32_t m) {
      std::vector<uint32_t> all;
      for (const uint32_t c : region.containers) {
        if (region.span.at(c) == region.span.at(m)) all.push_back(c);
      }
      return all;
    };
    const std::vector<uint32_t> ours = chain(t_, x), theirs = chain(g_, y);
    const auto same_class = [&](uint32_t a, uint32_t b) {
      const ModuleNode &p = t_.side.modules()[a], &q = g_.side.modules()[b];
      return !p.type.empty() && p.kind == q.kind;
    };
    for (const uint32_t b : theirs) {
      if (same_class(x, b)) return out->emplace_back(x, b), void();
    }
    const bool better = std::any_of(ours.begin(), ours.end(), [&](uint32_t a) {
      return std::any_of(theirs.begin(), theirs.end(), [&](uint32_t b) { return same_class(a, b); });
    });
    if (!better && x == ours.back()) out->emplace_back(x, theirs.back());
  }

  Region t_, g_;
  std::vector<size_t> golden_at_, target_at_;  // of leaves
  struct Joint {
    size_t i, n, j, m;  // n layers of the target from i on and m of the golden run from j on; n or m is 1
  };
  std::vector<Joint> joints_;
};

}  // namespace

std::vector<std::string> ParameterShapes(const ModuleNode& module) {
  std::vector<std::string> out;
  const std::string_view all = module.parameters;
  for (size_t at = all.find('['); at != std::string_view::npos; at = all.find('[', at + 1)) {
    const std::string_view inside = all.substr(at + 1, all.find(']', at) - at - 1);
    std::vector<std::string_view> sizes = Split(inside, ' ');
    for (std::string_view& size : sizes) {
      if (EndsWith(size, ",")) size.remove_suffix(1);
    }
    if (sizes.size() == 2 && std::make_pair(sizes[0].size(), sizes[0]) > std::make_pair(sizes[1].size(), sizes[1])) {
      std::swap(sizes[0], sizes[1]);
    }
    std::string text;
    for (const std::string_view size : sizes) text.append(text.empty() ? "" : " ").append(size);
    out.push_back(std::move(text));
  }
  std::sort(out.begin(), out.end());
  return out;
}

double LeafScore(const Structure& target, uint32_t x, const Structure& golden, uint32_t y) {
  const ModuleNode &a = target.modules()[x], &b = golden.modules()[y];
  const bool same_kind = a.kind == b.kind;
  if (!same_kind && a.layer && b.layer) return 0;
  if (a.layer != b.layer) {
    const std::vector<std::string_view> mine = Functions(target, x);
    if (mine.empty() || mine != Functions(golden, y)) return 0;
  }
  double out = same_kind ? kSameKind : 0;
  if (a.parameters.empty() && b.parameters.empty()) {
    if (!same_kind) return 0;
    out += kNoParameters;
  } else if (!a.parameters.empty() && !b.parameters.empty()) {
    const std::vector<std::string> mine = ParameterShapes(a), theirs = ParameterShapes(b);
    const size_t common = CountCommon(mine, theirs);
    if (common < std::min(mine.size(), theirs.size())) return 0;
    out += mine.size() == theirs.size() ? kSameShapes : kMoreParameters;
  }
  if (a.elements > 0 && b.elements > 0 && a.elements != b.elements) out += kOtherSize;
  out += kAlikeOwnName * Likeness(a.name, b.name);
  return out + kAlikeParent * Likeness(target.modules()[a.parent].name, golden.modules()[b.parent].name);
}

bool MayBeOne(const Structure& target, uint32_t x, const Structure& golden, uint32_t y) {
  const ModuleNode &a = target.modules()[x], &b = golden.modules()[y];
  if (a.elements > 0 && b.elements > 0 && a.elements != b.elements && a.kind != b.kind) return false;
  const std::vector<std::string> mine = ShapesBelow(target, x), theirs = ShapesBelow(golden, y);
  if (mine.empty() != theirs.empty()) return a.kind == b.kind;
  if (mine.empty()) return a.layer == b.layer || Functions(target, x) == Functions(golden, y);
  return static_cast<double>(CountCommon(mine, theirs)) >=
         kSomeTheSame * static_cast<double>(std::min(mine.size(), theirs.size()));
}

LeafPairs PairByLeaves(const Structure& target, uint32_t t, const Structure& golden, uint32_t g,
                       const ModulePairs& known) {
  return RegionPairing(target, t, golden, g, known).Run();
}

}  // namespace msprobe
