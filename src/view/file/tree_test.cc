#include "view/file/tree.h"

#include <gtest/gtest.h>

#include <string>

namespace msprobe::view {
namespace {

Tree Make(std::initializer_list<std::pair<const char*, const char*>> nodes) {
  Tree tree;
  int64_t order = 0;
  for (const auto& [name, up] : nodes) {
    TreeNode node;
    node.order = order++;
    node.level = Verdict::kError;
    EXPECT_TRUE(tree.Add(node, name, up).ok());
  }
  tree.Link();
  tree.Count(false);
  return tree;
}

std::string Children(const Tree& tree, std::string_view name) {
  std::string out;
  for (uint32_t i = tree[tree.Find(name)].first_child; i != kNoNode; i = tree[i].next_sibling) {
    out += std::string(tree.Name(i)) + " ";
  }
  return out;
}

TEST(Tree, ChildrenInOrderAndCounts) {
  const Tree tree = Make({{"x", "m"}, {"y", "m"}, {"m", "DefaultModel"}, {"n", "DefaultModel"}, {"DefaultModel", ""}});
  EXPECT_EQ(tree.Name(tree.root()), "DefaultModel");
  EXPECT_EQ(Children(tree, "DefaultModel"), "m n ");
  EXPECT_EQ(Children(tree, "m"), "x y ");
  EXPECT_EQ(tree[tree.root()].counts.error, 5u);
  EXPECT_EQ(tree[tree.Find("m")].counts.error, 3u);
  EXPECT_EQ(tree.Find("nothing"), kNoNode);
}

TEST(Tree, CollectionsAreInNoCountAndRulingsAre) {
  Tree tree;
  const auto add = [&](const char* name, const char* up, uint8_t type, RulerVerdict ruling) {
    TreeNode node;
    node.order = tree.size();
    node.rowid = 100 + tree.size();
    node.level = Verdict::kError;
    node.type = type;
    node.ruling = ruling;
    ASSERT_TRUE(tree.Add(node, name, up).ok());
  };
  add("x", "c", 1, RulerVerdict::kBug);
  add("y", "c", 1, RulerVerdict::kInherited);
  add("c", "DefaultModel", kCollection, RulerVerdict::kNone);
  add("DefaultModel", "", 0, RulerVerdict::kNone);
  tree.Link();
  tree.SetRuling(tree.AtRow(101), RulerVerdict::kSuspicious);
  tree.Count(true);
  EXPECT_EQ(tree[tree.Find("y")].ruling, RulerVerdict::kSuspicious);
  const SubtreeCounts counts = tree[tree.Find("c")].counts;
  EXPECT_EQ(counts.unmatched, 2u);
  EXPECT_EQ(counts.bug, 1u);
  EXPECT_EQ(counts.suspicious, 1u);
  EXPECT_EQ(tree.AtRow(99), kNoNode);
  EXPECT_EQ(tree.AtRow(104), kNoNode);
  EXPECT_EQ(tree.AtRow(INT64_MIN), kNoNode);
}

TEST(Tree, StrayNodesHangUnderTheRoot) {
  const Tree tree = Make({{"x", "gone"}, {"y", "x"}, {"DefaultModel", ""}, {"z", ""}});
  EXPECT_EQ(Children(tree, "DefaultModel"), "x z ");
  EXPECT_EQ(tree[tree.root()].counts.error, 4u);
}

TEST(Tree, CyclesAreBroken) {
  const Tree tree = Make({{"a", "b"}, {"b", "c"}, {"c", "a"}, {"s", "s"}, {"DefaultModel", "a"}});
  EXPECT_EQ(tree.Name(tree.root()), "DefaultModel");
  EXPECT_EQ(tree[tree.root()].counts.error, 5u);  // so every node is reached from the root
  const Tree no_root = Make({{"a", "b"}, {"b", "a"}});
  EXPECT_EQ(no_root[no_root.root()].counts.error, 2u);
}

TEST(Tree, WithoutDefaultModelTheLastTopNodeIsTheRoot) {
  const Tree tree = Make({{"a", "top"}, {"top", ""}});
  EXPECT_EQ(tree.Name(tree.root()), "top");
}

TEST(Tree, FirstOfEqualNamesIsFound) {
  const Tree tree = Make({{"a", "DefaultModel"}, {"a", "DefaultModel"}, {"DefaultModel", ""}});
  EXPECT_EQ(tree.Find("a"), 0u);
  EXPECT_EQ(tree[tree.root()].children, 2u);
}

TEST(Tree, PlacesAndMicroStepsAsTheyAre) {
  Tree tree;
  const int64_t rows[] = {7, 8, 9, 11, 10, -3}, orders[] = {0, 1, 2, 3, 4, 1},
                steps[] = {0, -1, 1'000'000, 3, -32768, 5};
  for (int i = 0; i < 6; ++i) {
    TreeNode node;
    node.rowid = rows[i];
    node.order = orders[i];
    node.micro_step = steps[i];
    node.type = 9;
    node.overflow = Overflow::kCritical;
    EXPECT_TRUE(tree.Add(node, "n" + std::to_string(i), "").ok());
  }
  tree.Link();
  for (uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(tree[i].rowid, rows[i]);
    EXPECT_EQ(tree[i].order, orders[i]);
    EXPECT_EQ(tree[i].micro_step, steps[i]);
    EXPECT_EQ(tree[i].type, 9);
    EXPECT_EQ(tree[i].overflow, Overflow::kCritical);
  }
}

TEST(Tree, PartnersByName) {
  Tree target, golden;
  EXPECT_TRUE(target.Add({}, "a", "DefaultModel", "b").ok());
  EXPECT_TRUE(target.Add({}, "b", "DefaultModel", "gone").ok());
  EXPECT_TRUE(target.Add({}, "DefaultModel", "").ok());
  EXPECT_TRUE(golden.Add({}, "DefaultModel", "").ok());
  EXPECT_TRUE(golden.Add({}, "b", "DefaultModel", "a").ok());
  for (Tree* tree : {&target, &golden}) tree->Link();
  target.LinkPartners(golden);
  golden.LinkPartners(target);
  for (Tree* tree : {&target, &golden}) tree->Count(true);
  EXPECT_EQ(target[0].partner, 1u);
  EXPECT_EQ(target[1].partner, kNoNode);
  EXPECT_EQ(golden[1].partner, 0u);
  EXPECT_EQ(target[target.root()].counts.unmatched, 2u);
}

TEST(Tree, EmptyAndOversized) {
  Tree tree;
  tree.Link();
  tree.Count(true);
  EXPECT_EQ(tree.root(), kNoNode);
  EXPECT_EQ(tree.Find("x"), kNoNode);
  EXPECT_EQ(tree.Add({}, std::string(70000, 'x'), "").code(), Code::kBadInput);
}

}  // namespace
}  // namespace msprobe::view
