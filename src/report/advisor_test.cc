#include "report/advisor.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace msprobe {
namespace {

TEST(AdvisorTest, TheSideOfTheOpDecides) {
  EXPECT_EQ(Advise("Functional.relu.0.forward", false, 2).kind, AdviceKind::kForwardInput);
  EXPECT_EQ(Advise("Functional.relu.0.forward", true, 2).kind, AdviceKind::kForwardOutput);
  EXPECT_EQ(Advise("Functional.relu.0.backward", false, 2).kind, AdviceKind::kBackwardInput);
  EXPECT_EQ(Advise("Module.fc.Linear.backward.3", true, 2).kind, AdviceKind::kBackwardOutput);
  EXPECT_EQ(Advise("Module.fc.Linear.parameters_grad.weight", true, 2).kind, AdviceKind::kBackwardOutput);
}

TEST(AdvisorTest, SomeOpsHaveAdviceOfTheirOwn) {
  EXPECT_EQ(Advise("Functional.batch_norm.0.forward", false, 2).kind, AdviceKind::kBatchNorm);
  EXPECT_EQ(Advise("Module.bn1.BatchNorm2d.forward.0", true, 2).kind, AdviceKind::kBatchNorm);
  EXPECT_EQ(Advise("Functional.conv2d.1.forward", true, 2).kind, AdviceKind::kDeterministic);
  EXPECT_EQ(Advise("Module.ln.LayerNorm.forward.0", true, 2).kind, AdviceKind::kDeterministic);
  EXPECT_EQ(Advise("Functional.conv2d.1.forward", false, 2).kind, AdviceKind::kForwardInput);
}

TEST(AdvisorTest, TheFileHasThreeLinesWhateverTheName) {
  const std::string text = AdvisorText(Advise("Functional.a\nb.0.forward", true, 7));
  EXPECT_TRUE(StartsWith(text, "Line: 7\nSuspect Nodes: Functional.a\\nb.0.forward\nExpert Advice: Its inputs agree"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_EQ(AdvisorText(Advice()), "Line: NA\nSuspect Nodes: NA\nExpert Advice: NA (every row passed)\n");
}

}  // namespace
}  // namespace msprobe
