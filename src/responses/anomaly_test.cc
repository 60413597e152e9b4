#include "responses/anomaly.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "responses/response_settings.h"

namespace msprobe {
namespace {

struct Response {
  std::vector<int64_t> tokens;
  std::vector<double> logprobs;

  explicit Response(size_t count) {
    uint64_t x = 1;
    for (size_t i = 0; i < count; ++i) {
      x = x * 6364136223846793005 + 1442695040888963407;
      tokens.push_back(static_cast<int64_t>(x >> 48));
      logprobs.push_back(-2.0 * static_cast<double>(x >> 40) / static_cast<double>(1 << 24));
    }
  }
  ResponseFinding Find() const {
    ResponseTokens r;
    r.tokens = tokens;
    r.positions = logprobs.size();
    r.candidates = 1;
    r.logprobs = logprobs;
    r.ids = tokens;
    return AnomalyDetector(ResponseLimits{}).Find(r);
  }
};

TEST(ResponseAnomalies, Healthy) {
  for (const size_t count : {0, 1, 63, 64, 65, 500}) EXPECT_EQ(Response(count).Find().anomaly, ResponseAnomaly::kNone);
}

TEST(ResponseAnomalies, WhatIsNoNumberHasItsPlace) {
  Response r(100);
  r.logprobs[70] = NAN;
  EXPECT_EQ(r.Find().anomaly, ResponseAnomaly::kNotNumbers);
  EXPECT_EQ(r.Find().position, 70);
}

TEST(ResponseAnomalies, RareAndGarbled) {
  Response r(300);
  r.logprobs[200] = -7;
  EXPECT_EQ(r.Find().anomaly, ResponseAnomaly::kRareCharacter);
  EXPECT_EQ(r.Find().position, 200);
  for (size_t i = 180; i < 280; ++i) r.logprobs[i] = -8;
  EXPECT_EQ(r.Find().anomaly, ResponseAnomaly::kGarbled);
}

TEST(ResponseAnomalies, Repetition) {
  Response r(900);
  for (size_t i = 100; i < r.tokens.size(); ++i) {
    r.tokens[i] = r.tokens[i % 9];
    r.logprobs[i] = i % 9 == 0 ? -0.15 : -0.001;
  }
  EXPECT_EQ(r.Find().anomaly, ResponseAnomaly::kRepetition);
}

}  // namespace
}  // namespace msprobe
