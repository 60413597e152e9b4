#include "capture/construct.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>

namespace msprobe {
namespace {

OpName Forward(const char* base, int index = 0) { return {InternName(base), index, NameForm::kModuleForward}; }
OpName Backward(const char* base, int index = 0) { return {InternName(base), index, NameForm::kModuleBackward}; }

std::map<std::string, std::string> Parents(ConstructTracker* tracker) {
  tracker->AddOp({InternName("Tensor.last"), 0, NameForm::kApiForward}, true);
  std::map<std::string, std::string> out;
  for (const auto& [name, parent] : tracker->Take()) out[name.str()] = parent.str();
  return out;
}

TEST(Construct, NestedModules) {
  ConstructTracker tracker;
  tracker.BeginModule(Forward("Module.a.A"));
  tracker.BeginModule(Forward("Module.a.b.B"));
  tracker.EndModule(Forward("Module.a.b.B"));
  auto parents = Parents(&tracker);
  EXPECT_EQ(parents["Module.a.b.B.forward.0"], "Module.a.A.forward.0");
  EXPECT_EQ(parents["Module.a.A.forward.0"], "");
  EXPECT_EQ(parents["Tensor.last.0.forward"], "Module.a.A.forward.0");
}

TEST(Construct, ModulesThatEndOutOfOrder) {
  ConstructTracker tracker;
  tracker.BeginModule(Backward("Module.a.A"));
  tracker.BeginModule(Backward("Module.b.B"));
  tracker.EndModule(Backward("Module.a.A"));
  EXPECT_EQ(Parents(&tracker)["Tensor.last.0.forward"], "Module.b.B.backward.0");
  tracker.EndModule(Backward("Module.b.B"));
  EXPECT_EQ(Parents(&tracker)["Tensor.last.0.forward"], "");
}

TEST(Construct, AModuleThatAnotherThreadEnds) {
  ConstructTracker tracker;
  tracker.BeginModule(Backward("Module.a.A"));
  tracker.BeginModule(Backward("Module.b.B"));
  std::thread([&] { tracker.EndModule(Backward("Module.b.B")); }).join();
  EXPECT_EQ(Parents(&tracker)["Tensor.last.0.forward"], "Module.a.A.backward.0");
}

TEST(Construct, OnAnotherThreadTheModuleAroundIsFoundByItsPath) {
  ConstructTracker tracker;
  tracker.BeginModule(Backward("Module.a.A"));
  std::thread([&] { tracker.BeginModule(Backward("Module.a.b.B")); }).join();
  EXPECT_EQ(Parents(&tracker)["Module.a.b.B.backward.0"], "Module.a.A.backward.0");
}

TEST(Construct, OnDemandOnlyModulesAboveAnOpAreListed) {
  ConstructTracker tracker;
  tracker.set_on_demand(true);
  tracker.BeginModule(Backward("Module.left.A"));
  tracker.EndModule(Backward("Module.left.A"));
  tracker.BeginModule(Backward("Module.a.A"));
  tracker.BeginModule(Backward("Module.a.b.B"));
  const OpName op{InternName("Tensor.add"), 0, NameForm::kApiForward};
  EXPECT_EQ(tracker.ParentOf(op).str(), "Module.a.b.B.backward.0");
  tracker.AddOp(op, true);
  EXPECT_EQ(tracker.ParentOf(Backward("Module.a.b.B")).str(), "Module.a.A.backward.0");
  tracker.AddOp(Backward("Module.a.b.B"), true);  // listed above its op already
  tracker.EndModule(Backward("Module.a.b.B"));
  tracker.AddOp({InternName("Tensor.add"), 1, NameForm::kApiForward}, true);
  std::vector<std::string> listed;
  for (const auto& [name, parent] : tracker.Take()) listed.push_back(name.str() + " < " + parent.str());
  EXPECT_EQ(listed,
            (std::vector<std::string>{"Tensor.add.0.forward < Module.a.b.B.backward.0",
                                      "Module.a.b.B.backward.0 < Module.a.A.backward.0", "Module.a.A.backward.0 < ",
                                      "Tensor.add.1.forward < Module.a.A.backward.0"}));
}

TEST(Construct, PhasesAreParents) {
  ConstructTracker tracker;
  tracker.SetPhase(InternName("optimizer"));
  EXPECT_EQ(Parents(&tracker),
            (std::map<std::string, std::string>{{"optimizer", ""}, {"Tensor.last.0.forward", "optimizer"}}));
}

}  // namespace
}  // namespace msprobe
