#include "match/cross_match.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "dump/flatten.h"
#include "match/cross_items.h"
#include "match/cross_side.h"
#include "match/module_items.h"
#include "match/module_pairs.h"
#include "match/structure.h"
#include "ops/framework_names.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr size_t kNotAligned = SIZE_MAX;
constexpr double kSameFactor = 1e-6;

/// Positions of two lists that belong together.
using Aligned = std::vector<std::pair<size_t, size_t>>;

class Matcher {
 public:
  Matcher(CrossSide* target, CrossSide* golden, MatchPlan* plan) : target_(*target), golden_(*golden), plan_(plan) {}

  void Run(const ModulePairs& pairs) {
    const bool implementations = target_.structure.implementations();
    for (uint32_t t = 0; t < pairs.golden_of.size(); ++t) {
      const uint32_t g = pairs.golden_of[t];
      if (g == kNoModule) continue;
      PairModuleCalls(t, g);
      if (implementations) continue;
      if (target_.HasActivation(t, pairs.golden_of) != golden_.HasActivation(g, pairs.target_of)) {
        LeaveAlone(t, {".output.0"}, {".input.0"});
      } else if (target_.structure.modules()[t].results > 1) {
        LeaveAlone(t, {}, LaterGradients(t));
      }
      PairFunctions(t, g);
    }
    for (const JoinedLayers& layers : pairs.joined) JoinLayers(layers);
  }
  /// Gradients of products whose bias one side adds in a call of its own.
  const std::vector<BiasGradient>& biases() const { return biases_; }

 private:
  void PairOps(uint32_t t, uint32_t g) {
    if (t != UINT32_MAX && g != UINT32_MAX) plan_->golden_of[t] = g;
  }

  /// The n-th call of a module in each direction: numbers of calls depend on what else ran.
  void PairModuleCalls(uint32_t t, uint32_t g) {
    std::array<std::vector<uint32_t>, 4> of_golden;
    golden_.structure.ForEachCall(golden_.structure.modules()[g].calls, [&](uint32_t id) {
      const StructureCall& call = golden_.Call(id);
      if (call.op != UINT32_MAX) of_golden[static_cast<size_t>(call.direction)].push_back(call.op);
      return true;
    });
    std::array<size_t, 4> next{};
    target_.structure.ForEachCall(target_.structure.modules()[t].calls, [&](uint32_t id) {
      const StructureCall& call = target_.Call(id);
      const auto direction = static_cast<size_t>(call.direction);
      if (call.op != UINT32_MAX && next[direction] < of_golden[direction].size())
        PairOps(call.op, of_golden[direction][next[direction]++]);
      return true;
    });
  }

  /// Items of the calls of a module, and of their gradients, that the partner does not have: the activation of one
  /// side's layer stands behind that of the other.
  void LeaveAlone(uint32_t t, const std::vector<std::string>& forward, const std::vector<std::string>& backward) {
    target_.structure.ForEachCall(target_.structure.modules()[t].calls, [&](uint32_t id) {
      const StructureCall& call = target_.Call(id);
      const bool is_backward = call.direction == OpDirection::kBackward;
      if (call.op == UINT32_MAX || (!is_backward && call.direction != OpDirection::kForward)) return true;
      const uint32_t golden = plan_->golden_of[call.op];
      OpLinks links{{}, golden};
      for (const std::string& item : is_backward ? backward : forward) links.links.push_back({item, "", kNoOp});
      if (golden != kNoOp && !links.links.empty()) plan_->links[call.op] = std::move(links);
      return true;
    });
  }

  /// What the first result of a module may be made of: the memory of a cell, the weights of an attention. PyTorch's
  /// gradient of it is that of its uses outside the module, MindSpore's of all.
  std::vector<std::string> LaterGradients(uint32_t t) const {
    std::vector<std::string> out;
    for (uint32_t k = 1; k < target_.structure.modules()[t].results; ++k) out.push_back(".input." + std::to_string(k));
    return out;
  }

  static std::vector<uint32_t> OpsOf(const CrossSide& side, uint32_t module, OpDirection direction) {
    std::vector<uint32_t> out;
    side.structure.ForEachCall(side.structure.modules()[module].calls, [&](uint32_t id) {
      const StructureCall& call = side.Call(id);
      if (call.op != UINT32_MAX && call.direction == direction) out.push_back(call.op);
      return true;
    });
    return out;
  }

  /// The n-th calls of layers that are one layer of the other side, and the gradients of their parameters. The gradient
  /// of their common input is a sum, which is in no call of theirs; of two frameworks their backward calls stand alone.
  void JoinLayers(const JoinedLayers& layers) {
    const bool joins_targets = layers.targets.size() > 1;
    for (const OpDirection direction : {OpDirection::kForward, OpDirection::kBackward, OpDirection::kParameterGrad}) {
      if (direction == OpDirection::kBackward && !target_.structure.implementations()) continue;
      std::vector<std::vector<uint32_t>> parts;
      for (const uint32_t m : joins_targets ? layers.targets : layers.goldens) {
        parts.push_back(OpsOf(joins_targets ? target_ : golden_, m, direction));
      }
      const std::vector<uint32_t> whole =
          joins_targets ? OpsOf(golden_, layers.goldens[0], direction) : OpsOf(target_, layers.targets[0], direction);
      for (size_t n = 0; n < whole.size(); ++n) {
        OpLinks links;
        links.joins_targets = joins_targets;
        for (const std::vector<uint32_t>& ops : parts) {
          if (n < ops.size()) links.joined.push_back(ops[n]);
        }
        if (links.joined.size() == parts.size()) Join(whole[n], direction, std::move(links));
      }
    }
  }
  void Join(uint32_t whole, OpDirection direction, OpLinks links) {
    if (!links.joins_targets) {
      plan_->golden_of[whole] = links.joined[0];
      plan_->links[whole] = std::move(links);
      return;
    }
    links.others = whole;
    for (const uint32_t t : links.joined) {
      plan_->golden_of[t] = whole;
      plan_->links[t] = OpLinks();
      if (direction != OpDirection::kBackward) plan_->links[t].links = {{".input.0", ".input.0", whole}};
    }
    plan_->links[links.joined[0]] = std::move(links);
  }

  void PairFunctions(uint32_t t, uint32_t g) {
    const std::vector<uint32_t>&a = target_.functions[t], &b = golden_.functions[g];
    if (a.empty() || b.empty()) return;
    const auto computes = [](const CrossSide& side, const std::vector<uint32_t>& calls) {
      std::vector<size_t> out;
      for (size_t i = 0; i < calls.size(); ++i) {
        if (!side.Call(calls[i]).moves) out.push_back(i);
      }
      return out;
    };
    const bool layer = target_.structure.modules()[t].layer && golden_.structure.modules()[g].layer;
    Aligned anchors = AlignTwice(a, b, computes(target_, a), computes(golden_, b));
    if (layer) FillGaps(a, b, &anchors);
    Aligned all = anchors;
    size_t i = 0, j = 0;
    for (const auto& [x, y] : anchors) {
      AlignMoves(a, b, i, x, j, y, &all);
      i = x + 1, j = y + 1;
    }
    AlignMoves(a, b, i, a.size(), j, b.size(), &all);
    std::vector<size_t> golden_of(a.size(), kNotAligned), target_of(b.size(), kNotAligned);
    for (const auto& [x, y] : all) golden_of[x] = y, target_of[y] = x;
    for (const auto& [x, y] : all) PairCalls(a[x], b[y]);
    PairScales(a, b, anchors, golden_of, target_of);
    JoinBias(target_, a, golden_, b, golden_of, false);
    JoinBias(golden_, b, target_, a, target_of, true);
  }

  /// What gives as many elements first; in between, what has only the name in common. Where few sizes agree, as those
  /// of a shard and a whole, they say nothing.
  Aligned AlignTwice(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b, const std::vector<size_t>& from,
                     const std::vector<size_t>& to) const {
    Aligned out;
    size_t i = 0, j = 0;
    const auto fill = [&](size_t a_end, size_t b_end) {
      std::vector<size_t> x, y;
      for (; i < from.size() && from[i] < a_end; ++i) x.push_back(from[i]);
      for (; j < to.size() && to[j] < b_end; ++j) y.push_back(to[j]);
      for (const auto& pair : Align(a, b, x, y, false)) out.push_back(pair);
    };
    const Aligned sized = Align(a, b, from, to, true);
    Aligned named = Align(a, b, from, to, false);
    if (sized.size() < named.size() / 2) return named;
    for (const auto& [x, y] : sized) {
      fill(x, y);
      out.emplace_back(x, y);
      ++i, ++j;
    }
    fill(a.size(), b.size());
    return out;
  }

  /// `sized`: only what gives as many elements. Sums of a loss and those of an update of weights are never one.
  Aligned Align(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b, const std::vector<size_t>& from,
                const std::vector<size_t>& to, bool sized) const {
    std::map<std::tuple<std::string_view, int64_t, bool>, uint32_t> ids;
    const auto list = [&](const CrossSide& side, const std::vector<uint32_t>& calls, const std::vector<size_t>& at) {
      BigArray<uint32_t> out;
      for (const size_t i : at) {
        const auto key =
            std::make_tuple(side.Function(calls[i]), sized ? side.sizes[calls[i]] : 0, side.IsUpdate(calls[i]));
        const auto [it, fresh] = ids.try_emplace(key, static_cast<uint32_t>(ids.size()));
        out.push_back(it->second);
      }
      return out;
    };
    const BigArray<uint32_t> x = list(target_, a, from), y = list(golden_, b, to);
    Aligned out;
    if (x.empty() || y.empty()) return out;
    for (const IndexPair& pair : AlignSequences(x, y)) out.emplace_back(from[pair.first], to[pair.second]);
    return out;
  }

  /// Functions that only move elements, between two that compute.
  void AlignMoves(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b, size_t a_begin, size_t a_end,
                  size_t b_begin, size_t b_end, Aligned* out) const {
    const auto moves = [](const CrossSide& side, const std::vector<uint32_t>& calls, size_t begin, size_t end) {
      std::vector<size_t> list;
      for (size_t i = begin; i < end; ++i) {
        if (side.Call(calls[i]).moves) list.push_back(i);
      }
      return list;
    };
    const Aligned found = Align(a, b, moves(target_, a, a_begin, a_end), moves(golden_, b, b_begin, b_end), false);
    out->insert(out->end(), found.begin(), found.end());
  }

  /// In a layer of both frameworks, what stands alone between two partners is one thing under two names: the lookup of
  /// an embedding.
  void FillGaps(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b, Aligned* anchors) const {
    Aligned out;
    size_t i = 0, j = 0;
    const auto fill = [&](size_t a_end, size_t b_end) {
      std::vector<size_t> x, y;
      for (; i < a_end; ++i) {
        if (!target_.Call(a[i]).moves) x.push_back(i);
      }
      for (; j < b_end; ++j) {
        if (!golden_.Call(b[j]).moves) y.push_back(j);
      }
      for (size_t k = 0; x.size() == y.size() && k < x.size(); ++k) out.emplace_back(x[k], y[k]);
    };
    for (const auto& [x, y] : *anchors) {
      fill(x, y);
      out.emplace_back(x, y);
      i = x + 1, j = y + 1;
    }
    fill(a.size(), b.size());
    *anchors = std::move(out);
  }

  /// A function and its gradient.
  void PairCalls(uint32_t t, uint32_t g) {
    PairOps(target_.Call(t).op, golden_.Call(g).op);
    const uint32_t a = target_.Backward(t), b = golden_.Backward(g);
    PairOps(a, b);
    if (a != UINT32_MAX && b != UINT32_MAX && IsComposite(golden_.Function(g))) plan_->links[a] = LinksOfPart(b);
  }

  /// What one side multiplies by a number the other may divide by its reciprocal; and a product may be scaled ahead of
  /// it or behind it, where only the number is the same.
  void PairScales(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b, const Aligned& anchors,
                  const std::vector<size_t>& golden_of, const std::vector<size_t>& target_of) {
    std::vector<size_t> x, y;
    for (const auto& [i, j] : anchors) x.push_back(i), y.push_back(j);
    const auto list = [](const CrossSide& side, const std::vector<uint32_t>& calls, const std::vector<size_t>& partner,
                         const std::vector<size_t>& at) {
      std::vector<Scale> out;
      for (size_t i = 0; i < calls.size(); ++i) {
        std::optional<Scale> scale = partner[i] == kNotAligned ? ScaleOf(side, calls[i]) : std::nullopt;
        if (!scale) continue;
        scale->at = i;
        scale->ahead = static_cast<size_t>(std::lower_bound(at.begin(), at.end(), i) - at.begin());
        out.push_back(std::move(*scale));
      }
      return out;
    };
    std::vector<Scale> targets = list(target_, a, golden_of, x), goldens = list(golden_, b, target_of, y);
    for (const bool moved : {false, true}) {
      for (Scale& t : targets) {
        const auto fits = [&](const Scale& g) {
          if (g.factor == 0 || t.factor == 0 || (t.ahead != g.ahead) != moved) return false;
          if (!moved) return t.divides != g.divides;
          const auto [begin, end] = std::minmax(t.ahead, g.ahead);
          bool products = std::fabs(t.factor - g.factor) <= kSameFactor * std::fabs(g.factor);
          for (size_t k = begin; k < end && products; ++k) products = IsProduct(target_.Function(a[x[k]]));
          return products;
        };
        const auto g = std::find_if(goldens.begin(), goldens.end(), fits);
        if (g == goldens.end()) continue;
        PairScale(a[t.at], b[g->at], t, *g, moved);
        t.factor = g->factor = 0;  // taken
      }
    }
  }

  void PairScale(uint32_t t, uint32_t g, const Scale& target, const Scale& golden, bool moved) {
    const uint32_t op = target_.Call(t).op, golden_op = golden_.Call(g).op;
    OpLinks links;
    if (!moved) {
      links.links = {{target.tensor, golden.tensor, golden_op}, {".output.0", ".output.0", golden_op}};
      PairOps(target_.Backward(t), golden_.Backward(g));
    } else if (target.divides == golden.divides) {
      links.links = {{target.number, golden.number, golden_op}};
    }
    PairOps(op, golden_op);
    plan_->links[op] = std::move(links);
  }

  /// Dimensions of the tensors that a call takes.
  static std::vector<size_t> RanksOfInputs(const CrossSide& side, uint32_t call) {
    std::vector<size_t> out;
    JsonDoc doc;
    if (side.Call(call).op == UINT32_MAX || !side.dump->ParseOp(side.Call(call).op, &doc).ok()) return out;
    std::vector<Item> items;
    FlattenOp(side.Call(call).name, doc, &items);
    for (const Item& item : items) {
      if ((item.state != ItemState::kInput && item.state != ItemState::kKwarg) || !item.leaf) continue;
      const JsonValue* shape = item.leaf->IsObject() && item.leaf->Find("dtype") ? item.leaf->Find("shape") : nullptr;
      if (shape && shape->IsArray()) out.push_back(shape->Items().size());
    }
    return out;
  }

  /// A sum that adds a bias to a product, where `whole` of the other side takes the bias, too.
  static bool AddsBias(const CrossSide& side, uint32_t call, const CrossSide& other, uint32_t whole) {
    if (side.Function(call) == "bias_add") return true;
    if (side.Function(call) != "add") return false;
    const std::vector<size_t> ranks = RanksOfInputs(side, call);
    return ranks.size() == 2 && ranks[1] == 1 && ranks[0] > 1 && RanksOfInputs(other, whole).size() == 3;
  }

  /// "matmul" and "bias_add" of one side are one call of the other, which takes the bias, too. `swapped`: `side` is the
  /// golden run.
  void JoinBias(const CrossSide& side, const std::vector<uint32_t>& calls, const CrossSide& other,
                const std::vector<uint32_t>& others, const std::vector<size_t>& partner, bool swapped) {
    for (size_t i = 0; i < calls.size(); ++i) {
      if (partner[i] != kNotAligned) continue;
      size_t product = i;
      while (product > 0 && side.Call(calls[product - 1]).moves) --product;
      if (product-- == 0 || partner[product] == kNotAligned) continue;
      const std::string_view name = side.Function(calls[product]);
      if (!IsProduct(name)) continue;
      const uint32_t one = others[partner[product]];
      if (!AddsBias(side, calls[i], other, one)) continue;
      const uint32_t gradient = side.Backward(calls[product]), bias = side.Backward(calls[i]),
                     whole = other.Backward(one);
      const bool graded = gradient != UINT32_MAX && bias != UINT32_MAX && whole != UINT32_MAX;
      if (swapped) {
        LinkOne(other.Call(one).op, side.Call(calls[product]).op, side.Call(calls[i]).op);
        if (graded) biases_.push_back({whole, gradient, bias, true});
      } else {
        LinkTwo(side.Call(calls[product]).op, side.Call(calls[i]).op, other.Call(one).op);
        PairOps(bias, whole);
        if (graded) biases_.push_back({gradient, whole, bias, false});
      }
    }
  }

  /// The target computes in two calls what the golden run computes in one.
  void LinkTwo(uint32_t product, uint32_t bias, uint32_t golden) {
    plan_->links[product] = {{{".input.0", ".input.0", golden}, {".input.1", ".input.1", golden}}, kNoOp};
    plan_->links[bias] = {{{".input.1", ".input.2", golden}, {".output.0", ".output.0", golden}}, kNoOp};
    plan_->golden_of[product] = plan_->golden_of[bias] = golden;
  }
  void LinkOne(uint32_t target, uint32_t product, uint32_t bias) {
    plan_->links[target] = {{{".input.0", ".input.0", product},
                             {".input.1", ".input.1", product},
                             {".input.2", ".input.1", bias},
                             {".output.0", ".output.0", bias}},
                            kNoOp};
    plan_->golden_of[target] = product;
  }

  CrossSide &target_, &golden_;
  MatchPlan* plan_;
  std::vector<BiasGradient> biases_;
};

}  // namespace

bool IsBackwardOfPart(std::string_view op) {
  return ParseOpName(op).direction == OpDirection::kBackward && !IsModuleName(op) &&
         IsComposite(CommonFunctionOf(ApiOrClassOf(op)).name);
}

namespace {

StatusOr<MatchPlan> MatchModels(const DumpFile& target, const DumpFile& golden, const std::vector<LayerRule>& rules,
                                Vocabulary vocabulary) {
  CrossSide a, b;
  a.dump = &target;
  b.dump = &golden;
  MSP_ASSIGN_OR_RETURN(a.structure, Structure::Read(target, vocabulary));
  MSP_ASSIGN_OR_RETURN(b.structure, Structure::Read(golden, vocabulary));
  const ModulePairs pairs = PairModules(a.structure, b.structure, rules);
  std::unordered_set<uint32_t> joined_targets, joined_goldens;
  const bool implementations = vocabulary == Vocabulary::kImplementations;
  for (const JoinedLayers& layers : pairs.joined) {
    joined_targets.insert(layers.targets.begin(), layers.targets.end());
    joined_goldens.insert(layers.goldens.begin(), layers.goldens.end());
  }
  if (!implementations) {
    a.Collect(pairs.golden_of, joined_targets);
    b.Collect(pairs.target_of, joined_goldens);
    MSP_RETURN_IF_ERROR(a.ReadSizes());
    MSP_RETURN_IF_ERROR(b.ReadSizes());
  }
  MatchPlan plan;
  plan.cross = true;
  plan.implementations = implementations;
  plan.how = "structure of both models";
  plan.golden_of.assign(target.ops().size(), kNoOp);
  Matcher matcher(&a, &b, &plan);
  matcher.Run(pairs);
  MSP_RETURN_IF_ERROR(implementations ? LinkModuleItems(target, golden, &plan)
                                      : LinkByShape(target, golden, matcher.biases(), &plan));
  CountMatches(golden.ops().size(), &plan);
  return plan;
}

}  // namespace

StatusOr<MatchPlan> MatchAcross(const DumpFile& target, const DumpFile& golden, const std::vector<LayerRule>& rules) {
  return MatchModels(target, golden, rules, Vocabulary::kCommon);
}

StatusOr<MatchPlan> MatchImplementations(const DumpFile& target, const DumpFile& golden,
                                         const std::vector<LayerRule>& rules) {
  return MatchModels(target, golden, rules, Vocabulary::kImplementations);
}

MatchPlan Inverted(const MatchPlan& plan, size_t golden_ops) {
  MatchPlan out;
  out.options = plan.options;
  out.how = plan.how;
  out.cross = plan.cross;
  out.implementations = plan.implementations;
  out.rules = plan.rules;
  out.warnings = plan.warnings;
  out.golden_of.assign(golden_ops, kNoOp);
  for (uint32_t t = 0; t < plan.golden_of.size(); ++t) {
    const uint32_t g = plan.golden_of[t];
    if (g != kNoOp && out.golden_of[g] == kNoOp) out.golden_of[g] = t;
  }
  for (const auto& [t, links] : plan.links) {
    if (!links.joined.empty()) {
      const uint32_t first = links.joins_targets ? links.others : links.joined[0];
      out.links[first].joined = links.joined;
      out.links[first].joins_targets = !links.joins_targets;
      if (!links.joins_targets) out.links[first].others = t;
    }
    for (const ItemLink& link : links.links) {
      if (link.golden_op == kNoOp) continue;
      OpLinks& mine = out.links[link.golden_op];
      mine.links.push_back({link.golden, link.target, t});
      if (links.others == link.golden_op) mine.others = t;
    }
  }
  CountMatches(plan.golden_of.size(), &out);
  return out;
}

}  // namespace msprobe
