#include "match/leaf_pairs.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "match/match_plan.h"
#include "match/modules/container_pairs.h"
#include "match/modules/hash_mix.h"
#include "match/modules/likeness.h"
#include "match/modules/parameter_shapes.h"

namespace msprobe {
namespace {

// What speaks for two layers being one.
constexpr double kSameKind = 2, kSameShapes = 2, kMoreParameters = 0.5, kNoParameters = 0.5, kOtherSize = -1.5,
                 kAlikeOwnName = 0.6, kAlikeParent = 0.4, kEnoughForLeaves = 1.7, kJoined = 4;
constexpr size_t kMostParts = 4;          // of a model, which run in another order
constexpr size_t kMostJoined = 3;         // query, key and value
constexpr size_t kMostCells = 2'000'000;  // of a table of scores; more layers are aligned by kind and shapes alone
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

void AddShapesBelow(const Structure& side, uint32_t m, Shapes* out) {
  const Shapes own = ShapesOf(side.modules()[m].parameters);
  out->insert(out->end(), own.begin(), own.end());
  for (const uint32_t c : side.modules()[m].children) AddShapesBelow(side, c, out);
}

Shapes ShapesBelow(const Structure& side, uint32_t m) {
  Shapes out;
  AddShapesBelow(side, m, &out);
  std::sort(out.begin(), out.end());
  return out;
}

/// Elements of all parameters of a module and below it, however they are cut into weights; -1: too many.
int64_t ElementsBelow(const Structure& side, uint32_t m) {
  int64_t out = ElementsOf(side.modules()[m].parameters);
  for (const uint32_t c : side.modules()[m].children) {
    const int64_t below = ElementsBelow(side, c);
    if (out < 0 || below < 0 || __builtin_add_overflow(out, below, &out)) return -1;
  }
  return out;
}

/// A layer, or a module with nothing inside, and what it is compared by.
struct Leaf {
  Leaf(const Structure& side, uint32_t m)
      : id(m), node(&side.modules()[m]), parent(side.modules()[node->parent].name), shapes(ShapesOf(node->parameters)) {
    std::tie(rows, width) = RowsOf(node->parameters);
    functions = Functions(side, m);
  }
  uint32_t id;
  const ModuleNode* node;
  std::string_view parent;
  Shapes shapes;
  int64_t rows = 0;
  std::string_view width;
  std::vector<std::string_view> functions;
};

/// How much two of them look like one; 0: they are not. Of two implementations a class of their own may write out what
/// another does by a layer of the framework: a norm by its mean and root. What it holds and gives tells.
double LeafScore(const Leaf& x, const Leaf& y, bool implementations) {
  const ModuleNode &a = *x.node, &b = *y.node;
  const bool same_kind = a.kind == b.kind;
  if (!same_kind && a.layer && b.layer) return 0;
  const bool written_out = implementations && x.shapes.size() == 1 && x.shapes == y.shapes && a.elements == b.elements;
  if (a.layer != b.layer && !written_out && (x.functions.empty() || x.functions != y.functions)) return 0;
  double out = same_kind ? kSameKind : 0;
  if (x.shapes.empty() && y.shapes.empty()) {
    if (!same_kind) return 0;
    out += kNoParameters;
  } else if (!x.shapes.empty() && !y.shapes.empty()) {
    if (CountCommon(x.shapes, y.shapes) < std::min(x.shapes.size(), y.shapes.size())) return 0;
    out += x.shapes.size() == y.shapes.size() ? kSameShapes : kMoreParameters;
  }
  if (a.elements > 0 && b.elements > 0 && a.elements != b.elements) out += kOtherSize;
  return out + kAlikeOwnName * Likeness(a.name, b.name) + kAlikeParent * Likeness(x.parent, y.parent);
}

/// Whether layers that follow each other compute together what one layer of the other side does.
bool AreParts(const Leaf* parts, size_t count, const Leaf& whole) {
  if (!whole.node->layer || whole.rows == 0) return false;
  int64_t rows = 0, elements = 0;
  for (const Leaf* part = parts; part != parts + count; ++part) {
    if (part->rows == 0 || part->rows >= whole.rows || part->width != whole.width) return false;
    if (part->node->kind != whole.node->kind || part->node->parent != parts->node->parent) return false;
    if (part->shapes.size() != whole.shapes.size()) return false;
    if (__builtin_add_overflow(rows, part->rows, &rows)) return false;
    if (__builtin_add_overflow(elements, part->node->elements, &elements)) return false;
  }
  const int64_t all = whole.node->elements;
  return rows == whole.rows && (all == 0 || elements == 0 || elements == all);
}

/// One side of a region: the layers in it that have no partner, in the order in which they run.
struct Region {
  struct Container {
    uint32_t id;
    size_t first = 0, last = 0;  // leaves below it: [first, last)
  };
  const Structure& side;
  const std::vector<uint32_t>& partner;
  std::unordered_set<uint32_t> taken = {};  // layers that are joined
  std::vector<Leaf> leaves = {};
  std::vector<Container> containers = {};

  void Collect(uint32_t module) {
    for (const uint32_t c : side.modules()[module].children) {
      if (partner[c] != kNoModule || taken.count(c)) continue;
      if (IsLeaf(side, c)) {
        leaves.emplace_back(side, c);
        continue;
      }
      const size_t at = containers.size();
      containers.push_back({c, leaves.size()});
      Collect(c);
      containers[at].last = leaves.size();
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
    if (t_.leaves.size() * g_.leaves.size() > kMostCells) {
      AlignByKeys();
    } else {
      // Parts that run in another order (a picture before the text, or behind its first layer) need one look each.
      size_t looks = t_.side.implementations() ? kMostParts : 1;
      for (size_t known = 0; looks > 0 && AlignByScores() > known; --looks) known = Known();
    }
    ExchangeByName();
    LeafPairs out;
    if (t_.side.implementations()) {
      out.pairs = PairByShare(SpansOf(t_), SpansOf(g_), Links());
    } else {
      for (const Region::Container& x : t_.containers) PairContainer(x, &out.pairs);
    }
    std::vector<bool> joined(t_.leaves.size(), false);
    for (const auto& [i, n, j, m] : joints_) {
      JoinedLayers layers;
      const auto add = [](const Region& region, size_t from, size_t count, std::vector<uint32_t>* to) {
        for (size_t k = from; k < from + count; ++k) {
          if (count == 1 || region.leaves[k].rows > 0) to->push_back(region.leaves[k].id);
        }
      };
      add(t_, i, n, &layers.targets);
      add(g_, j, m, &layers.goldens);
      for (size_t k = i; k < i + n; ++k) joined[k] = true;
      out.joined.push_back(std::move(layers));
    }
    for (size_t i = 0; i < t_.leaves.size(); ++i) {
      if (golden_at_[i] != kNone && !joined[i]) out.pairs.emplace_back(t_.leaves[i].id, g_.leaves[golden_at_[i]].id);
    }
    return out;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  double Score(size_t i, size_t j) const { return LeafScore(t_.leaves[i], g_.leaves[j], t_.side.implementations()); }
  void Join(size_t i, size_t j) { golden_at_[i] = j, target_at_[j] = i; }

  /// Layers of the target that are known.
  size_t Known() const { return golden_at_.size() - static_cast<size_t>(std::ranges::count(golden_at_, kNone)); }

  bool AreFree(size_t i, size_t n, size_t j, size_t m) const {
    const auto free = [](const std::vector<size_t>& partner, size_t from, size_t count) {
      const auto begin = partner.begin() + static_cast<std::ptrdiff_t>(from);
      return std::all_of(begin, begin + static_cast<std::ptrdiff_t>(count), [](size_t p) { return p == kNone; });
    };
    return free(golden_at_, i, n) && free(target_at_, j, m);
  }

  /// How many layers from (i, j) on are one layer of the other side, as (n, 1) or (1, m); (0, 0): no.
  std::pair<size_t, size_t> JointAt(size_t i, size_t j) const {
    if (t_.side.implementations()) {
      for (size_t n = kMostJoined; n > 1; --n) {
        if (const size_t span = PartsAt(t_.leaves, i, n, g_.leaves[j]); span > 0 && AreFree(i, span, j, 1)) {
          return {span, 1};
        }
        if (const size_t span = PartsAt(g_.leaves, j, n, t_.leaves[i]); span > 0 && AreFree(i, 1, j, span)) {
          return {1, span};
        }
      }
      return {0, 0};
    }
    for (size_t n = kMostJoined; n > 1; --n) {
      if (i + n <= t_.leaves.size() && AreParts(&t_.leaves[i], n, g_.leaves[j])) return {n, 1};
      if (j + n <= g_.leaves.size() && AreParts(&g_.leaves[j], n, t_.leaves[i])) return {1, n};
    }
    return {0, 0};
  }

  /// The same with layers without parameters in between: the activation that runs on the gate before `up` is called.
  static size_t PartsAt(const std::vector<Leaf>& leaves, size_t at, size_t count, const Leaf& whole) {
    constexpr size_t kMostBetween = 3;
    std::vector<Leaf> parts;
    for (size_t i = at; i < std::min(leaves.size(), at + count + kMostBetween); ++i) {
      if (!leaves[i].shapes.empty()) {
        parts.push_back(leaves[i]);
      } else if (parts.empty()) {
        return 0;
      }
      if (parts.size() == count) return AreParts(parts.data(), count, whole) ? i + 1 - at : 0;
    }
    return 0;
  }

  static std::vector<LayerSpan> SpansOf(const Region& region) {
    std::vector<LayerSpan> out;
    for (const Region::Container& c : region.containers) {
      out.push_back({c.id, !region.side.modules()[c.id].type.empty(), c.first, c.last});
    }
    return out;
  }

  /// Pairs of layers, and parts with their whole.
  std::vector<std::pair<size_t, size_t>> Links() const {
    std::vector<std::pair<size_t, size_t>> out;
    for (size_t i = 0; i < golden_at_.size(); ++i) {
      if (golden_at_[i] != kNone) out.emplace_back(i, golden_at_[i]);
    }
    for (size_t j = 0; j < target_at_.size(); ++j) {
      if (target_at_[j] != kNone && golden_at_[target_at_[j]] != j) out.emplace_back(target_at_[j], j);
    }
    return out;
  }

  /// What has no parameters says so little of itself that it goes with the modules around it.
  bool MayPair(size_t i, size_t j) const {
    if (!AreFree(i, 1, j, 1)) return false;
    if (!t_.side.implementations() || !t_.leaves[i].shapes.empty() || !g_.leaves[j].shapes.empty()) return true;
    return t_.partner[t_.leaves[i].node->parent] == g_.leaves[j].node->parent;
  }

  /// The alignment with the greatest sum of scores.
  size_t AlignByScores() {
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
        const double score = MayPair(i, j) ? Score(i, j) : 0;
        if (const auto both = static_cast<float>(score) + at(i + 1, j + 1);
            score >= kEnoughForLeaves && both > at(i, j)) {
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
        for (size_t k = 0; k < step.down; ++k) {
          if (step.down == 1 || t_.leaves[i + k].rows > 0) golden_at_[i + k] = j;
        }
        for (size_t k = 0; k < step.right; ++k) {
          if (step.right == 1 || g_.leaves[j + k].rows > 0) target_at_[j + k] = i;
        }
      }
      i += step.down, j += step.right;
    }
    return Known();
  }

  void AlignByKeys() {
    std::unordered_map<uint64_t, uint32_t> ids;
    const auto list = [&ids](const Region& region) {
      BigArray<uint32_t> out;
      for (const Leaf& leaf : region.leaves) {
        uint64_t key = HashOf(leaf.node->kind);
        for (const uint64_t shape : leaf.shapes) key = MixHash(key, shape);
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
      return Likeness(t_.leaves[i].node->name, g_.leaves[j].node->name);
    };
    for (size_t i = 0; i < t_.leaves.size(); ++i) {
      for (size_t k = i + 1; k < std::min(i + kNear, t_.leaves.size()); ++k) {
        const size_t x = golden_at_[i], y = golden_at_[k];
        if (x == kNone || y == kNone || target_at_[x] != i || target_at_[y] != k) continue;
        const auto parent = [](const Region& region, size_t a) { return region.leaves[a].node->parent; };
        if (parent(t_, i) != parent(t_, k) || parent(g_, x) != parent(g_, y)) continue;
        if (Score(i, y) < kEnoughForLeaves) continue;
        if (Score(k, x) < kEnoughForLeaves) continue;
        if (likeness(i, y) + likeness(k, x) > likeness(i, x) + likeness(k, y) + kClearly) Join(i, y), Join(k, x);
      }
    }
  }

  /// The innermost container of the other side that holds the partners of the leaves in `of`; null without.
  static const Region::Container* Around(const Region& other, const std::vector<size_t>& partner,
                                         const Region::Container& of) {
    size_t first = kNone, last = 0, paired = 0;
    for (size_t i = of.first; i < of.last; ++i) {
      if (partner[i] == kNone) continue;
      first = std::min(first, partner[i]), last = std::max(last, partner[i]);
      ++paired;
    }
    if (paired == 0 || static_cast<double>(paired) < kMostlyTheSame * static_cast<double>(of.last - of.first)) {
      return nullptr;
    }
    const Region::Container* best = nullptr;
    for (const Region::Container& c : other.containers) {
      // Of those with the same leaves the innermost, which stands behind the others.
      const bool holds = c.first <= first && last < c.last;
      if (holds && (!best || c.last - c.first <= best->last - best->first)) best = &c;
    }
    return best;
  }

  /// Whether two containers of one side hold the same layers, but for such as have neither parameters nor a partner.
  static bool HoldTheSame(const Region& region, const std::vector<size_t>& partner, const Region::Container& a,
                          const Region::Container& b) {
    const auto counts = [&](size_t i) { return !region.leaves[i].shapes.empty() || partner[i] != kNone; };
    for (size_t i = std::min(a.first, b.first); i < std::max(a.last, b.last); ++i) {
      const bool in_both = i >= std::max(a.first, b.first) && i < std::min(a.last, b.last);
      if (!in_both && counts(i)) return false;
    }
    return true;
  }

  void PairContainer(const Region::Container& x, std::vector<std::pair<uint32_t, uint32_t>>* out) const {
    const Region::Container* y = Around(g_, golden_at_, x);
    const Region::Container* back = y ? Around(t_, target_at_, *y) : nullptr;
    if (!back || !HoldTheSame(t_, golden_at_, *back, x)) return;
    // What holds the same leaves one inside the other: one class first, else the innermost.
    const auto chain = [](const Region& region, const std::vector<size_t>& partner, const Region::Container& like) {
      std::vector<uint32_t> all;
      for (const Region::Container& c : region.containers) {
        if (HoldTheSame(region, partner, c, like)) all.push_back(c.id);
      }
      return all;
    };
    const std::vector<uint32_t> ours = chain(t_, golden_at_, x), theirs = chain(g_, target_at_, *y);
    const auto same_class = [&](uint32_t a, uint32_t b) {
      const ModuleNode &p = t_.side.modules()[a], &q = g_.side.modules()[b];
      return !p.type.empty() && p.kind == q.kind;
    };
    for (const uint32_t b : theirs) {
      if (same_class(x.id, b)) return out->emplace_back(x.id, b), void();
    }
    const bool better = std::any_of(ours.begin(), ours.end(), [&](uint32_t a) {
      return std::any_of(theirs.begin(), theirs.end(), [&](uint32_t b) { return same_class(a, b); });
    });
    if (better) return;
    // A list inside of a block calls its layers alone; what the block adds to them is outside of it.
    std::tuple<size_t, uint32_t, uint32_t> most{0, ours.back(), theirs.back()};
    for (const uint32_t a : ours) {
      for (const uint32_t b : theirs) {
        const size_t common = CommonFunctions(a, b);
        if (common >= std::get<0>(most) && common > 0) most = {common, a, b};
      }
    }
    if (x.id == std::get<1>(most)) out->emplace_back(x.id, std::get<2>(most));
  }

  /// Functions that both call by themselves.
  size_t CommonFunctions(uint32_t a, uint32_t b) const {
    const std::vector<std::string_view> mine = Functions(t_.side, a), theirs = Functions(g_.side, b);
    std::vector<std::string_view> both;
    std::ranges::set_intersection(mine, theirs, std::back_inserter(both));
    return both.size();
  }

  Region t_, g_;
  std::vector<size_t> golden_at_, target_at_;  // of leaves
  struct Joint {
    size_t i, n, j, m;  // n layers of the target from i on and m of the golden run from j on; n or m is 1
  };
  std::vector<Joint> joints_;
};

}  // namespace

bool MayBeOne(const Structure& target, uint32_t x, const Structure& golden, uint32_t y) {
  const ModuleNode &a = target.modules()[x], &b = golden.modules()[y];
  if (a.elements > 0 && b.elements > 0 && a.elements != b.elements && a.kind != b.kind) return false;
  const Shapes mine = ShapesBelow(target, x), theirs = ShapesBelow(golden, y);
  if (mine.empty() != theirs.empty()) return a.kind == b.kind;
  if (mine.empty()) return a.layer == b.layer || Functions(target, x) == Functions(golden, y);
  if (target.implementations()) {
    const int64_t elements = ElementsBelow(target, x);
    if (elements > 0 && elements == ElementsBelow(golden, y)) return true;
  }
  return static_cast<double>(CountCommon(mine, theirs)) >=
         kSomeTheSame * static_cast<double>(std::min(mine.size(), theirs.size()));
}

std::optional<JoinedLayers> WholeOfPart(const Structure& target, uint32_t x, const Structure& golden, uint32_t y) {
  const auto rows = [](const Structure& side, uint32_t m) { return RowsOf(side.modules()[m].parameters).first; };
  if (rows(target, x) == 0 || rows(golden, y) == 0 || rows(target, x) == rows(golden, y)) return std::nullopt;
  const bool parts_of_target = rows(target, x) < rows(golden, y);
  const Structure& side = parts_of_target ? target : golden;
  const uint32_t part = parts_of_target ? x : y;
  const Leaf whole(parts_of_target ? golden : target, parts_of_target ? y : x);
  std::vector<Leaf> beside;
  for (const uint32_t c : side.modules()[side.modules()[part].parent].children) {
    if (!side.modules()[c].parameters.empty()) beside.emplace_back(side, c);
  }
  for (size_t n = kMostJoined; n > 1; --n) {
    for (size_t i = 0; i + n <= beside.size(); ++i) {
      const auto end = beside.begin() + static_cast<std::ptrdiff_t>(i + n);
      const bool holds =
          std::any_of(end - static_cast<std::ptrdiff_t>(n), end, [&](const Leaf& l) { return l.id == part; });
      if (!holds || !AreParts(&beside[i], n, whole)) continue;
      JoinedLayers out;
      std::vector<uint32_t>& parts = parts_of_target ? out.targets : out.goldens;
      for (size_t k = i; k < i + n; ++k) parts.push_back(beside[k].id);
      (parts_of_target ? out.goldens : out.targets).push_back(whole.id);
      return out;
    }
  }
  return std::nullopt;
}

LeafPairs PairByLeaves(const Structure& target, uint32_t t, const Structure& golden, uint32_t g,
                       const ModulePairs& known) {
  return RegionPairing(target, t, golden, g, known).Run();
}

}  // namespace msprobe
