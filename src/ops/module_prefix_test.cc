#include "ops/module_prefix.h"

#include <gtest/gtest.h>

#include <vector>

namespace msprobe {
namespace {

std::string_view PrefixOf(const std::vector<std::string_view>& names) {
  return ModulePrefix(names.size(), [&](size_t i) { return names[i]; });
}

TEST(ModulePrefix, OfAListIsWhatAllModulesBeginWith) {
  EXPECT_EQ(PrefixOf({"Torch.add.0.forward", "Module.0.conv.Conv2d.forward.0", "Module.0.fc.Linear.forward.0"}),
            "Module.0.");
  EXPECT_EQ(PrefixOf({"Cell.0.conv.Conv2d.forward.0"}), "Cell.0.");
  EXPECT_EQ(PrefixOf({"Module.0.conv.Conv2d.forward.0", "Module.1.fc.Linear.forward.0"}), "Module.");
  EXPECT_EQ(PrefixOf({"Cell.conv.Conv2d.forward.0"}), "Cell.");
  EXPECT_EQ(PrefixOf({"Torch.add.0.forward"}), "");
  EXPECT_EQ(PrefixOf({}), "");
}

TEST(ModulePrefix, TakesThePlaceOfAnother) {
  EXPECT_EQ(WithPrefix("Module.0.conv", "Module.0.", "Module."), "Module.conv");
  EXPECT_EQ(WithPrefix("Torch.add", "Module.0.", "Module."), "Torch.add");
}

}  // namespace
}  // namespace msprobe
