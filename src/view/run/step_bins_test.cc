#include "view/run/step_bins.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

namespace msprobe::view {
namespace {

constexpr size_t kRows = 3;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Steps {
  int64_t interval, first, last;
};

class StepBinsTest : public testing::TestWithParam<Steps> {
 protected:
  // Whole numbers, whose sums are exact in any order, with some that are none.
  static void Fill(StepBins* bins, const Steps& run) {
    std::vector<uint32_t> rows(kRows);
    std::iota(rows.begin(), rows.end(), 0);
    for (int64_t step = run.first; step <= run.last; step += run.interval) {
      std::mt19937_64 random(static_cast<uint64_t>(step));
      double values[kRows];
      for (double& value : values) value = random() % 97 == 0 ? kNan : static_cast<double>(random() % 64);
      bins->Take(step, rows, values, kRows);
    }
  }

  static void ExpectSame(const StepBins& a, const StepBins& b) {
    ASSERT_EQ(a.level(), b.level());
    ASSERT_EQ(a.first(), b.first());
    ASSERT_EQ(a.bins(), b.bins());
    for (int64_t bin = a.first(); bin < a.first() + a.bins(); ++bin) {
      for (size_t row = 0; row < kRows; ++row) {
        const BinCell &x = a.At(row, bin), &y = b.At(row, bin);
        ASSERT_EQ(std::tuple(x.low, x.high, x.sum, x.count, x.nan), std::tuple(y.low, y.high, y.sum, y.count, y.nan))
            << "bin " << bin << ", row " << row;
      }
    }
  }
};

TEST_P(StepBinsTest, WhatIsExpectedLiesInTheBinsThatHalvingMakes) {
  const Steps run = GetParam();
  StepBins expected(run.interval), halved(run.interval);
  expected.Expect(run.first, run.last, kRows);
  const int level = expected.level();
  Fill(&expected, run);
  Fill(&halved, run);
  EXPECT_EQ(expected.level(), level) << "halved although it knew what would come";
  EXPECT_LE(expected.bins(), static_cast<int64_t>(StepBins::kMostBins));
  ExpectSame(expected, halved);
}

TEST_P(StepBinsTest, ARunThatBecomesLongerThanExpectedIsHalvedOn) {
  const Steps run = GetParam();
  StepBins expected(run.interval), halved(run.interval);
  expected.Expect(run.first, run.first + (run.last - run.first) / 3, kRows);
  Fill(&expected, run);
  Fill(&halved, run);
  ExpectSame(expected, halved);
}

INSTANTIATE_TEST_SUITE_P(Runs, StepBinsTest,
                         testing::Values(Steps{1, 0, 2047}, Steps{1, 0, 2048}, Steps{1, 1, 2048}, Steps{1, 1, 4096},
                                         Steps{10, 0, 100'000}, Steps{1, 5, 10'000}, Steps{7, -3000, 40'000},
                                         Steps{1, 9, 9}));

TEST(StepBins, ExpectingNothingOrStepsInTheWrongOrderIsNoFault) {
  StepBins bins(1);
  bins.Expect(10, 3, kRows);
  bins.Expect(0, 5000, 0);
  bins.Expect(0, 0, kRows);
  const uint32_t rows[] = {0, 1, 2};
  const double values[] = {1, 2, 3};
  bins.Take(4, rows, values, kRows);
  EXPECT_EQ(bins.At(1, FloorDiv(4, bins.width())).high, 2);
}

}  // namespace
}  // namespace msprobe::view
