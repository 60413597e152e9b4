#include "match/layer_match.h"

#include <gtest/gtest.h>

#include <string>

namespace msprobe {
namespace {

TEST(LayerMatch, NamesMayNestByTheThousand) {
  std::string path = "Module";
  for (int i = 0; i < 300'000; ++i) path += ".a";
  const std::string name = path + ".Linear.forward.0";
  LayerSide target, golden;
  target.ops = {name, "Module.b.Linear.forward.0"};
  golden.ops = {"Module.c.Linear.forward.0", name};
  const MatchPlan plan = MatchLayers(target, golden, {{"TopLayer", {{"b", "c"}}}});
  EXPECT_EQ(plan.golden_of, (std::vector<uint32_t>{1, 0}));
}

}  // namespace
}  // namespace msprobe
