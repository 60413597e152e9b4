#include "graph/tree/matcher.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

struct Spec {
  const char *name, *parent;
};

NodeGraph Make(const std::vector<Spec>& specs) {
  NodeGraph g;
  for (const Spec& s : specs) {
    const uint32_t id = g.Add(
        s.name, std::string_view(s.name).starts_with(kCollectionName) ? NodeType::kCollection : TypeOfName(s.name));
    g.SetParent(id, *s.parent ? g.Find(s.parent) : 0);
  }
  g.Sort();
  return g;
}

std::string Match(const NodeGraph& a, const NodeGraph& b, const char* name) {
  const uint32_t m = a.nodes[a.Find(name)].match;
  return m == kNoIndex ? "-" : std::string(b.nodes[m].name);
}

TEST(MatchByName, NeedsTheSameAncestors) {
  NodeGraph a =
      Make({{"Module.m.M.forward.0", ""}, {"Torch.x.0.forward", "Module.m.M.forward.0"}, {"Torch.y.0.forward", ""}});
  NodeGraph b =
      Make({{"Module.m.M.forward.0", ""}, {"Torch.x.0.forward", ""}, {"Torch.y.0.forward", "Module.m.M.forward.0"}});
  MatchByName(&a, &b);
  EXPECT_EQ(Match(a, b, "DefaultModel"), "DefaultModel");
  EXPECT_EQ(Match(a, b, "Module.m.M.forward.0"), "Module.m.M.forward.0");
  EXPECT_EQ(Match(a, b, "Torch.x.0.forward"), "-");
  EXPECT_EQ(Match(a, b, "Torch.y.0.forward"), "-");
}

TEST(MatchByPlan, FollowsTheOpsAndKeepsOtherNamesWhereThereIsNoOp) {
  NodeGraph a = Make({{"Module.new.M.forward.0", ""},
                      {"Torch.x.0.forward", "Module.new.M.forward.0"},
                      {"Torch.y.3.forward", "Module.new.M.forward.0"},
                      {"Torch.lost.0.forward", "Module.new.M.forward.0"}});
  NodeGraph b = Make({{"Module.old.M.forward.0", ""},
                      {"Torch.x.7.forward", "Module.old.M.forward.0"},
                      {"Torch.y.0.forward", "Module.old.M.forward.0"},
                      {"Torch.lost.0.forward", ""}});
  for (uint32_t i = 1; i < 5; ++i) a.nodes[i].op = b.nodes[i].op = i - 1;
  MatchPlan plan;
  plan.golden_of = {0, 1, kNoOp, kNoOp};
  MatchByPlan(plan, &a, &b);
  EXPECT_EQ(Match(a, b, "DefaultModel"), "DefaultModel");
  EXPECT_EQ(Match(a, b, "Module.new.M.forward.0"), "Module.old.M.forward.0");
  EXPECT_EQ(Match(a, b, "Torch.x.0.forward"), "Torch.x.7.forward");
  EXPECT_EQ(Match(a, b, "Torch.lost.0.forward"), "-") << "the plan says that it has no partner";
  EXPECT_EQ(Match(a, b, "Torch.y.3.forward"), "-");
  MatchCallsInside(&a, &b);
  EXPECT_EQ(Match(a, b, "Torch.y.3.forward"), "Torch.y.0.forward") << "by order inside the pair of modules";
  EXPECT_EQ(Match(a, b, "Torch.x.0.forward"), "Torch.x.7.forward");
}

TEST(MatchFuzzy, CountsCallsInsideTheirModule) {
  NodeGraph a = Make({{"Module.m.M.forward.0", ""},
                      {"Torch.x.5.forward", "Module.m.M.forward.0"},
                      {"Torch.extra.0.forward", "Module.m.M.forward.0"},
                      {"Torch.x.6.forward", "Module.m.M.forward.0"},
                      {"Torch.x.7.forward", "Module.m.M.forward.0"}});
  NodeGraph b = Make({{"Module.m.M.forward.0", ""},
                      {"Torch.x.0.forward", "Module.m.M.forward.0"},
                      {"Torch.x.1.forward", "Module.m.M.forward.0"}});
  MatchFuzzy(&a, &b);
  EXPECT_EQ(Match(a, b, "Torch.x.5.forward"), "Torch.x.0.forward");
  EXPECT_EQ(Match(a, b, "Torch.x.6.forward"), "Torch.x.1.forward");
  EXPECT_EQ(Match(a, b, "Torch.x.7.forward"), "-");
  EXPECT_EQ(Match(a, b, "Torch.extra.0.forward"), "-");
}

TEST(MatchFuzzy, IgnoresTheAncestorsOfModules) {
  NodeGraph a = Make({{"Module.o.O.forward.0", ""}, {"Module.m.M.forward.0", "Module.o.O.forward.0"}});
  NodeGraph b = Make({{"Module.m.M.forward.0", ""}});
  MatchFuzzy(&a, &b);
  EXPECT_EQ(Match(a, b, "Module.m.M.forward.0"), "Module.m.M.forward.0");
}

TEST(NameWithoutCounts, DropsCallNumbersAndRanks) {
  EXPECT_EQ(NameWithoutCounts("Functional.linear.12.forward"), "Functional.linear.forward");
  EXPECT_EQ(NameWithoutCounts("Torch.arange_rank1.0.forward"), "Torch.arange.forward");
  EXPECT_EQ(NameWithoutCounts("a.1.2.b"), "a.2.b") << "one dot is not shared by two numbers";
  EXPECT_EQ(NameWithoutCounts("a_rank"), "a_rank");
}

TEST(MicroSteps, BeginWhenAForwardFollowsABackward) {
  NodeGraph a = Make({{"Module.m.M.forward.0", ""},
                      {"Torch.in.0.forward", "Module.m.M.forward.0"},
                      {"Torch.x.0.forward", ""},
                      {"Module.m.M.backward.0", ""},
                      {"Module.m.M.forward.1", ""},
                      {"Module.m.M.backward.1", ""}});
  NodeGraph b = Make({{"Module.m.M.forward.1", ""},
                      {"Torch.in.7.forward", "Module.m.M.forward.1"},
                      {"Module.other.O.forward.4", ""},
                      {"Torch.q.0.forward", ""}});
  MatchByName(&a, &b);
  EXPECT_EQ(NumberMicroSteps(std::nullopt, &a, &b), 2);
  const auto step = [](const NodeGraph& g, const char* name) { return g.nodes[g.Find(name)].micro_step; };
  EXPECT_EQ(step(a, "Torch.in.0.forward"), 0);
  EXPECT_EQ(step(a, "Torch.x.0.forward"), 0);
  EXPECT_EQ(step(a, "Module.m.M.forward.1"), 1);
  EXPECT_EQ(step(b, "Module.m.M.forward.1"), 1);
  EXPECT_EQ(step(b, "Torch.in.7.forward"), 1);
  EXPECT_EQ(step(b, "Module.other.O.forward.4"), 4) << "an unmatched module goes by its call number";
  EXPECT_EQ(step(b, "Torch.q.0.forward"), 0);
}

TEST(MicroSteps, AModelWithoutANameOfItsOwnIsOneForEachBatch) {
  NodeGraph a = Make({{"Module.embed.E.forward.0", ""},
                      {"Module.layers.0.B.forward.0", ""},
                      {"Module.layers.1.B.forward.0", ""},
                      {"Module.layers.1.B.backward.0", ""},
                      {"Module.layers.0.B.forward.1", ""},  // recomputed
                      {"Module.layers.0.B.backward.0", ""},
                      {"Module.embed.E.backward.0", ""},
                      {"Module.embed.E.forward.1", ""},
                      {"Module.layers.0.B.forward.2", ""}});
  a.nodes[a.Find("Module.layers.0.B.forward.1")].recomputed = true;
  EXPECT_EQ(NumberMicroSteps(std::nullopt, &a, nullptr), 2);
  const auto step = [&](const char* name) { return a.nodes[a.Find(name)].micro_step; };
  EXPECT_EQ(step("Module.layers.0.B.forward.1"), 0);
  EXPECT_EQ(step("Module.layers.0.B.backward.0"), 0);
  EXPECT_EQ(step("Module.layers.0.B.forward.2"), 1);
}

TEST(MicroSteps, KeepsRecordedNumbers) {
  NodeGraph a = Make({{"Module.m.M.forward.0", ""}});
  a.nodes[1].micro_step = 3;
  EXPECT_EQ(NumberMicroSteps(7, &a, nullptr), 8);
  EXPECT_EQ(a.nodes[1].micro_step, 3);
}

}  // namespace
}  // namespace msprobe
