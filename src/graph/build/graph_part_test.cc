#include "graph/build/graph_part.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

GraphPart Example() {
  GraphPart part;
  part.step = 1;
  part.rank = 2;
  part.mode = CompareMode::kChecksum;
  part.summary.task = "md5";
  part.summary.target_nodes = 7;
  part.summary.first_error = FirstError{1, 2, 3, "Module.a.A.forward.0"};
  part.summary.damaged.push_back({1, 2, false, BadInput("ends early")});
  part.summary.findings.push_back({FindingKind::kNoPartner, "Bench", 1, 2, 5, "node", Message("text"), {1}});
  NodeCall call{"Distributed.send.0.forward", "send", {CommTransfer()}, {CommData()}, "1", 9, 4};
  call.transfers[0].group = {0, 2};
  part.calls[1].push_back({2, true, {call}});
  RankFindings& found = part.found.emplace();
  found.rank = 2;
  found.files.step = 1;
  found.differences.first.kind = FirstDifference::Kind::kGrows;
  found.differences.first.difference = {"Norm", "2.5", "2", 25};
  found.differences.ruler.bug = 3;
  found.calls.rank.calls.push_back({4, "Distributed.send.0.forward", "send", {}, 0});
  found.calls.transfers = {{CommTransfer()}};
  found.marks.assign(5, RankFindings::kEndsApart);
  found.infected.push_back({2, SharedName("layers.0"), true, 1, SharedName("Functional.linear.0.backward"), 4});
  found.begun.push_back({1, 3, RulerVerdict::kBug, 0});
  found.differences.first.owner = "layers.0.weight";
  found.differences.first.hidden = true;
  found.differences.others.resize(1);
  found.differences.others[0].name = "Torch.mul.0.forward";
  found.differences.target_modules = {"Module.extra.Scale.forward.0"};
  found.differences.unrecorded = 2;
  found.differences.first_unrecorded = "Module.fused.Fused.forward.0";
  return part;
}

TEST(GraphPart, ComesBackAsItWas) {
  const std::string bytes = PackGraphPart(Example());
  auto part = UnpackGraphPart(bytes);
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(PackGraphPart(*part), bytes);
  EXPECT_EQ(part->step, 1);
  EXPECT_EQ(part->rank, 2);
  EXPECT_EQ(part->summary.first_error->node, "Module.a.A.forward.0");
  EXPECT_EQ(part->summary.damaged[0].why.message(), "ends early");
  ASSERT_TRUE(part->found);
  EXPECT_EQ(part->found->differences.first.difference.percent, 25);
  EXPECT_EQ(part->found->calls.rank.calls[0].name, "Distributed.send.0.forward");
  EXPECT_EQ(part->found->marks.size(), 5u);
  const Differences& differences = part->found->differences;
  EXPECT_EQ(differences.first.owner, "layers.0.weight");
  EXPECT_TRUE(differences.first.hidden);
  ASSERT_EQ(differences.others.size(), 1u);
  EXPECT_EQ(differences.others[0].name, "Torch.mul.0.forward");
  EXPECT_EQ(differences.target_modules.size(), 1u);
  EXPECT_TRUE(differences.golden_modules.empty());
  EXPECT_EQ(differences.unrecorded, 2u);
  EXPECT_EQ(differences.first_unrecorded, "Module.fused.Fused.forward.0");
  ShiftRows(100, &*part);
  EXPECT_EQ(part->calls[1][0].calls[0].row_id, 104);
  EXPECT_EQ(part->summary.findings[0].row_id, 105);
}

TEST(GraphPart, DamageIsRefused) {
  const std::string bytes = PackGraphPart(Example());
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(UnpackGraphPart(bytes.substr(0, size)).ok()) << size;
  EXPECT_FALSE(UnpackGraphPart(bytes + "x").ok());
  GraphPart group_beyond = Example();
  group_beyond.found->begun[0].group = 1;
  EXPECT_FALSE(UnpackGraphPart(PackGraphPart(group_beyond)).ok());
  // Whatever a byte becomes, what is read is consistent: numbers of entries fit the bytes, kinds are known.
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = static_cast<char>(0xFF);
    const auto part = UnpackGraphPart(other);
    EXPECT_TRUE(!part.ok() || PackGraphPart(*part).size() == bytes.size()) << i;
  }
}

}  // namespace
}  // namespace msprobe
