#include "judge/loss_climb.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace msprobe {
namespace {

std::optional<Change> Climbs(int64_t steps, double noise, const std::function<double(int64_t)>& loss) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  LossClimb climb;
  for (int64_t step = 0; step < steps; ++step) {
    if (auto change = climb.Add(step, loss(step) * std::exp(noise * normal(random)), 6.2)) return change;
  }
  return std::nullopt;
}

double Learned(int64_t step) { return 0.5 + 2 * std::exp(-static_cast<double>(step) / 30); }

TEST(LossClimb, HalfAPercentAStepIsToldBeforeTheLossIsTwiceAsLarge) {
  for (const double noise : {0.0, 0.02, 0.05}) {
    const auto change =
        Climbs(700, noise, [](int64_t s) { return Learned(s) * std::pow(1.005, std::max<int64_t>(s - 400, 0)); });
    ASSERT_TRUE(change) << noise;
    EXPECT_EQ(change->detector, Detector::kTrend);
    EXPECT_NEAR(static_cast<double>(change->onset), 405, 20) << noise;
    EXPECT_LT(change->after / change->before, 2) << noise;
  }
}

TEST(LossClimb, WhatAHealthyLossDoesIsNone) {
  const auto none = [](double noise, const std::function<double(int64_t)>& loss) {
    return !Climbs(1500, noise, loss).has_value();
  };
  EXPECT_TRUE(none(0.05, Learned));
  EXPECT_TRUE(none(0.3, Learned));
  // Stairs: other data, harder from stage to stage.
  EXPECT_TRUE(none(0.02, [](int64_t s) { return Learned(s) * (s < 400 ? 1 : s < 460 ? 1.4 : 2); }));
  // A saw, as within each epoch.
  EXPECT_TRUE(none(0.02, [](int64_t s) { return Learned(s) * (1 + 0.5 * static_cast<double>(s % 60) / 60); }));
  // It grows from its first steps on, as a penalty that is faded in.
  EXPECT_TRUE(none(0.05, [](int64_t s) { return 0.01 + 1e-3 * static_cast<double>(s); }));
  EXPECT_TRUE(none(0, [](int64_t) { return -1.0; }));
}

}  // namespace
}  // namespace msprobe
