#include "graph/tree/node_graph.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

TEST(TypeOfName, FollowsTheFirstPart) {
  EXPECT_EQ(TypeOfName("Module.fc.Linear.forward.0"), NodeType::kModule);
  EXPECT_EQ(TypeOfName("Cell.fc.Dense.forward.0"), NodeType::kModule);
  EXPECT_EQ(TypeOfName("optimizer.step"), NodeType::kModule);
  EXPECT_EQ(TypeOfName("clip_grad"), NodeType::kModule);
  EXPECT_EQ(TypeOfName("Functional.linear.0.forward"), NodeType::kApi);
  EXPECT_EQ(TypeOfName("Distributed.all_reduce.0.forward"), NodeType::kApi);
  EXPECT_EQ(TypeOfName("MindSpeed.x.0.forward"), NodeType::kApi);
  EXPECT_EQ(TypeOfName("Tensor"), NodeType::kModule) << "a prefix alone is not a call";
  EXPECT_EQ(TypeOfName("something.else"), NodeType::kModule);
}

TEST(SplitCall, NeedsDirectionAndNumber) {
  std::string_view prefix, number;
  ASSERT_TRUE(SplitCall("Module.a.B.backward.12", "backward", &prefix, &number));
  EXPECT_EQ(prefix, "Module.a.B");
  EXPECT_EQ(number, "12");
  EXPECT_FALSE(SplitCall("Module.a.B.backward.12", "forward", &prefix, &number));
  EXPECT_FALSE(SplitCall("Functional.relu.0.backward", "backward", &prefix, &number));
  EXPECT_FALSE(SplitCall("Module.xbackward.1", "backward", &prefix, &number));
  EXPECT_FALSE(SplitCall("backward.1", "backward", &prefix, &number));
}

TEST(Segment, CountsFromTheFront) {
  EXPECT_EQ(Segment("a.b.c", 0), "a");
  EXPECT_EQ(Segment("a.b.c", 2), "c");
  EXPECT_EQ(Segment("a.b.c", 3), "");
  EXPECT_EQ(Segments("a..b").size(), 3u);
}

TEST(ReplaceAll, ReplacesEachOccurrence) {
  EXPECT_EQ(ReplaceAll("backward.x.backward", "backward", "forward"), "forward.x.forward");
  EXPECT_EQ(ReplaceAll("abc", "x", "y"), "abc");
}

TEST(NodeGraph, SortsChildrenBeforeParentsInOrder) {
  NodeGraph g;
  const uint32_t a = g.Add("a", NodeType::kModule), b = g.Add("b", NodeType::kModule), c = g.Add("c", NodeType::kApi);
  g.SetParent(a, 0);
  g.SetParent(c, a);
  g.SetParent(b, 0);
  g.Sort();
  EXPECT_EQ(g.order, (std::vector<uint32_t>{c, a, b, 0}));
  EXPECT_EQ(g.PathTo(c), (std::vector<uint32_t>{0, a, c}));
}

TEST(NodeGraph, SortSurvivesDepth) {
  NodeGraph g;
  uint32_t up = 0;
  for (int i = 0; i < 200000; ++i) {
    const uint32_t id = g.AddOwned("n" + std::to_string(i), NodeType::kModule);
    g.SetParent(id, up);
    up = id;
  }
  g.Sort();
  EXPECT_EQ(g.order.size(), 200001u);
  EXPECT_EQ(g.order.front(), up);
}

}  // namespace
}  // namespace msprobe
