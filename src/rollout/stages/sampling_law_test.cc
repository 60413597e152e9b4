#include "rollout/stages/sampling_law.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace msprobe {
namespace {

struct DrawnLogits {
  std::vector<std::vector<float>> logits;
  std::vector<SamplingToken> tokens;
};

/// Tokens drawn from a small vocabulary, recorded as the law has it.
DrawnLogits Drawn(const SamplingLaw& law, double noise = 0) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  DrawnLogits out;
  for (int t = 0; t < 60; ++t) {
    std::vector<float>& row = out.logits.emplace_back(50);
    for (float& z : row) z = 2 * normal(random);
  }
  for (const std::vector<float>& row : out.logits) {
    std::vector<double> probabilities;
    for (int64_t w = 0; w < 50; ++w) probabilities.push_back(std::exp(LogProbability(law, row, w)));
    std::discrete_distribution<int64_t> draw(probabilities.begin(), probabilities.end());
    const int64_t token = draw(random);
    out.tokens.push_back({row, token, LogProbability(law, row, token) + noise * normal(random)});
  }
  return out;
}

TEST(SamplingLaw, ProbabilitiesAddUp) {
  const DrawnLogits drawn = Drawn({});
  for (const SamplingLaw& law : {SamplingLaw{}, SamplingLaw{.temperature = 0.6}, SamplingLaw{.top_k = 5},
                                 SamplingLaw{.temperature = 0.8, .top_p = 0.7}, SamplingLaw{.min_p = 0.1}}) {
    double sum = 0;
    for (int64_t w = 0; w < 50; ++w) sum += std::exp(LogProbability(law, drawn.logits[0], w));
    EXPECT_NEAR(sum, 1, 1e-9) << law.Kind();
  }
}

TEST(SamplingLaw, FindsTheLawThatWasUsed) {
  for (const SamplingLaw& law : {SamplingLaw{}, SamplingLaw{.temperature = 0.7}, SamplingLaw{.temperature = 1.3},
                                 SamplingLaw{.after = 0.7}, SamplingLaw{.top_k = 12}, SamplingLaw{.top_p = 0.9}}) {
    const LawFit fit = FitLaw(Drawn(law).tokens, {});
    EXPECT_TRUE(fit.within_rounding) << law.Kind();
    EXPECT_EQ(fit.law.Kind(), law.Kind());
    EXPECT_NEAR(fit.law.temperature, law.temperature, 0.01);
    EXPECT_EQ(fit.law.top_k, law.top_k);
    EXPECT_NEAR(fit.law.top_p, law.top_p, 0.02);
  }
}

TEST(SamplingLaw, HintsNameLawsOfSeveralParts) {
  const SamplingLaw law{.temperature = 0.8, .top_k = 20, .top_p = 0.95};
  const LawFit fit = FitLaw(Drawn(law).tokens, {.temperature = 0.8, .top_p = 0.95, .top_k = 20, .min_p = {}});
  EXPECT_TRUE(fit.within_rounding);
  EXPECT_EQ(fit.law, law);
}

TEST(SamplingLaw, AnotherForwardIsNearerToTheLawThatWasUsed) {
  const SamplingLaw raw, told{.temperature = 0.5};
  for (const SamplingLaw& law : {raw, told}) {
    const DrawnLogits drawn = Drawn(law, 0.6);
    const SamplingLaw& other = law == raw ? told : raw;
    EXPECT_GT(PreferenceOf(law, other, drawn.tokens), 2) << law.Kind();
    EXPECT_LT(PreferenceOf(other, law, drawn.tokens), -2) << law.Kind();
    const LawFit fit = FitLaw(drawn.tokens, {.temperature = 0.5, .top_p = {}, .top_k = {}, .min_p = {}});
    EXPECT_FALSE(fit.within_rounding);
    EXPECT_GT(fit.residual, 0.25 * fit.spread);
  }
}

TEST(SamplingLaw, NoiseIsNoLaw) {
  const LawFit fit = FitLaw(Drawn({}, 0.05).tokens, {.temperature = 0.7, .top_p = 0.9, .top_k = {}, .min_p = {}});
  EXPECT_TRUE(fit.law.IsRaw());
}

}  // namespace
}  // namespace msprobe
