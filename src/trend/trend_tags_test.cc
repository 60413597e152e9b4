#include "trend/trend_tags.h"

#include <gtest/gtest.h>

#include <cmath>

#include "trend/dump_trend.h"

namespace msprobe {
namespace {

using Tags = std::set<TrendTag>;

TEST(DumpTags, OfModules) {
  EXPECT_EQ(DumpTags("Module.blocks.3.layer.1.conv2.Conv2d.input.2"), (Tags{{"input.2", "index"},
                                                                            {"Module", "default"},
                                                                            {"blocks.3", "layer"},
                                                                            {"layer.1", "layer"},
                                                                            {"conv2.Conv2d", "module"}}));
  EXPECT_EQ(DumpTags("Cell.model.decoder.0.1.fc.Dense.parameters.weight"), (Tags{{"parameters.weight", "index"},
                                                                                 {"parameters", "default"},
                                                                                 {"Cell", "default"},
                                                                                 {"decoder.0", "layer"},
                                                                                 {"model", "module"},
                                                                                 {"fc.Dense", "module"}}));
}

TEST(DumpTags, OfFunctions) {
  EXPECT_EQ(DumpTags("Functional.linear.input.0"), (Tags{{"input.0", "index"}, {"Functional.linear", "function"}}));
  EXPECT_EQ(DumpTags("a.b"), Tags());
  EXPECT_EQ(DumpTags("Module.input.0"), Tags());
}

TEST(MonitorTags, AreWordsAndLayers) {
  EXPECT_EQ(MonitorTags("layers.22.mlp.fc1"),
            (Tags{{"layers.22", "layer"}, {"layers", "module"}, {"mlp", "module"}, {"fc1", "module"}}));
  EXPECT_EQ(MonitorTags("0.1.x"), (Tags{{"x", "module"}}));
}

TEST(TrendValue, IsBounded) {
  EXPECT_EQ(TrendValue(2.5), 2.5);
  EXPECT_EQ(TrendValue(3e38), 1e9);
  EXPECT_EQ(TrendValue(-3e38), -1e9);
  EXPECT_EQ(TrendValue(HUGE_VAL), 1e9 + 1);
  EXPECT_EQ(TrendValue(-HUGE_VAL), -1e9 - 1);
}

void ExpectTarget(const std::string& name, DumpMetric metric, const std::string& prefix, int64_t call) {
  const DumpTarget target = DumpTargetOf(name, {}, false);
  EXPECT_EQ(target.metric, metric) << name;
  if (metric == DumpMetric::kNone) return;
  EXPECT_EQ(target.prefix, prefix) << name;
  EXPECT_EQ(target.call, call) << name;
}

TEST(DumpTarget, IsTheNameWithoutDirectionAndCall) {
  ExpectTarget("Functional.linear.3.forward", DumpMetric::kForward, "Functional.linear", 3);
  ExpectTarget("Module.a.Linear.forward.1", DumpMetric::kForward, "Module.a.Linear", 1);
  ExpectTarget("Module.a.Linear.backward.2", DumpMetric::kBackward, "Module.a.Linear", 2);
  ExpectTarget("Module.a.Linear.parameters_grad", DumpMetric::kParametersGrad, "Module.a.Linear", 0);
  ExpectTarget("Module.a.Linear.parameters_grad.4", DumpMetric::kParametersGrad, "Module.a.Linear", 4);
  ExpectTarget("optimizer.step.0", DumpMetric::kNone, "", 0);
  EXPECT_EQ(DumpTargetOf("Module.a.A.forward.0", {}, true).metric, DumpMetric::kRecompute);
}

TEST(DumpTarget, MappingsApplyInOrder) {
  EXPECT_EQ(DumpTargetOf("Module.module.a.A.forward.0", {{"module.", ""}, {"Module.a", "Module.x"}}, false).prefix,
            "Module.x.A");
  std::string name = "aaa";
  ReplaceAll(&name, "a", "aa");
  EXPECT_EQ(name, "aaaaaa");
  ReplaceAll(&name, "", "b");
  EXPECT_EQ(name, "aaaaaa");
}

}  // namespace
}  // namespace msprobe
