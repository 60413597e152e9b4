#include "ops/micro_steps.h"

#include <gtest/gtest.h>

#include <string>

namespace msprobe {
namespace {

/// The micro step of each call: a letter is the forward of that module, '-' a backward call.
std::string Steps(bool again_begins, std::string_view calls) {
  MicroStepCounter steps(again_begins);
  std::string out;
  for (const char call : calls) {
    call == '-' ? steps.Backward() : steps.Forward(std::string(1, call));
    out += std::to_string(steps.current());
  }
  return out;
}

TEST(MicroStepCounter, AForwardCallAfterABackwardPassBeginsTheNext) {
  EXPECT_EQ(Steps(false, "ab--ab--a"), "000011112");
  EXPECT_EQ(Steps(true, "ab--ab--a"), "000011112");
}

TEST(MicroStepCounter, ForwardPassesOfAPipelineAreOneOrSeveral) {
  EXPECT_EQ(Steps(false, "aaa---"), "000000");
  EXPECT_EQ(Steps(true, "aaa---"), "012222");
  EXPECT_EQ(Steps(true, "abba-b"), "000112") << "only the module that began it begins the next";
}

TEST(MicroStepCounter, ABackwardPassMayComeFirst) {
  EXPECT_EQ(Steps(false, "-a"), "01");
  EXPECT_EQ(Steps(true, "-a"), "01");
  EXPECT_FALSE(MicroStepCounter(true).has_begun());
}

}  // namespace
}  // namespace msprobe
