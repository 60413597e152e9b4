#include "trend/micro_steps.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <utility>

namespace msprobe {
namespace {

struct MicroStepsTest : testing::Test {
  // Every entry is dumped as well.
  MicroSteps Find(std::vector<std::pair<std::string, std::string>> lines) {
    construct = {};
    for (auto& [name, parent] : lines) construct.entries.push_back({name, parent, 0});
    return FindDumped();
  }
  MicroSteps FindDumped() {
    ops.clear();
    for (const ConstructEntry& entry : construct.entries) ops.push_back(entry.name);
    return FindMicroSteps(construct, ops);
  }
  static std::string Steps(const MicroSteps& micro) {
    std::string out;
    for (const MicroPlace& place : micro.places) out += std::to_string(place.micro_step);
    return out;
  }
  static std::string Calls(const MicroSteps& micro) {
    std::string out;
    for (const MicroPlace& place : micro.places) out += place.call < 0 ? "-" : std::to_string(place.call);
    return out;
  }
  ConstructFile construct;
  std::vector<std::string_view> ops;
};

TEST_F(MicroStepsTest, ARootThatRunsAgainBeginsTheNext) {
  const MicroSteps micro = Find({{"Module.m.Net.forward.0", ""},
                                 {"Functional.linear.0.forward", "Module.m.Net.forward.0"},
                                 {"Functional.linear.1.forward", "Module.m.Net.forward.0"},
                                 {"Functional.mse_loss.0.forward", ""},
                                 {"Module.m.Net.backward.0", ""},
                                 {"Functional.linear.1.backward", "Module.m.Net.backward.0"},
                                 {"Module.m.Net.forward.1", ""},
                                 {"Functional.linear.2.forward", "Module.m.Net.forward.1"},
                                 {"Functional.mse_loss.1.forward", ""}});
  EXPECT_EQ(micro.count, 2);
  EXPECT_EQ(Steps(micro), "000000111");
  EXPECT_EQ(Calls(micro), "001000000");
}

// Two forward passes before the first backward pass, as pipelines run them.
TEST_F(MicroStepsTest, BackwardPassesBelongToTheirForwardCalls) {
  const MicroSteps micro = Find({{"Module.m.Net.forward.0", ""},
                                 {"Module.m.Net.forward.1", ""},
                                 {"Module.m.Net.backward.0", ""},
                                 {"Functional.relu.0.backward", "Module.m.Net.backward.0"},
                                 {"Module.m.Net.backward.1", ""},
                                 {"Functional.relu.1.backward", "Module.m.Net.backward.1"}});
  EXPECT_EQ(micro.count, 2);
  EXPECT_EQ(Steps(micro), "010011");
  EXPECT_EQ(Calls(micro), "000000");
}

TEST_F(MicroStepsTest, ANamelessModelHasManyRootsAndOneMicroStep) {
  const MicroSteps micro = Find({{"Module.a.Linear.forward.0", ""},
                                 {"Module.relu.ReLU.forward.0", ""},
                                 {"Module.b.Linear.forward.0", ""},
                                 {"Module.relu.ReLU.forward.1", ""},
                                 {"Module.relu.ReLU.backward.1", ""},
                                 {"Module.a.Linear.backward.0", ""},
                                 {"Module.a.Linear.forward.1", ""},
                                 {"Module.relu.ReLU.forward.2", ""}});
  EXPECT_EQ(micro.count, 2);
  EXPECT_EQ(Steps(micro), "00000011");
  EXPECT_EQ(Calls(micro), "00010000");
}

TEST_F(MicroStepsTest, WhatMegatronCountedHolds) {
  construct.megatron_micro_steps = 2;
  construct.entries = {{"Module.0.Chunk.forward.0", "", 0},
                       {"Module.0.Chunk.forward.1", "", 1},
                       {"Module.1.Chunk.forward.0", "", 0},
                       {"Module.1.Chunk.forward.1", "", 1}};
  const MicroSteps micro = FindDumped();
  EXPECT_EQ(micro.count, 2);
  EXPECT_EQ(Steps(micro), "0101");
}

TEST_F(MicroStepsTest, GradientsOfParametersFollowTheirModule) {
  construct.entries = {{"Module.m.Net.forward.0", "", 0}, {"Module.m.Net.forward.1", "", 0}};
  ops = {"Module.m.Net.parameters_grad.0", "Module.m.Net.parameters_grad.1", "Module.m.Net.parameters_grad"};
  const MicroSteps micro = FindMicroSteps(construct, ops);
  EXPECT_EQ(Steps(micro), "010");
  EXPECT_EQ(Calls(micro), "00-");
}

TEST_F(MicroStepsTest, NoModulesNoMicroSteps) {
  EXPECT_TRUE(Find({{"Tensor.add.0.forward", ""}}).places.empty());
  EXPECT_TRUE(Find({}).places.empty());
}

TEST_F(MicroStepsTest, ALoopOfParentsEnds) {
  const MicroSteps micro = Find({{"Module.r.R.forward.0", ""},
                                 {"Module.a.A.forward.0", "Module.b.B.forward.0"},
                                 {"Module.b.B.forward.0", "Module.a.A.forward.0"},
                                 {"Module.c.C.forward.0", "Module.c.C.forward.0"},
                                 {"Module.d.D.forward.0", "Module.gone.G.forward.0"}});
  EXPECT_EQ(Steps(micro), "00000");
}

TEST_F(MicroStepsTest, ManyLoopsOfParentsTakeNoLongerThanTheirEntries) {
  std::vector<std::pair<std::string, std::string>> lines{{"Module.r.R.forward.0", ""}};
  for (int i = 0; i < 100'000; ++i) {
    const std::string name = "Module.m" + std::to_string(i) + ".M.forward.0";
    lines.emplace_back(name, name);
  }
  const std::clock_t start = std::clock();  // of the processor: a busy machine is not a fault
  EXPECT_EQ(Find(std::move(lines)).places.size(), 100'001u);
  EXPECT_LT(std::clock() - start, 20 * CLOCKS_PER_SEC) << "quadratic would take an hour";
}

TEST(CallNumber, StandsLastOrLastButOne) {
  EXPECT_EQ(CallNumberOf("Module.a.Linear.forward.12").number, 12);
  EXPECT_EQ(CallNumberOf("Functional.linear.3.forward").number, 3);
  EXPECT_EQ(CallNumberOf("Module.a.Linear.parameters_grad").number, -1);
  EXPECT_EQ(CallNumberOf("plain").number, -1);
  EXPECT_EQ(CallNumberOf("a.99999999999999999999").number, -1);
}

}  // namespace
}  // namespace msprobe
