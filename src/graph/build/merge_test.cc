#include "parallel/merge.h"

#include <gtest/gtest.h>

#include <cmath>

#include "graph/graph_test_files.h"
#include "parallel/layer_number.h"
#include "parallel/merge_suspects.h"

namespace msprobe {
namespace {

TensorStats Statistics(double max, double min, double mean, double norm, double elements) {
  const auto number = [](double v) {
    StatNumber n;
    n.kind = StatNumber::Kind::kDouble;
    n.d = v;
    return n;
  };
  return {number(max), number(min), number(mean), number(norm), elements};
}

TEST(MergeStats, PartsOfEqualSize) {
  std::vector<std::string> info;
  const TensorStats whole = MergeParts({Statistics(2.5, -1, 0.25, 3, 6), Statistics(4.5, -3, 0.75, 4, 6)},
                                       "torch.float64", "output.0", &info);
  EXPECT_EQ(whole.max.value(), 4.5);
  EXPECT_EQ(whole.min.value(), -3);
  EXPECT_EQ(whole.mean.value(), 0.5);
  EXPECT_EQ(whole.norm.value(), 5);
  EXPECT_EQ(whole.elements, 12);
  ASSERT_EQ(info.size(), 4u);
  EXPECT_EQ(info[0], "The Max value merging method for output.0 is: max(2.5, 4.5) = 4.5");
  EXPECT_EQ(info[3], "The Norm value merging method for output.0 is: (3.0 ** 2 + 4.0 ** 2) ** 0.5 = 5.0");
}

TEST(MergeStats, MeanIsWeightedByElements) {
  const TensorStats whole =
      MergeParts({Statistics(1, 0, 1, 1, 30), Statistics(1, 0, 5, 1, 10)}, "torch.float64", "x", nullptr);
  EXPECT_EQ(whole.mean.value(), 2);
}

TEST(MergeStats, NanOfAPartIsNanOfTheWhole) {
  const double nan = std::nan("");
  for (const bool first : {true, false}) {
    std::vector<TensorStats> parts{Statistics(1, 0, 1, 1, 4), Statistics(nan, nan, nan, nan, 4)};
    if (first) std::swap(parts[0], parts[1]);
    const TensorStats whole = MergeParts(parts, "torch.float32", "x", nullptr);
    EXPECT_TRUE(std::isnan(whole.max.value()));
    EXPECT_TRUE(std::isnan(whole.min.value()));
    EXPECT_TRUE(std::isnan(whole.norm.value()));
  }
}

TEST(MergeStats, RoundedOnlyWhereThePartsAre) {
  const TensorStats low =
      MergeParts({Statistics(1, 0, 1, 1, 4), Statistics(1, 0, 1, 1.5, 4)}, "torch.bfloat16", "x", nullptr);
  EXPECT_EQ(low.norm.value(), 1.8046875);  // sqrt(3.25) = 1.80277... in 8 bits
  const TensorStats exact =
      MergeParts({Statistics(1, 0, 1, 1.0001, 4), Statistics(1, 0, 1, 1.5, 4)}, "torch.bfloat16", "x", nullptr);
  EXPECT_EQ(exact.norm.value(), std::sqrt(1.0001 * 1.0001 + 2.25));
}

ParallelLayout Sizes(int ranks, int tp, int pp, int cp = 1, int ep = 1) {
  ParallelLayout s;
  s.rank_size = ranks, s.tp = tp, s.pp = pp, s.cp = cp, s.ep = ep;
  return s;
}

using Groups = std::vector<std::vector<int>>;

TEST(MergeGroups, ByOrder) {
  ParallelLayout s = Sizes(8, 2, 2);
  EXPECT_EQ(GroupsByOrder(s, {"tp"}), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(GroupsByOrder(s, {"pp"}), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  s.order = "tp-pp-dp";
  EXPECT_EQ(GroupsByOrder(s, {"pp"}), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  const MergeGroups groups = FindMergeGroups(s, {});
  ASSERT_EQ(groups.units.size(), 2u);
  EXPECT_EQ(groups.units[1].stages, (Groups{{4, 5}, {6, 7}}));
}

TEST(MergeGroups, ContextAndExpertParallel) {
  const MergeGroups groups = FindMergeGroups(Sizes(16, 2, 2, 2, 2), {});
  ASSERT_EQ(groups.units.size(), 1u);
  EXPECT_EQ(groups.units[0].stages, (Groups{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}}));
}

TEST(MergeGroups, OfTheData) {
  std::vector<RankHints> hints;
  for (int r = 0; r < 4; ++r) hints.push_back({r, {{r % 2, r % 2 + 2}}, r % 2 == 0 ? r + 1 : r - 1});
  const MergeGroups groups = FindMergeGroups(Sizes(4, 2, 2), hints);
  EXPECT_TRUE(groups.tp_recorded);
  EXPECT_TRUE(groups.pp_recorded);
  ASSERT_EQ(groups.units.size(), 1u);
  EXPECT_EQ(groups.units[0].stages, (Groups{{0, 2}, {1, 3}}));
  for (RankHints& h : hints) h.reduces = {{0, 1, 2, 3}};
  const MergeGroups other = FindMergeGroups(Sizes(4, 2, 2), hints);
  EXPECT_FALSE(other.tp_recorded);
  EXPECT_EQ(other.warnings.size(), 2u);  // and the stages of the data do not fit to the groups of the order
}

TEST(MergeGroups, ExpertsOverTensorParallelRanks) {
  const auto hints = [](const Groups& exchange) {
    std::vector<RankHints> out(4);
    for (int r = 0; r < 4; ++r) out[static_cast<size_t>(r)].rank = r;
    for (const std::vector<int>& group : exchange) {
      for (const int rank : group) out[static_cast<size_t>(rank)].exchanges[group] = 2;
    }
    return out;
  };
  const ParallelLayout s = Sizes(4, 2, 1, 1, 2);
  MergeGroups groups = FindMergeGroups(s, hints({{0, 1}, {2, 3}}));
  ASSERT_EQ(groups.units.size(), 1u);
  EXPECT_EQ(groups.units[0].shares, (std::vector<int>{0, 1, 0, 1}));
  EXPECT_EQ(groups.ep, (Groups{{0, 1}, {2, 3}}));
  groups = FindMergeGroups(s, hints({{0, 2}, {1, 3}}));
  EXPECT_TRUE(groups.units[0].shares.empty());  // as the order has it
  groups = FindMergeGroups(s, hints({{0, 1}, {3, 2}}));
  EXPECT_EQ(groups.units[0].shares, (std::vector<int>{0, 1, 1, 0}));
  EXPECT_TRUE(FindMergeGroups(s, hints({{0, 1}})).units[0].shares.empty());  // of some ranks nothing is known

  const ParallelLayout small = Sizes(2, 2, 1, 1, 2);  // no rank is beside tensor parallelism
  ASSERT_TRUE(CheckMergeSettings(small, "target").ok());
  groups = FindMergeGroups(small, {});
  ASSERT_EQ(groups.units.size(), 1u);
  EXPECT_EQ(groups.units[0].stages, (Groups{{0, 1}}));
  EXPECT_EQ(groups.units[0].shares, (std::vector<int>{0, 1}));
  EXPECT_FALSE(CheckMergeSettings(Sizes(2, 2, 1, 1, 4), "target").ok());
}

TEST(MergeGroups, SizesThatCannotBe) {
  EXPECT_FALSE(CheckMergeSettings(Sizes(8, 3, 1), "target").ok());
  EXPECT_FALSE(CheckMergeSettings(Sizes(0, 1, 1), "target").ok());
  ParallelLayout s = Sizes(8, 2, 2);
  s.order = "tp-pp";
  EXPECT_FALSE(CheckMergeSettings(s, "target").ok());  // dp is 2
  s.order = "tp-tp-dp-pp";
  EXPECT_FALSE(CheckMergeSettings(s, "target").ok());
  s.order = "tp-dp-pp";
  EXPECT_TRUE(CheckMergeSettings(s, "target").ok());
  s.tp = s.pp = s.cp = s.ep = 1 << 16;  // their product is 0 in 64 bits
  EXPECT_EQ(CheckMergeSettings(s, "target").code(), Code::kUsage);
}

TEST(MergeNames, LayerNumbers) {
  LayerNumber n;
  ASSERT_TRUE(FindLayerNumber("Module.0.decoder.layers.12.Layer.forward.0", "Module.0.decoder.Block.forward.0", &n));
  EXPECT_EQ(n.prefix, "Module.0.decoder.layers.");
  EXPECT_EQ(n.number, 12);
  EXPECT_EQ(n.rest, ".Layer.forward.0");
  EXPECT_FALSE(FindLayerNumber("Module.layers.1.norm.Norm.forward.0", "Module.layers.1.Layer.forward.0", &n));
  EXPECT_FALSE(FindLayerNumber("Module.layers.x.Norm.forward.0", "", &n));
  ASSERT_TRUE(FindExpertNumber("Module.mlp.experts.local_experts.3.Expert.forward.0", "Module.mlp.E.forward.0", &n));
  EXPECT_EQ(n.number, 3);
}

TEST(MergeLayout, RulesAndErrors) {
  const auto layout = MergeLayout::Parse(
      "layout:\n  \"*.Column*\":\n    output.0: s b h[tp]\n    \"*\": replica\n  \"*Row*/Functional.*\":\n    \"*\": s "
      "partial[tp,cp]\n",
      "l.yaml");
  ASSERT_TRUE(layout.ok());
  const TensorLayout out = layout->Of("Module.a.Column.forward.0", "x", "output.0");
  EXPECT_EQ(out.Of(Axis::kTp), Share::kSplit);
  EXPECT_EQ(out.dim[0], 2);
  EXPECT_EQ(out.dims, 3);
  EXPECT_EQ(out.Of(Axis::kCp), Share::kReplica);
  EXPECT_EQ(layout->Of("Module.a.Column.forward.0", "x", "input.0").Of(Axis::kTp), Share::kReplica);
  EXPECT_EQ(layout->Of("Functional.linear.0.forward", "Module.Row.forward.0", "output.0").Of(Axis::kCp),
            Share::kPartial);
  EXPECT_EQ(layout->Of("Functional.linear.0.forward", "Module.B.forward.0", "output.0").Of(Axis::kCp), Share::kAuto);
  const auto bad = MergeLayout::Parse("layout:\n  a:\n    output.0: s h[pp]\n", "l.yaml");
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.status().message().find("l.yaml line 3, key \"output.0\""), std::string::npos);
}

// Two stages with a layer each; the head is on the second one.
TEST(MergeRanks, StagesAndCallsOfBothRanks) {
  DumpDir dir;
  const auto tensor = [](double v) { return TensorJson(v, -v, 0, v); };
  const auto construct = [](bool head) {
    std::string out =
        "\"Torch.a.0.forward\": null, \"Module.M.forward.0\": null, "
        "\"Module.layers.0.L.forward.0\": \"Module.M.forward.0\", \"Torch.b.0.forward\": "
        "\"Module.layers.0.L.forward.0\"";
    if (head) out += ", \"Module.head.H.forward.0\": \"Module.M.forward.0\"";
    return out;
  };
  for (const int r : {0, 1}) {
    const double in = r == 0 ? 1 : 5, out = r == 0 ? 5 : 7;
    std::string data = OpJson("Module.M.forward.0", tensor(1), tensor(r == 0 ? 5 : 9)) + ", " +
                       OpJson("Module.layers.0.L.forward.0", tensor(in), tensor(out)) + ", " +
                       OpJson("Torch.b.0.forward", tensor(in), tensor(out)) + ", " +
                       OpJson("Torch.a.0.forward", tensor(1), tensor(1));
    if (r == 1) data += ", " + OpJson("Module.head.H.forward.0", tensor(7), tensor(9));
    dir.Rank("step0/rank" + std::to_string(r), construct(r == 1), data);
  }
  GraphSettings settings;
  settings.target = dir.Path("step0");
  settings.target_layout = Sizes(2, 1, 2);
  const auto plan = PlanMerge(settings);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_EQ(plan->graph.pairs.size(), 1u);
  MergeDecisions decisions;
  const auto graph = BuildMergedGraph(*plan->graph.pairs[0].target_merge, &decisions);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const NodeGraph& g = graph->graph;
  const uint32_t layer = g.Find("Module.layers.1.L.forward.0");
  ASSERT_NE(layer, kNoIndex);
  ASSERT_NE(g.Find("Torch.b_rank1.0.forward"), kNoIndex);
  EXPECT_EQ(g.nodes[g.Find("Torch.b_rank1.0.forward")].parent, layer);
  EXPECT_NE(g.Find("Module.head.H.forward.0"), kNoIndex);
  EXPECT_NE(g.Find("Torch.a_rank1.0.forward"), kNoIndex);  // a call by itself at the top of the other rank
  JsonDoc doc;
  MergeNotes notes;
  ASSERT_TRUE(graph->merged->Read(*graph, g.Find("Module.M.forward.0"), &doc, &notes).ok());
  EXPECT_EQ(TensorStats::Of(doc["output"][0]).max.value(), 9);
  EXPECT_EQ(TensorStats::Of(doc["input_args"][0]).max.value(), 1);
  ASSERT_EQ(decisions.taken.size(), 1u);
  EXPECT_TRUE(decisions.taken[0].output);
  const auto json = MergePlanJson(settings);
  ASSERT_TRUE(json.ok());
  EXPECT_NE(json->find("\"to\": \"Module.layers.1.L.forward.0\""), std::string::npos);
}

/// Four ranks with four weights: two experts in two parts each, or one in four.
TEST(MergeRanks, ExpertsInPartsOfTheirOwn) {
  DumpDir dir;
  const std::string module = "Module.mlp.experts.local_experts.0.L.forward.0";
  for (int rank = 0; rank < 4; ++rank) {
    const std::string weight = TensorJson(rank + 1, 0, 0, rank + 1), tensor = TensorJson(1, 0, 0, 1);
    dir.Rank("step0/rank" + std::to_string(rank), "\"" + module + "\": null",
             "\"" + module + "\": {\"input_args\": [" + tensor + "], \"input_kwargs\": {}, \"output\": [" + tensor +
                 "], \"parameters\": {\"weight\": " + weight + "}}");
  }
  for (const int ep : {1, 2}) {
    GraphSettings settings;
    settings.target = dir.Path("step0");
    settings.target_layout = Sizes(4, 4, 1, 1, ep);
    const auto plan = PlanMerge(settings);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    MergeDecisions decisions;
    const auto graph = BuildMergedGraph(*plan->graph.pairs[0].target_merge, &decisions);
    ASSERT_EQ(graph.ok(), ep == 1) << ep;
    if (ep == 2) EXPECT_NE(graph.status().message().find("lies in 2 parts"), std::string::npos);
  }
}

/// The weight of two ranks, 4 and 5.
class WrongParts : public ::testing::Test {
 protected:
  std::vector<int> Of(const TensorStats& a, const TensorStats& b, bool split = true, const TensorStats* whole = nullptr,
                      std::vector<TensorStats> golden_parts = {}) {
    OpDiff op;
    op.op = "Module.fc.ColumnParallelLinear.forward.0";
    op.matched = true;
    MergeNotes target, golden;
    const std::vector<TensorStats> parts{a, b};
    target.leaves.push_back({kItem, split, {4, 5}, parts, 2, false});
    if (!golden_parts.empty()) golden.leaves.push_back({kItem, split, {0, 1}, golden_parts, 2, false});
    const TensorStats wrong = split ? MergeParts(parts, "torch.float32", kItem, nullptr) : b;
    const TensorStats& right = whole ? *whole : split ? whole_ : golden_[0];
    op.rows_used = op.golden_used = 1;
    op.target = {ItemOf(wrong)};
    op.golden = {ItemOf(right)};
    op.rows.resize(1);
    op.rows[0].golden = 0;
    op.rows[0].shapes_fit = true;
    const std::vector<WrongPart> found = FindWrongParts(target, golden, op);
    if (found.empty()) return {};
    EXPECT_EQ(found[0].item, kItem);
    return found[0].ranks;
  }
  static ItemView ItemOf(const TensorStats& s) {
    ItemView item;
    item.state = ItemState::kParameter;
    item.suffix = kItem;
    item.tensor = true;
    item.dtype = "torch.float32";
    const StatNumber* numbers[] = {&s.max, &s.min, &s.mean, &s.norm};
    for (size_t k = 0; k < kStatCount; ++k) item.stats[k] = StatValue::Of(numbers[k]->value());
    return item;
  }
  static TensorStats Times(const TensorStats& s, double by) {
    return Statistics(s.max.value() * by, s.min.value() * by, s.mean.value() * by, s.norm.value() * by, s.elements);
  }
  static constexpr char kItem[] = ".parameters.weight";
  const std::vector<TensorStats> golden_{Statistics(0.7, -0.5, 0.01, 6, 400), Statistics(0.6, -0.6, -0.02, 5, 400)};
  const TensorStats whole_ = MergeParts(golden_, "torch.float64", kItem, nullptr);
};

TEST_F(WrongParts, OneFactorOnOnePartExplainsAll) {
  EXPECT_EQ(Of(Times(golden_[0], 1.05), golden_[1]), std::vector{4});
  EXPECT_EQ(Of(golden_[0], Times(golden_[1], 0.5)), std::vector{5});
  EXPECT_EQ(Of(golden_[0], Times(golden_[1], -1)), std::vector{5});
}

TEST_F(WrongParts, WhatAllRanksDidIsOfNone) {
  EXPECT_TRUE(Of(Times(golden_[0], 1.1), Times(golden_[1], 1.1)).empty());
  EXPECT_TRUE(Of(Times(golden_[0], 1.01), Times(golden_[1], 1.01)).empty());
  const double nan = std::nan("");
  const TensorStats none = Statistics(nan, nan, nan, nan, 400);
  EXPECT_TRUE(Of(none, none).empty());
}

TEST_F(WrongParts, NanIsOfItsRank) {
  const double nan = std::nan("");
  EXPECT_EQ(Of(golden_[0], Statistics(nan, nan, nan, nan, 400)), std::vector{5});
}

TEST_F(WrongParts, OnlyOneLeavesTheGoldenRange) {
  EXPECT_EQ(Of(Statistics(3, -0.5, 0.02, 6.4, 400), golden_[1]), std::vector{4}) << "the other has the golden Min";
  EXPECT_TRUE(Of(Statistics(3, -0.7, 0.02, 6.4, 400), Statistics(3, -0.9, 0.02, 5.6, 400)).empty());
}

TEST_F(WrongParts, OfCopiesOneIsRight) {
  EXPECT_EQ(Of(golden_[0], Times(golden_[0], 1.2), false), std::vector{5});
  EXPECT_TRUE(Of(Times(golden_[0], 1.1), Times(golden_[0], 1.2), false).empty());
}

TEST_F(WrongParts, AgainstRanksThatAreDividedAlike) {
  const TensorStats other = Statistics(0.6, -0.6, -0.021, 5.0001, 400);
  EXPECT_EQ(Of(golden_[0], Statistics(0.6, -0.59, -0.03, 4.9, 400), true, nullptr, golden_), std::vector{5});
  EXPECT_TRUE(Of(Times(golden_[0], 1.1), Times(other, 1.1), true, nullptr, golden_).empty());
}

}  // namespace
}  // namespace msprobe
