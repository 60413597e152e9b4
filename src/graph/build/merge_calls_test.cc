// Merging ranks without modules (level L1).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/build/visualize.h"
#include "graph/graph_test_files.h"
#include "ops/collective.h"
#include "parallel/merge.h"

namespace msprobe {
namespace {

using Calls = std::vector<std::string>;

/// A call that takes one tensor and gives another, which are told apart by their values.
std::string Call(const std::string& name, double in, double out) {
  return OpJson(name, TensorJson(in, 0, 0, in), TensorJson(out, 0, 0, out));
}

std::string Joined(const Calls& calls) {
  std::string out;
  for (const std::string& call : calls) out += (out.empty() ? "" : ", ") + call;
  return out;
}

/// A tensor that has so many rows of three.
std::string Rows(int rows, double value) {
  std::string out = TensorJson(value, 0, 0, value);
  out.replace(out.find("[2, 3]"), 6, "[" + std::to_string(rows) + ", 3]");
  return out;
}

/// Tokens of ranks 0 and 1 go to others.
std::string Exchange(int number, int given, int got) {
  const std::string group = R"({"type": "torch.ProcessGroup", "group_ranks": [0, 1]})";
  return "\"Distributed.all_to_all_single." + std::to_string(number) + R"(.forward": {"input_args": [null, )" +
         Rows(given, 1) + R"(], "input_kwargs": {"group": )" + group + R"(}, "output": [)" + Rows(got, 1) + ", " +
         Rows(given, 1) + "]}";
}

class MergeCalls : public ::testing::Test {
 protected:
  void Rank(int rank, const Calls& calls) { dir_.Rank("step0/rank" + std::to_string(rank), "", Joined(calls)); }
  StatusOr<RankGraph> Merge(int pp, int ep) const {
    GraphSettings settings;
    settings.target = dir_.Path("step0");
    ParallelLayout sizes;
    sizes.rank_size = 2, sizes.tp = 1, sizes.pp = pp, sizes.ep = ep;
    settings.target_layout = sizes;
    MSP_ASSIGN_OR_RETURN(const MergePlan plan, PlanMerge(settings));
    MergeDecisions decisions;
    return BuildMergedGraph(*plan.graph.pairs[0].target_merge, &decisions);
  }
  static std::string CallsIn(const RankGraph& rank, std::string_view module) {
    std::string out;
    const NodeGraph& g = rank.graph;
    for (const uint32_t id : g.nodes[g.Find(module)].children) {
      const std::string_view name = g.nodes[id].name;
      if (!IsCommunication(name)) out += std::string(name.substr(6)) + " ";
    }
    return out;
  }
  DumpDir dir_;
};

constexpr std::string_view kForward = "Module.all_calls.Calls.forward.0",
                           kBackward = "Module.all_calls.Calls.backward.0";

/// Two micro batches through two stages: a gives b what it made, and gets the gradient of it. The first stage makes the
/// second micro batch before the backward pass of the first.
TEST_F(MergeCalls, OfStages) {
  Rank(0,
       {Call("Torch.a.0.forward", 1, 2), Call("Distributed.isend.0.forward", 2, 2), Call("Torch.a.1.forward", 11, 12),
        Call("Distributed.isend.1.forward", 12, 12), Call("Distributed.irecv.0.forward", 5, 5),
        Call("Torch.a.0.backward", 5, 6), Call("Distributed.irecv.1.forward", 15, 15),
        Call("Torch.a.1.backward", 15, 16), Call("Torch.mul.0.forward", 6, 7), Call("Torch.sub.0.forward", 7, 8)});
  Rank(1, {Call("Distributed.irecv.0.forward", 2, 2), Call("Torch.b.0.forward", 2, 3), Call("Torch.b.0.backward", 4, 5),
           Call("Distributed.isend.0.forward", 5, 5), Call("Distributed.irecv.1.forward", 12, 12),
           Call("Torch.b.1.forward", 12, 13), Call("Torch.b.1.backward", 14, 15),
           Call("Distributed.isend.1.forward", 15, 15)});
  const auto graph = Merge(2, 1);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(CallsIn(*graph, kForward), "a.0.forward b_rank1.0.forward a.1.forward b_rank1.1.forward ");
  EXPECT_EQ(CallsIn(*graph, kBackward), "b_rank1.0.backward a.0.backward b_rank1.1.backward a.1.backward ");
  const uint32_t optimizer = graph->graph.Find("Torch.mul.0.forward");
  ASSERT_NE(optimizer, kNoIndex);
  EXPECT_EQ(graph->graph.nodes[graph->graph.nodes[optimizer].parent].type, NodeType::kCollection);
}

/// A layer, an expert of each rank between two exchanges, a layer; the expert of rank 1 calls one more function.
Calls WithExperts(bool more) {
  const int got = more ? 5 : 3;
  Calls out{Call("Torch.a.0.forward", 1, 2), Exchange(0, 4, got), Exchange(1, 4, got), Call("Torch.e.0.forward", 2, 3)};
  if (more) out.push_back(Call("Torch.a.1.forward", 3, 4));
  const std::string next = more ? "Torch.a.2." : "Torch.a.1.";
  for (const std::string& call :
       {Exchange(2, got, 4), Call(next + "forward", 4, 5), Call(next + "backward", 5, 4), Exchange(3, 4, got)})
    out.push_back(call);
  if (more) out.push_back(Call("Torch.a.1.backward", 4, 3));
  for (const std::string& call :
       {Call("Torch.e.0.backward", 3, 2), Exchange(4, got, 4), Exchange(5, got, 4), Call("Torch.a.0.backward", 2, 1)})
    out.push_back(call);
  return out;
}

TEST_F(MergeCalls, OfExpertsStandBesideThoseOfTheFirstRank) {
  Rank(0, WithExperts(false));
  Rank(1, WithExperts(true));
  const auto graph = Merge(1, 2);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(CallsIn(*graph, kForward), "a.0.forward e.0.forward e_rank1.0.forward a_rank1.1.forward a.1.forward ");
  EXPECT_EQ(CallsIn(*graph, kBackward),
            "a.1.backward a_rank1.1.backward e_rank1.0.backward e.0.backward a.0.backward ");
  // The layer behind is the same call, though rank 1 counts it otherwise.
  const auto cells = [&](std::string_view name) { return graph->merged->sources[graph->graph.Find(name)].cells; };
  ASSERT_EQ(cells("Torch.a.1.forward").size(), 2u);
  EXPECT_EQ(graph->merged->NameOf(*graph, cells("Torch.a.1.forward")[1]), "Torch.a.2.forward");
  EXPECT_EQ(cells("Torch.e.0.forward").size(), 1u);
}

TEST_F(MergeCalls, OfExpertsNeedAWayThatTokensTake) {
  for (const int rank : {0, 1}) Rank(rank, {Call("Torch.a.0.forward", 1, 2)});
  EXPECT_NE(Merge(1, 2).status().message().find("which calls are those of its experts"), std::string::npos);
  // They go and do not come back.
  for (const int rank : {0, 1}) Rank(rank, {Exchange(0, 4, 5), Call("Torch.a.0.forward", 1, 2)});
  EXPECT_NE(Merge(1, 2).status().message().find("dump again at level L0 or mix"), std::string::npos);
}

/// Both stages add their part of the gradient of a table that they share; a vector's comes behind it.
TEST(MergeCallsOfTiedWeights, EachStageHasASummand) {
  DumpDir dir;
  const auto tensor = [](const std::string& shape, double mean) {
    std::string out = TensorJson(4 * mean, -mean, mean, 10 * mean);
    out.replace(out.find("[2, 3]"), 6, shape);
    return out;
  };
  const auto add = [&](int number, const std::string& shape, double mean) {
    return OpJson("Tensor.add_." + std::to_string(number) + ".forward", tensor(shape, 0) + ", " + tensor(shape, mean),
                  tensor(shape, mean));
  };
  const auto run = [&](double first, double sum) {
    const std::string a = Call("Torch.a.0.forward", 8, 9), b = Call("Torch.b.0.forward", 9, 6);
    const std::string a_back = Call("Torch.a.0.backward", 5, 4), b_back = Call("Torch.b.0.backward", 6, 5);
    dir.Rank("t/rank0", "",
             Joined({a, Call("Distributed.isend.0.forward", 9, 9), Call("Distributed.irecv.0.forward", 5, 5),
                     add(0, "[6, 3]", first), a_back}));
    dir.Rank("t/rank1", "",
             Joined({Call("Distributed.irecv.0.forward", 9, 9), b, add(0, "[6, 3]", 0.25), add(1, "[3]", 2), b_back,
                     Call("Distributed.isend.0.forward", 5, 5)}));
    dir.Rank("g/rank0", "", Joined({a, b, add(0, "[3]", 2), b_back, add(1, "[6, 3]", sum), a_back}));
    GraphSettings settings;
    settings.target = dir.Path("t"), settings.golden = dir.Path("g"), settings.output = dir.Path("out");
    ParallelLayout two, one;
    two.rank_size = 2, two.tp = 1, two.pp = 2;
    one.rank_size = 1, one.tp = 1, one.pp = 1;
    settings.target_layout = two, settings.golden_layout = one;
    return VisualizeGraph(settings);
  };
  const auto agrees = run(0.5, 0.75);
  ASSERT_TRUE(agrees.ok()) << agrees.status().message();
  ASSERT_TRUE(agrees->story);
  EXPECT_TRUE(agrees->story->origins.empty());
  const auto differs = run(0.6, 0.75);
  ASSERT_TRUE(differs.ok()) << differs.status().message();
  ASSERT_EQ(differs->story->origins.size(), 1u);
  EXPECT_EQ(differs->story->origins[0].op, "Tensor.add_.0.forward");
}

}  // namespace
}  // namespace msprobe
