#include "match/module_pairs.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "match/leaf_pairs.h"
#include "match/modules/hash_mix.h"
#include "match/modules/likeness.h"

namespace msprobe {
namespace {

// What speaks for two modules being one; together they are called that from kEnough on.
constexpr double kSameClass = 3, kSameContents = 3, kBothLeaves = 1, kSameParameters = 2, kOtherParameters = -1,
                 kAlikeName = 1.5, kSamePlace = 1, kEnough = 4.5;
constexpr double kInOrder = 0.5;    // the place of what is looked at in its order
constexpr double kSameNorm = 1e-5;  // weights of one file; two layers of one shape are further apart
constexpr size_t kMostCrossed = 4;  // pairs between which the order is another
constexpr size_t kMostWrappers = 4;
constexpr size_t kMostScored = 64;  // left-over children on each side; more are paired by class and contents only

class Pairing {
 public:
  Pairing(const Structure& target, const Structure& golden, const std::vector<LayerRule>& rules)
      : target_(target), golden_(golden), rules_(rules) {
    out_.golden_of.assign(target.modules().size(), kNoModule);
    out_.target_of.assign(golden.modules().size(), kNoModule);
  }

  ModulePairs Run() {
    for (const ModuleNode& node : target_.modules()) classes_.insert(node.type);
    Pair(0, 0);
    DescendAll();
    // Elsewhere: close to where it was before anywhere, and what surely is the same before what may be.
    for (const bool close : {true, false}) {
      for (const bool named : {true, false}) {
        FindMoved(close, named);
        DescendAll();
      }
    }
    return std::move(out_);
  }

 private:
  const ModuleNode& T(uint32_t m) const { return target_.modules()[m]; }
  const ModuleNode& G(uint32_t m) const { return golden_.modules()[m]; }
  bool FreeT(uint32_t m) const { return out_.golden_of[m] == kNoModule && !joined_targets_.count(m); }
  bool FreeG(uint32_t m) const { return out_.target_of[m] == kNoModule && !joined_goldens_.count(m); }

  void Pair(uint32_t t, uint32_t g) {
    out_.golden_of[t] = g;
    out_.target_of[g] = t;
    open_.emplace_back(t, g);
  }

  /// Of one framework each pair is looked into as a whole. Of two frameworks what has one name first, then what holds
  /// the same layers, then what is most alike.
  void DescendAll() {
    if (target_.vocabulary() != Vocabulary::kOwn) return DescendByLeaves();
    while (!open_.empty()) {
      const auto [t, g] = open_.back();
      open_.pop_back();
      ByRules(t, g);
      ByName(t, g);
      ByScore(t, g);
    }
  }

  void DescendByLeaves() {
    std::vector<std::pair<uint32_t, uint32_t>> pairs;
    const auto by_name = [&] {
      while (!open_.empty()) {
        const auto [t, g] = open_.back();
        open_.pop_back();
        pairs.emplace_back(t, g);
        ByRules(t, g);
        ByName(t, g);
      }
    };
    by_name();
    for (size_t leaves = 0, scores = 0; scores < pairs.size(); ++scores) {
      for (; leaves < pairs.size(); ++leaves) {
        const auto [t, g] = pairs[leaves];
        const LeafPairs found = PairByLeaves(target_, t, golden_, g, out_);
        for (const auto& [x, y] : found.pairs) {
          if (FreeT(x) && FreeG(y)) Pair(x, y);
        }
        for (const JoinedLayers& layers : found.joined) JoinLayers(layers);
        by_name();
      }
      const auto [t, g] = pairs[scores];
      ByScore(t, g);
      by_name();
    }
  }

  void JoinLayers(const JoinedLayers& layers) {
    joined_targets_.insert(layers.targets.begin(), layers.targets.end());
    joined_goldens_.insert(layers.goldens.begin(), layers.goldens.end());
    out_.joined.push_back(layers);
  }

  uint32_t Below(const Structure& side, uint32_t module, std::string_view path) const {
    while (!path.empty() && module != kNoModule) {
      const size_t end = std::min(path.find('.'), path.size());
      const auto& children = side.modules()[module].children;
      const auto it = std::find_if(children.begin(), children.end(),
                                   [&](uint32_t c) { return side.modules()[c].name == path.substr(0, end); });
      module = it == children.end() ? kNoModule : *it;
      path.remove_prefix(std::min(end + 1, path.size()));
    }
    return module;
  }

  /// As Below(). A mapping is written for one way in which a model is wrapped (a list of chunks, Float16Module, DDP):
  /// without a wrapper the rest of its path counts, and what it names may be beside the partner or deeper in it.
  uint32_t Near(const Structure& side, uint32_t module, std::string_view path) const {
    uint32_t found = Below(side, module, path);
    if (found != kNoModule || !side.implementations()) return found;
    for (std::string_view rest = path; found == kNoModule && Contains(rest, ".");) {
      rest.remove_prefix(rest.find('.') + 1);
      found = Below(side, module, rest);
    }
    for (uint32_t around = module; found == kNoModule && around != 0;) {
      around = side.modules()[around].parent;
      found = Below(side, around, path);
    }
    for (size_t steps = 0; found == kNoModule && steps < kMostWrappers; ++steps) {
      uint32_t next = kNoModule;
      for (const uint32_t child : side.modules()[module].children) {
        if (found == kNoModule) found = Below(side, child, path);
        if (next == kNoModule || side.modules()[child].size > side.modules()[next].size) next = child;
      }
      if (next == kNoModule) break;
      module = next;
    }
    return found;
  }

  /// A class that no module of the target has is that of the model itself, which a run that is not wrapped does not
  /// record.
  bool IsOf(const LayerRule& rule, uint32_t t) const {
    if (IsOfWrapper(rule, t)) return true;
    return rule.type == (t == 0 ? std::string_view("TopLayer") : T(t).type);
  }

  /// Whether the rule is for a wrapper that this run does without, and `t` is what it may stand around.
  bool IsOfWrapper(const LayerRule& rule, uint32_t t) const {
    const bool outer = T(t).depth < kMostWrappers;
    return outer && target_.implementations() && rule.type != "TopLayer" && !classes_.count(rule.type);
  }

  void ByRules(uint32_t t, uint32_t g) {
    for (const LayerRule& rule : rules_) {
      if (!IsOf(rule, t)) continue;
      for (const auto& [target, golden] : rule.children) {
        const uint32_t x = IsOfWrapper(rule, t) ? Near(target_, t, target) : Below(target_, t, target);
        const uint32_t y = x == kNoModule ? kNoModule : Near(golden_, g, golden);
        if (y == kNoModule || !FreeT(x) || !FreeG(y)) continue;
        const auto whole = target_.implementations() ? WholeOfPart(target_, x, golden_, y) : std::nullopt;
        if (whole && std::ranges::all_of(whole->targets, [&](uint32_t m) { return FreeT(m); }) &&
            std::ranges::all_of(whole->goldens, [&](uint32_t m) { return FreeG(m); })) {
          JoinLayers(*whole);
        } else if (y == Below(golden_, g, golden) || Fit(x, y)) {
          Pair(x, y);
        }
      }
    }
  }

  /// Whether two modules of two frameworks may be one; of one framework they may be anything.
  bool Fit(uint32_t x, uint32_t y) const {
    return target_.vocabulary() == Vocabulary::kOwn || MayBeOne(target_, x, golden_, y);
  }

  void ByName(uint32_t t, uint32_t g) {
    std::unordered_map<std::string_view, uint32_t> names;
    for (const uint32_t y : G(g).children) {
      if (FreeG(y)) names.emplace(G(y).name, y);
    }
    for (const uint32_t x : T(t).children) {
      const auto it = names.find(T(x).name);
      if (it != names.end() && FreeT(x) && Fit(x, it->second)) Pair(x, it->second);
    }
  }

  double Score(uint32_t x, uint32_t y, double place) const {
    const ModuleNode &a = T(x), &b = G(y);
    double out = kAlikeName * Likeness(a.name, b.name) + kSamePlace * place;
    const bool containers = a.kind.empty() && b.kind.empty();
    if (a.kind.empty() == b.kind.empty()) {
      out += a.kind == b.kind ? kSameClass * (containers ? 0.5 : 1) : kSameClass * 0.6 * Likeness(a.kind, b.kind);
    }
    const auto bigger = static_cast<double>(std::max(a.size, b.size)),
               smaller = static_cast<double>(std::min(a.size, b.size));
    if (a.contents == b.contents) {
      out += a.size == 1 && a.functions.empty() ? kBothLeaves : kSameContents;
    } else if (bigger > 1) {
      out += kSameContents * 0.5 * smaller / bigger;
    }
    if (!a.parameters.empty() && !b.parameters.empty()) {
      out += a.parameters == b.parameters ? kSameParameters : kOtherParameters;
    }
    return out;
  }

  void ByScore(uint32_t t, uint32_t g) {
    std::vector<uint32_t> target, golden;
    for (const uint32_t x : T(t).children) {
      if (FreeT(x)) target.push_back(x);
    }
    for (const uint32_t y : G(g).children) {
      if (FreeG(y)) golden.push_back(y);
    }
    if (target.empty() || golden.empty()) return;
    if (target.size() > kMostScored || golden.size() > kMostScored) return InOrder(target, golden);
    if (target_.vocabulary() != Vocabulary::kOwn) AlongOrder(target, golden);
    std::vector<std::tuple<double, size_t, size_t>> scores;
    for (size_t i = 0; i < target.size(); ++i) {
      for (size_t j = 0; j < golden.size(); ++j) {
        const double apart = static_cast<double>(i > j ? i - j : j - i);
        const double score =
            Score(target[i], golden[j], 1 - apart / static_cast<double>(std::max(target.size(), golden.size())));
        if (score >= kEnough && Fit(target[i], golden[j])) scores.emplace_back(-score, i, j);
      }
    }
    std::sort(scores.begin(), scores.end());
    for (const auto& [score, i, j] : scores) {
      if (FreeT(target[i]) && FreeG(golden[j])) Pair(target[i], golden[j]);
    }
  }

  /// Of two frameworks names say little: partners follow each other in the same order, so that their scores are
  /// greatest together.
  void AlongOrder(const std::vector<uint32_t>& target, const std::vector<uint32_t>& golden) {
    const size_t n = target.size(), m = golden.size();
    std::vector<std::vector<double>> score(n, std::vector<double>(m)), best(n + 1, std::vector<double>(m + 1));
    for (size_t i = n; i-- > 0;) {
      for (size_t j = m; j-- > 0;) {
        score[i][j] = Fit(target[i], golden[j]) ? Score(target[i], golden[j], kInOrder) : 0;
        const double both = score[i][j] >= kEnough ? score[i][j] + best[i + 1][j + 1] : -1;
        best[i][j] = std::max({best[i + 1][j], best[i][j + 1], both});
      }
    }
    for (size_t i = 0, j = 0; i < n && j < m;) {
      if (score[i][j] >= kEnough && best[i][j] == score[i][j] + best[i + 1][j + 1]) {
        Pair(target[i++], golden[j++]);
      } else if (best[i][j] == best[i + 1][j]) {
        ++i;
      } else {
        ++j;
      }
    }
  }

  /// The n-th of a class and contents with the n-th.
  void InOrder(const std::vector<uint32_t>& target, const std::vector<uint32_t>& golden) {
    const auto key = [](const ModuleNode& m) { return MixHash(HashOf(m.kind), m.contents); };
    std::unordered_map<uint64_t, std::pair<std::vector<uint32_t>, size_t>> queues;
    for (const uint32_t y : golden) queues[key(G(y))].first.push_back(y);
    for (const uint32_t x : target) {
      const auto it = queues.find(key(T(x)));
      if (it == queues.end() || it->second.second == it->second.first.size()) continue;
      Pair(x, it->second.first[it->second.second++]);
    }
  }

  /// Left-over modules, those with much inside first, so that what they contain goes with them.
  static std::vector<uint32_t> Left(const Structure& side, const std::vector<uint32_t>& partner) {
    std::vector<uint32_t> out;
    for (uint32_t m = 1; m < partner.size(); ++m) {
      if (partner[m] == kNoModule) out.push_back(m);
    }
    std::stable_sort(out.begin(), out.end(),
                     [&](uint32_t a, uint32_t b) { return side.modules()[a].size > side.modules()[b].size; });
    return out;
  }

  /// The nearest module above that has a partner, as the target's id.
  uint32_t Around(const Structure& side, const std::vector<uint32_t>& partner, bool target, uint32_t m) const {
    do m = side.modules()[m].parent;
    while (partner[m] == kNoModule);
    return target ? m : partner[m];
  }

  /// Of two frameworks, what runs among other layers is only by its weights known to be the same.
  bool MayHaveMoved(uint32_t x, uint32_t y) const {
    if (target_.vocabulary() == Vocabulary::kOwn) return true;
    if (T(x).norm > 0 && std::fabs(T(x).norm - G(y).norm) <= kSameNorm * T(x).norm) return true;
    size_t crossed = 0;
    for (uint32_t t = 0; t < out_.golden_of.size() && crossed < kMostCrossed; ++t) {
      const uint32_t g = out_.golden_of[t];
      if (g == kNoModule || !T(t).children.empty() || T(t).calls.empty() || G(g).calls.empty()) continue;
      crossed += (T(t).calls.first < T(x).calls.first) != (G(g).calls.first < G(y).calls.first);
    }
    return crossed < kMostCrossed;
  }

  void FindMoved(bool close, bool named) {
    const auto key = [&](const Structure& side, const std::vector<uint32_t>& partner, bool target, uint32_t m) {
      const ModuleNode& node = side.modules()[m];
      uint64_t hash = MixHash(HashOf(node.kind), named ? HashOf(node.name) : node.contents);
      if (close) hash = MixHash(hash, Around(side, partner, target, m));
      return named ? hash : MixHash(hash, node.size);
    };
    // What has no class is a container: it moves with what it contains.
    std::unordered_map<uint64_t, std::pair<std::vector<uint32_t>, size_t>> queues;
    std::unordered_map<uint64_t, size_t> target_count;
    const std::vector<uint32_t> left = Left(target_, out_.golden_of);
    for (const uint32_t y : Left(golden_, out_.target_of)) {
      if (!G(y).type.empty()) queues[key(golden_, out_.target_of, false, y)].first.push_back(y);
    }
    std::vector<uint64_t> keys(left.size());
    for (size_t i = 0; i < left.size(); ++i) {
      if (T(left[i]).type.empty()) continue;
      keys[i] = key(target_, out_.golden_of, true, left[i]);
      ++target_count[keys[i]];
    }
    for (size_t i = 0; i < left.size(); ++i) {
      const auto it = queues.find(keys[i]);
      if (T(left[i]).type.empty() || it == queues.end()) continue;
      auto& [list, next] = it->second;
      // Without a name or a place in common, only what can be told apart is paired.
      if (!(named && close) && (list.size() != target_count[keys[i]] || (!named && list.size() > 1 && !close)))
        continue;
      while (next < list.size() && !FreeG(list[next])) ++next;
      if (next < list.size() && FreeT(left[i]) && Fit(left[i], list[next]) &&
          (named || MayHaveMoved(left[i], list[next]))) {
        Pair(left[i], list[next++]);
        DescendAll();
      }
    }
  }

  const Structure &target_, &golden_;
  const std::vector<LayerRule>& rules_;
  ModulePairs out_;
  std::vector<std::pair<uint32_t, uint32_t>> open_;
  std::unordered_set<uint32_t> joined_targets_, joined_goldens_;
  std::unordered_set<std::string_view> classes_;  // of the target
};

}  // namespace

ModulePairs PairModules(const Structure& target, const Structure& golden, const std::vector<LayerRule>& rules) {
  return Pairing(target, golden, rules).Run();
}

}  // namespace msprobe
