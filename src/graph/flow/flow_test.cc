#include "graph/flow/flow.h"

#include <gtest/gtest.h>

#include "json/parser.h"

namespace msprobe {
namespace {

FlowItem Given(uint64_t key, bool output, uint16_t position = 0, uint16_t shape = 1) {
  FlowItem item;
  item.key = key;
  item.shape = shape;
  item.position = position;
  item.output = output;
  return item;
}

std::vector<FlowEdge> Edges(const std::vector<std::vector<FlowItem>>& nodes, size_t container = SIZE_MAX) {
  FlowFinder finder(nodes.size());
  std::vector<FlowEdge> edges;
  for (uint32_t i = 0; i < nodes.size(); ++i) finder.Add(i, nodes[i].data(), nodes[i].size(), i == container, &edges);
  return edges;
}

TEST(Flow, AnInputComesFromTheLatestEqualOutput) {
  const auto edges =
      Edges({{Given(7, true)}, {Given(7, false), Given(8, true)}, {Given(9, false), Given(8, false, 1)}});
  EXPECT_EQ(edges, (std::vector<FlowEdge>{{1, 0, 0, 0, FlowTrust::kStatistics}, {2, 1, 1, 0, FlowTrust::kStatistics}}));
}

TEST(Flow, TrustSaysHowSureItIs) {
  FlowItem weak = Given(1, false), sum = Given(2, false), other = Given(3, false, 2, 9);
  weak.weak = true;
  sum.checksum = true;
  const std::vector<FlowItem> given{Given(1, true), Given(2, true, 1), Given(3, true, 2), Given(4, true, 3)};
  const auto edges = Edges({given, {Given(4, true)}, {weak, sum, other, Given(4, false, 3)}});
  ASSERT_EQ(edges.size(), 4u);
  EXPECT_EQ(edges[0].trust, FlowTrust::kConstant);
  EXPECT_EQ(edges[1].trust, FlowTrust::kChecksum);
  EXPECT_EQ(edges[2].trust, FlowTrust::kOtherShape);
  EXPECT_EQ(edges[3].trust, FlowTrust::kRepeated);
  EXPECT_EQ(edges[3].from, 1u);
}

TEST(Flow, AContainerLeavesItsValuesToItsCalls) {
  // Node 1 holds node 0: it takes nothing itself, and gives only what no call in it gave.
  const auto edges = Edges({{Given(5, false), Given(6, true)},
                            {Given(6, false), Given(6, true), Given(7, true, 1)},
                            {Given(6, false), Given(7, false, 1)}},
                           1);
  EXPECT_EQ(edges, (std::vector<FlowEdge>{{2, 0, 0, 0, FlowTrust::kStatistics}, {2, 1, 1, 1, FlowTrust::kStatistics}}));
}

TEST(Flow, GrowsWithTheGraph) {
  std::vector<std::vector<FlowItem>> nodes;
  for (uint64_t i = 1; i <= 1000; ++i) nodes.push_back({Given(i - 1, false), Given(i, true)});
  nodes[0].erase(nodes[0].begin());
  FlowFinder finder(1);
  std::vector<FlowEdge> edges;
  for (uint32_t i = 0; i < nodes.size(); ++i) finder.Add(i, nodes[i].data(), nodes[i].size(), false, &edges);
  ASSERT_EQ(edges.size(), 999u);
  for (const FlowEdge& e : edges) EXPECT_EQ(e.from + 1, e.node);
}

TEST(Flow, PackedEdgesComeBack) {
  const std::vector<FlowEdge> edges{{300, 2, 1, 0, FlowTrust::kChecksum},
                                    {300, 299, 2, 70, FlowTrust::kConstant},
                                    {511, 0, 0, 0, FlowTrust::kRepeated}};
  const std::string packed = PackEdges(256, edges);
  EXPECT_LT(packed.size(), 24u);
  std::vector<FlowEdge> back;
  ASSERT_TRUE(UnpackEdges(256, packed, &back));
  EXPECT_EQ(back, edges);
  for (size_t n = 1; n < packed.size(); ++n) {
    back.clear();
    const bool whole = UnpackEdges(256, packed.substr(0, n), &back);
    EXPECT_TRUE(!whole || back.size() < edges.size());
  }
  EXPECT_FALSE(UnpackEdges(0, std::string("\0\0\5\0\0", 5), &back));  // from before the first node
  EXPECT_FALSE(UnpackEdges(0, std::string(12, '\xff'), &back));
}

std::vector<FlowItem> Read(const std::string& op) {
  JsonDoc doc;
  EXPECT_TRUE(ParseJson(op, "test", &doc).ok());
  std::vector<msprobe::Item> scratch;
  std::vector<ItemView> items;
  size_t count = 0;
  DescribeOp("Torch.a.0.forward", doc, CompareMode::kStatistics, &scratch, &items, &count);
  std::vector<FlowItem> out;
  ReadFlowItems(items, count, &out);
  return out;
}

TEST(Flow, TensorsAreEqualByChecksumOrByStatistics) {
  const std::string tail = R"("Max": 2.0, "Min": -1.0, "Mean": 0.5, "Norm": 3.0, "requires_grad": false)";
  const std::string stat = R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], )" + tail + "}";
  const std::string view = R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [6], )" + tail + "}";
  const std::string sum =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "md5": "0badcafe", )" + tail + "}";
  const std::string mask =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 1.0, "Mean": 1.0, "Norm": 1.4})";
  const auto items = Read(R"({"input_args": [)" + stat + ", " + sum + ", " + mask +
                          R"(, {"type": "int", "value": 3}], "input_kwargs": {}, "output": [)" + stat + ", " + view +
                          R"(], "parameters": {"weight": )" + stat + "}}");
  ASSERT_EQ(items.size(), 5u);
  EXPECT_EQ(items[0].key, items[3].key);
  EXPECT_EQ(items[0].key, items[4].key);
  EXPECT_NE(items[0].shape, items[4].shape);
  EXPECT_NE(items[0].key, items[1].key);
  EXPECT_TRUE(items[1].checksum && !items[0].checksum);
  EXPECT_TRUE(items[2].weak && !items[0].weak);
  EXPECT_TRUE(items[4].output);
  EXPECT_EQ(items[4].position, 1u);
}

}  // namespace
}  // namespace msprobe
