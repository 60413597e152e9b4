#include "match/path_plan.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "dump/test_files.h"
#include "json/writer.h"

namespace msprobe {
namespace {

class PathPlanTest : public testing::Test {
 protected:
  std::string Dump(const std::string& name) { return dir_.Write(name, "{}"); }
  StatusOr<PathPlan> Plan(const std::string& a, const std::string& b) {
    return PlanPaths(dir_.path() + "/" + a, dir_.path() + "/" + b);
  }
  TempDir dir_;
};

TEST_F(PathPlanTest, TwoFilesHaveNoSuffix) {
  Dump("a/dump.json");
  Dump("b/dump.json");
  const auto plan = Plan("a/dump.json", "b/dump.json");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_EQ(plan->pairs.size(), 1u);
  EXPECT_EQ(plan->pairs[0].suffix, "");
  EXPECT_FALSE(plan->debug);
}

TEST_F(PathPlanTest, RanksPairByIdNotByPosition) {
  for (const char* name : {"t/rank0", "t/rank2", "t/rank10", "g/rank2", "g/rank10", "g/rank3"})
    Dump(std::string(name) + "/dump.json");
  const auto plan = Plan("t", "g");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_EQ(plan->pairs.size(), 2u);
  EXPECT_EQ(plan->pairs[0].suffix, "_rank2");
  EXPECT_TRUE(Contains(plan->pairs[0].golden, "g/rank2/"));
  EXPECT_EQ(plan->pairs[1].rank, 10);
  ASSERT_EQ(plan->target_only.size(), 1u);
  EXPECT_TRUE(EndsWith(plan->target_only[0], "t/rank0"));
  ASSERT_EQ(plan->golden_only.size(), 1u);
  EXPECT_TRUE(EndsWith(plan->golden_only[0], "g/rank3"));
}

TEST_F(PathPlanTest, OneRankOnEachSidePairsWhateverItsName) {
  Dump("t/proc12/dump.json");
  Dump("g/rank/dump.json");
  const auto plan = Plan("t", "g");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->pairs[0].suffix, "_proc12");
}

TEST_F(PathPlanTest, StepsPairByNumberAndNameTheirResults) {
  for (const char* name : {"t/step0/rank0", "t/step2/rank0", "g/step2/rank0", "g/step5/rank0"})
    Dump(std::string(name) + "/dump.json");
  const auto plan = Plan("t", "g");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_EQ(plan->pairs.size(), 1u);
  EXPECT_EQ(plan->pairs[0].suffix, "_step2_rank0");
  EXPECT_EQ(plan->pairs[0].label, "step2 rank0");
  EXPECT_EQ(plan->target_only.size(), 1u);
  EXPECT_EQ(plan->golden_only.size(), 1u);
  JsonWriter json;
  WritePathPlan(&json, *plan);
  EXPECT_TRUE(Contains(json.Take(), "\"label\": \"step2 rank0\""));
}

TEST_F(PathPlanTest, DirectoriesWithOnlyDebugFilesAreDebugDumps) {
  Dump("t/rank0/debug.json");
  Dump("g/rank0/debug.json");
  const auto plan = Plan("t", "g");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_TRUE(plan->debug);
  EXPECT_TRUE(EndsWith(plan->pairs[0].target, "debug.json"));
}

TEST_F(PathPlanTest, RankDirectoriesAreAccepted) {
  Dump("t/step0/rank3/dump.json");
  Dump("g/step0/rank3/dump.json");
  const auto plan = Plan("t/step0/rank3", "g/step0/rank3");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->pairs[0].suffix, "_rank3");
}

TEST_F(PathPlanTest, DifferentKindsAreRefused) {
  Dump("t/rank0/dump.json");
  Dump("x/debug.json");
  Dump("y.json");
  for (const auto& [a, b] : std::vector<std::pair<std::string, std::string>>{{"t", "t/rank0/dump.json"},
                                                                             {"t", "t/rank0"},
                                                                             {"t/rank0/dump.json", "x/debug.json"},
                                                                             {"t/rank0/dump.json", "y.json"}}) {
    const auto plan = Plan(a, b);
    ASSERT_FALSE(plan.ok()) << a << " " << b;
    EXPECT_EQ(plan.status().code(), Code::kBadInput);
    EXPECT_EQ(plan.status().message().find('\n'), std::string::npos);
  }
}

TEST_F(PathPlanTest, ModesOfMindSporeAreEntered) {
  for (const char* name : {"t/graph/step0/rank0", "t/pynative/step0/rank0", "g/pynative/step0/rank0",
                           "t/pynative/step1/rank0", "g/pynative/step1/rank0", "g/pynative/step2/rank0"})
    Dump(std::string(name) + "/dump.json");
  const auto plan = Plan("t", "g");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_EQ(plan->pairs.size(), 2u);
  EXPECT_EQ(plan->pairs[1].folder, "pynative/step1");
  EXPECT_EQ(plan->pairs[1].suffix, "_rank0");
  EXPECT_EQ(plan->pairs[1].label, "pynative step1 rank0");
  ASSERT_EQ(plan->target_only.size(), 1u);
  EXPECT_TRUE(EndsWith(plan->target_only[0], "t/graph"));
  ASSERT_EQ(plan->golden_only.size(), 1u);
  Dump("only/graph/step0/rank0/dump.json");
  EXPECT_EQ(Plan("only", "g").status().code(), Code::kBadInput);
}

TEST_F(PathPlanTest, NothingInCommonIsAnError) {
  for (const char* name : {"t/rank0", "t/rank1", "g/rank2", "g/rank3"}) Dump(std::string(name) + "/dump.json");
  EXPECT_EQ(Plan("t", "g").status().code(), Code::kBadInput);
}

}  // namespace
}  // namespace msprobe
