#include "ops/op_name.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

struct Case {
  const char* name;
  const char* base;
  const char* number;
  OpDirection direction;
  bool number_last;
};

class OpNameTest : public testing::TestWithParam<Case> {};

TEST_P(OpNameTest, SplitsIntoParts) {
  const NameParts got = ParseOpName(GetParam().name);
  EXPECT_EQ(got.full, GetParam().name);
  EXPECT_EQ(got.base, GetParam().base);
  EXPECT_EQ(got.number, GetParam().number);
  EXPECT_EQ(got.direction, GetParam().direction);
  EXPECT_EQ(got.number_last, GetParam().number_last);
}

INSTANTIATE_TEST_SUITE_P(
    Names, OpNameTest,
    testing::Values(Case{"Functional.linear.12.forward", "Functional.linear", "12", OpDirection::kForward, false},
                    Case{"Functional.linear.0.backward", "Functional.linear", "0", OpDirection::kBackward, false},
                    Case{"Module.a.0.Linear.forward.3", "Module.a.0.Linear", "3", OpDirection::kForward, true},
                    Case{"Module.a.Linear.backward.3", "Module.a.Linear", "3", OpDirection::kBackward, true},
                    Case{"Module.a.Linear.parameters_grad.1", "Module.a.Linear", "1", OpDirection::kParameterGrad,
                         true},
                    Case{"Module.a.Linear.parameters_grad", "Module.a.Linear", "", OpDirection::kParameterGrad, true},
                    Case{"Functional.linear.forward", "Functional.linear", "", OpDirection::kForward, false},
                    Case{"x.0.debug", "x.0.debug", "", OpDirection::kNone, false},
                    Case{"Module.forward.Linear.x.y", "Module.forward.Linear.x.y", "", OpDirection::kNone, false},
                    Case{"forward", "", "", OpDirection::kForward, false}, Case{"", "", "", OpDirection::kNone, false},
                    Case{"...", "...", "", OpDirection::kNone, false}));

TEST(OpName, RankOfAMergedCallIsNoPartOfTheFunction) {
  EXPECT_EQ(WithoutRankSuffix("tanh_rank3"), "tanh");
  EXPECT_EQ(WithoutRankSuffix("__truediv___rank12"), "__truediv__");
  EXPECT_EQ(WithoutRankSuffix("matrix_rank"), "matrix_rank");
  EXPECT_EQ(WithoutRankSuffix("_rank3"), "_rank3");
}

}  // namespace
}  // namespace msprobe
