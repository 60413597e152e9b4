#include "graph/tree/builder.h"

#include "graph/graph_test_files.h"

namespace msprobe {
namespace {

// Lines "name <- parent" of the tree in order of collection.
std::vector<std::string> Lines(const NodeGraph& g) {
  std::vector<std::string> out;
  for (uint32_t id : g.order) {
    if (id != 0) out.push_back(std::string(g.nodes[id].name) + " <- " + std::string(g.nodes[g.nodes[id].parent].name));
  }
  return out;
}

std::string ParentOf(const NodeGraph& g, const std::string& name) {
  const uint32_t id = g.Find(name);
  if (id == kNoIndex || g.nodes[id].parent == kNoIndex) return "?";
  return std::string(g.nodes[g.nodes[id].parent].name);
}

RankGraph Build(const std::string& construct, const std::string& data = "", const std::string& stack = "") {
  DumpDir dir;
  auto rank = BuildRankGraph(dir.Rank("rank0", construct, data, stack));
  EXPECT_TRUE(rank.ok()) << rank.status().message();
  return std::move(*rank);
}

TEST(Builder, KeepsTheOrderOfExecution) {
  const RankGraph r =
      Build(R"("Functional.linear.0.forward": "Module.fc.Linear.forward.0", "Module.fc.Linear.forward.0": null)");
  EXPECT_EQ(Lines(r.graph), (std::vector<std::string>{"Functional.linear.0.forward <- Module.fc.Linear.forward.0",
                                                      "Module.fc.Linear.forward.0 <- DefaultModel"}));
  EXPECT_EQ(r.orphans, 0u);
}

TEST(Builder, FindsTheParentOfABackwardNodeThroughItsForwardTwin) {
  const RankGraph r = Build(R"("Module.a.A.forward.0": null, "Module.a.b.B.forward.0": "Module.a.A.forward.0",
      "Functional.relu.0.forward": "Module.a.b.B.forward.0", "Module.a.A.backward.0": null,
      "Module.a.b.B.backward.0": "", "Functional.relu.0.backward": null)");
  EXPECT_EQ(ParentOf(r.graph, "Module.a.b.B.backward.0"), "Module.a.A.backward.0");
  EXPECT_EQ(ParentOf(r.graph, "Functional.relu.0.backward"), "Module.a.b.B.backward.0");
}

TEST(Builder, LeavesABackwardNodeAtTheTopWhenTheTwinsParentHasNoBackward) {
  const RankGraph r = Build(R"("Module.a.A.forward.0": null, "Module.a.b.B.forward.0": "Module.a.A.forward.0",
      "Module.a.b.B.backward.0": null)");
  EXPECT_EQ(ParentOf(r.graph, "Module.a.b.B.backward.0"), "DefaultModel");
}

TEST(Builder, RepairsTheParentAfterAnInplaceLayer) {
  const RankGraph r = Build(R"("Module.layer4.1.BasicBlock.forward.0": null,
      "Module.layer4.1.conv2.Conv2d.forward.0": "Module.layer4.1.BasicBlock.forward.0",
      "Module.layer4.1.BasicBlock.backward.0": null, "Module.layer4.1.relu.ReLU.backward.1": "Module.layer4.1.BasicBlock.backward.0",
      "Module.layer4.1.conv2.Conv2d.backward.0": "Module.layer4.1.relu.ReLU.backward.1")");
  EXPECT_EQ(ParentOf(r.graph, "Module.layer4.1.conv2.Conv2d.backward.0"), "Module.layer4.1.BasicBlock.backward.0");
}

TEST(Builder, MovesAnInplaceVictimToTheTopWhenItsTwinIsThere) {
  const RankGraph r = Build(R"("Module.a.b.conv.Conv.forward.0": null, "Module.a.b.relu.ReLU.backward.0": null,
      "Module.a.b.conv.Conv.backward.0": "Module.a.b.relu.ReLU.backward.0")");
  EXPECT_EQ(ParentOf(r.graph, "Module.a.b.conv.Conv.backward.0"), "DefaultModel");
}

TEST(Builder, HangsOrphansUnderTheRootWhereTheyFirstAppeared) {
  const RankGraph r = Build(R"("Module.first.A.forward.0": null, "Functional.relu.0.forward": "Module.lost.B.forward.0",
      "Module.last.C.forward.0": null)");
  EXPECT_EQ(r.orphans, 1u);
  EXPECT_EQ(Lines(r.graph),
            (std::vector<std::string>{
                "Module.first.A.forward.0 <- DefaultModel", "Functional.relu.0.forward <- Module.lost.B.forward.0",
                "Module.lost.B.forward.0 <- DefaultModel", "Module.last.C.forward.0 <- DefaultModel"}));
}

TEST(Builder, CutsCirclesInsteadOfLosingThem) {
  const RankGraph r =
      Build(R"("Module.a.A.forward.0": "Module.b.B.forward.0", "Module.b.B.forward.0": "Module.a.A.forward.0",
      "Module.self.S.forward.0": "Module.self.S.forward.0")");
  EXPECT_EQ(r.graph.order.size(), 4u);
  EXPECT_EQ(r.orphans, 2u);
}

TEST(Builder, CollectsRunsOfTopLevelCalls) {
  const RankGraph r = Build(R"("Torch.a.0.forward": null, "Torch.b.0.forward": null, "Module.m.M.forward.0": null,
      "Torch.c.0.forward": null, "Module.n.N.forward.0": null, "Torch.d.0.forward": null, "Torch.e.0.forward": null)");
  EXPECT_EQ(ParentOf(r.graph, "Torch.a.0.forward"), "Apis_Between_Modules.0");
  EXPECT_EQ(ParentOf(r.graph, "Torch.b.0.forward"), "Apis_Between_Modules.0");
  EXPECT_EQ(ParentOf(r.graph, "Torch.c.0.forward"), "DefaultModel");
  EXPECT_EQ(ParentOf(r.graph, "Torch.e.0.forward"), "Apis_Between_Modules.1");
  EXPECT_EQ(r.graph.nodes[r.graph.Find("Apis_Between_Modules.1")].type, NodeType::kCollection);
}

TEST(Builder, PutsParameterGradientsUnderTheCallThatCompletedThem) {
  const RankGraph r =
      Build(R"("Module.a.A.backward.0": null, "Module.a.A.backward.10": null, "Module.a.A.backward.2": null,
               "Module.b.B.backward.0": null, "Module.b.B.backward.1": null)",
            R"("Module.a.A.parameters_grad": {"weight": []}, "Module.gone.A.parameters_grad": {"weight": []},
               "Module.b.B.parameters_grad.0": {"weight": []}, "Module.b.B.parameters_grad.1": {"weight": []})");
  EXPECT_EQ(ParentOf(r.graph, "Module.a.A.parameters_grad"), "Module.a.A.backward.10");  // one for three calls
  EXPECT_EQ(ParentOf(r.graph, "Module.b.B.parameters_grad.0"), "Module.b.B.backward.0");
  EXPECT_EQ(ParentOf(r.graph, "Module.b.B.parameters_grad.1"), "Module.b.B.backward.1");
  EXPECT_EQ(r.graph.Find("Module.gone.A.parameters_grad"), kNoIndex);
}

TEST(Builder, ParameterGradientsGoByTime) {
  // The loss is the sum of two forward calls: the backward of the second runs first.
  const RankGraph r = Build(R"("Module.a.A.backward.1": null, "Module.a.A.backward.0": null)",
                            R"("Module.a.A.parameters_grad.0": {"weight": []}, "Module.a.A.backward.1": {},
                               "Module.a.A.parameters_grad.1": {"weight": []}, "Module.a.A.backward.0": {})");
  EXPECT_EQ(ParentOf(r.graph, "Module.a.A.parameters_grad.0"), "Module.a.A.backward.1");
  EXPECT_EQ(ParentOf(r.graph, "Module.a.A.parameters_grad.1"), "Module.a.A.backward.0");
}

TEST(Builder, AModuleCalledTwiceForAGradientCompletesItWithTheSecondCall) {
  const RankGraph r = Build(R"("Module.a.A.backward.0": null, "Module.a.A.backward.1": null,
                               "Module.a.A.backward.2": null, "Module.a.A.backward.3": null)",
                            R"("Module.a.A.parameters_grad.0": {"weight": []}, "Module.a.A.parameters_grad.1": {})");
  EXPECT_EQ(ParentOf(r.graph, "Module.a.A.parameters_grad.0"), "Module.a.A.backward.1");
  EXPECT_EQ(ParentOf(r.graph, "Module.a.A.parameters_grad.1"), "Module.a.A.backward.3");
}

TEST(Builder, BackwardNodesBorrowTheStackOfTheirForwardNode) {
  const RankGraph r =
      Build(R"("Module.a.A.forward.0": null, "Torch.x.0.forward": null, "Module.a.A.backward.3": null,
      "Torch.x.0.backward": null, "Torch.y.0.backward": null, "Torch.z.0.forward": null)",
            "", R"("0": [["Module.a.A.forward.0"], ["frame a"]], "1": [["Torch.x.0.forward"], ["frame x"]])");
  const auto stack = [&](const char* name) { return r.graph.nodes[r.graph.Find(name)].stack; };
  EXPECT_EQ(stack("Module.a.A.backward.3"), stack("Module.a.A.forward.0"));
  EXPECT_EQ(stack("Torch.x.0.backward"), stack("Torch.x.0.forward"));
  EXPECT_NE(stack("Torch.x.0.forward"), stack("Module.a.A.forward.0"));
  EXPECT_EQ(stack("Torch.y.0.backward"), kLostStack);
  EXPECT_EQ(stack("Torch.z.0.forward"), kNoIndex);
}

TEST(Builder, MovesRecomputedModulesUnderTheBackwardOfTheOriginal) {
  const std::string frames = R"(["File /x/torch/utils/checkpoint.py, line 1, in recompute_fn, \n fn"])";
  const RankGraph r =
      Build(R"("Module.m.Net.forward.0": null, "Module.m.layers.0.mlp.Linear.forward.0": "Module.m.Net.forward.0",
      "Module.m.Net.backward.0": null, "Module.m.layers.0.mlp.Linear.forward.1": null, "Module.m.layers.0.mlp.Linear.backward.1": null)",
            "", R"("Module.m.layers.0.mlp.Linear.forward.1": )" + frames);
  EXPECT_EQ(ParentOf(r.graph, "Module.m.layers.0.mlp.Linear.forward.1"), "Module.m.Net.backward.0");
  EXPECT_EQ(ParentOf(r.graph, "Module.m.layers.0.mlp.Linear.backward.1"), "Module.m.Net.backward.0");
  EXPECT_EQ(r.graph.nodes[0].children.size(), 2u);
}

TEST(Recompute, IsMarkedWhereItCannotBeMoved) {
  // The model has no name, so its layers are at the top level themselves.
  const RankGraph r = Build(R"("Module.layers.0.B.forward.0": null, "Module.layers.0.B.forward.1": null,
                               "Module.layers.0.B.backward.0": null)",
                            "", R"("0": [["Module.layers.0.B.forward.0"], ["File /x/mine.py, line 1, in f, \n a"]],
      "1": [["Module.layers.0.B.forward.1"], ["File /x/torch/utils/checkpoint.py, line 1, in recompute_fn, \n a"]])");
  EXPECT_FALSE(r.graph.nodes[r.graph.Find("Module.layers.0.B.forward.0")].recomputed);
  EXPECT_TRUE(r.graph.nodes[r.graph.Find("Module.layers.0.B.forward.1")].recomputed);
  EXPECT_EQ(ParentOf(r.graph, "Module.layers.0.B.forward.1"), "DefaultModel");
}

TEST(Recompute, IsSeenInTheStack) {
  EXPECT_TRUE(StackShowsRecompute({"File /x/torch/utils/checkpoint.py, line 1, in recompute_fn, \n a"}));
  EXPECT_FALSE(StackShowsRecompute({"File /x/mine.py, line 1, in recompute_fn, \n a"}));
  EXPECT_TRUE(
      StackShowsRecompute({"File /x/random.py, line 1, in backward, \n a", "File /x/other.py, line 1, in apply, \n a",
                           "File /x/torch/autograd/function.py, line 1, in apply, \n a"}));
  EXPECT_FALSE(StackShowsRecompute({"File /x/random.py, line 1, in backward, \n a", "File /a.py, line 1, in a, \n a",
                                    "File /b.py, line 1, in b, \n b",
                                    "File /x/torch/autograd/function.py, line 1, in apply, \n a"}));
  EXPECT_TRUE(StackShowsRecompute({"File /x/megatron/r.py, line 1, in checkpoint_function_backward, \n a",
                                   "File /x/torch/autograd/function.py, line 1, in apply, \n a"}));
  EXPECT_FALSE(StackShowsRecompute({"no frame at all", ""}));
}

TEST(Builder, ReadsRecordedMicroSteps) {
  const RankGraph r =
      Build(R"("megatron_micro_step_number": 1, "Torch.a.0.forward": [null, 1], "Torch.b.0.forward": [null, 1],
      "Module.m.M.forward.0": null)");
  EXPECT_EQ(*r.files.construct.megatron_micro_steps, 1);
  EXPECT_EQ(r.graph.nodes[r.graph.Find("Torch.a.0.forward")].micro_step, 1);
  EXPECT_EQ(r.graph.nodes[r.graph.Find("Apis_Between_Modules.0")].micro_step, 1);
  EXPECT_EQ(r.graph.nodes[r.graph.Find("Module.m.M.forward.0")].micro_step, 0);
}

TEST(Builder, AsksForStructureWhenThereIsNone) {
  DumpDir dir;
  const auto rank = BuildRankGraph(dir.Rank("rank0", "", ""));
  ASSERT_FALSE(rank.ok());
  EXPECT_EQ(rank.status().code(), Code::kBadInput);
  EXPECT_NE(rank.status().message().find("L0 or mix"), std::string::npos) << rank.status().message();
}

TEST(Builder, NamesTheMissingFile) {
  DumpDir dir;
  const std::string rank = dir.Rank("rank0", R"("Torch.a.0.forward": null)", "");
  std::filesystem::remove(rank + "/construct.json");
  const auto built = BuildRankGraph(rank);
  ASSERT_FALSE(built.ok());
  EXPECT_NE(built.status().message().find("construct.json"), std::string::npos);
}

TEST(Builder, DoesWithoutStacks) {
  DumpDir dir;
  const std::string rank = dir.Rank("rank0", R"("Torch.a.0.forward": null)", "");
  std::filesystem::remove(rank + "/stack.json");
  const auto built = BuildRankGraph(rank);
  ASSERT_TRUE(built.ok()) << built.status().message();
  EXPECT_NE(built->graph.Find("Torch.a.0.forward"), kNoIndex);
  EXPECT_NE(built->files.warning.English().find("stack.json"), std::string::npos);
}

TEST(Builder, RefusesDepthThatNoModelHas) {
  DumpDir dir;
  std::string construct = R"("Module.m.M.forward.0": null)";
  for (int i = 1; i <= 1200; ++i) {
    construct +=
        ", \"Module.m.M.forward." + std::to_string(i) + "\": \"Module.m.M.forward." + std::to_string(i - 1) + "\"";
  }
  const auto built = BuildRankGraph(dir.Rank("rank0", construct, ""));
  ASSERT_FALSE(built.ok());
  EXPECT_EQ(built.status().code(), Code::kBadInput);
}

}  // namespace
}  // namespace msprobe
