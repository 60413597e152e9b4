#include <gtest/gtest.h>

#include <cmath>

#include "parity/made_step.h"

namespace msprobe {
namespace {

using made::kTwoByTwo;
using made::Made;
using made::Values;

TEST(Parity, WhatTheNormCountsTooOftenIsNamed) {
  Made made(2, {{"tp", {{0, 1}}}});
  const Values replica = Made::Noise(16, 2), a = Made::Noise(16, 3), b = Made::Noise(16, 4);
  Values whole = a;
  whole.insert(whole.end(), b.begin(), b.end());
  double squares = 0, alike = 0;
  for (const float v : whole) squares += static_cast<double>(v) * v;
  for (const float v : replica) alike += static_cast<double>(v) * v;
  for (int r = 0; r < 2; ++r) {
    made.Add(&made.rank(r), "gradient", "norm", {16}, replica);
    made.Add(&made.rank(r), "gradient", "up", {4, 4}, r == 0 ? a : b);
    made.rank(r).numbers[{0, "norm"}] = {std::sqrt(squares + 2 * alike)};
  }
  made.Add(&made.reference(), "gradient", "norm", {16}, replica);
  made.Add(&made.reference(), "gradient", "up", {8, 4}, whole);
  const ParityFinding first = made.First();
  EXPECT_EQ(first.cause.kind, CauseKind::kNorm);
  EXPECT_NE(first.cause.text.English().find("what the ranks of tp hold alike is counted 2 times"), std::string::npos);
}

TEST(Parity, ADistributedOptimizerKeepsARangeOfEachGradient) {
  Made made(2, {{"dp", {{0, 1}}}});
  const Values whole = Made::Noise(16, 3);
  double squares = 0;
  for (const float v : whole) squares += static_cast<double>(v) * v;
  for (int r = 0; r < 2; ++r) {
    made.Add(&made.rank(r), "gradient", "v", {16}, whole);
    made.rank(r).phases[{0, "gradient"}].entries.back().valid = {r * 6, r == 0 ? 6 : 16};
    made.rank(r).numbers[{0, "norm"}] = {std::sqrt(squares)};
  }
  made.Add(&made.reference(), "gradient", "v", {16}, whole);
  EXPECT_TRUE(JudgeParity(made.runs).findings.empty());
}

TEST(Parity, AShardThatOnlyOneRankCountsIsNamed) {
  Made made(2, {{"tp", {{0, 1}}}});
  const Values a = Made::Noise(8, 3), b = Made::Noise(8, 4), rest = Made::Noise(16, 5);
  Values whole = a;
  whole.insert(whole.end(), b.begin(), b.end());
  double counted = 0;
  for (const Values* one : {&a, &rest}) {
    for (const float v : *one) counted += static_cast<double>(v) * v;
  }
  for (int r = 0; r < 2; ++r) {
    made.Add(&made.rank(r), "gradient", "sinks", {8}, r == 0 ? a : b);
    made.Add(&made.rank(r), "gradient", "norm", {16}, rest);
    made.rank(r).numbers[{0, "norm"}] = {std::sqrt(counted)};
  }
  made.Add(&made.reference(), "gradient", "sinks", {16}, whole);
  made.Add(&made.reference(), "gradient", "norm", {16}, rest);
  EXPECT_NE(made.First().cause.text.English().find("of sinks the part of rank 0 alone is counted"), std::string::npos);
}

TEST(Parity, WithoutAReferenceReplicasStayEqualInEveryBit) {
  Made made(4, {{"dp", {{0, 1, 2, 3}}}});
  made.runs.reference.clear();
  Values after = Made::Noise(12, 5);
  for (int r = 0; r < 4; ++r) {
    if (r == 2) after[3] = std::nextafter(after[3], 10.0F);
    made.Add(&made.rank(r), "updated", "w", {3, 4}, after);
    if (r == 2) after[3] = std::nextafter(after[3], -10.0F);
  }
  const ParityFinding first = made.First();
  EXPECT_EQ(first.cause.kind, CauseKind::kReplicaDrift);
  EXPECT_EQ(first.cause.ranks, std::vector<int>{2});
}

TEST(Parity, WhatAWrapperKeepsAlikeIsAReplicaThoughItBeganDifferently) {
  Made made(4, kTwoByTwo);
  made.runs.reference.clear();
  for (int r = 0; r < 4; ++r) {  // tensor-parallel ranks differ, as shards do; rank 3 has drifted from rank 1
    made.Add(&made.rank(r), "parameter", "head", {20}, Made::Noise(20, static_cast<unsigned>(r == 3 ? 9 : 10 + r % 2)));
    made.Entry(r, "parameter").replica = {"dp"};
  }
  const ParityFinding first = made.First();
  EXPECT_EQ(first.name, "head");
  EXPECT_EQ(first.cause.kind, CauseKind::kReplicaDrift);
  EXPECT_EQ(first.cause.ranks, (std::vector<int>{1, 3}));
}

TEST(Parity, WhatGetsOneGradientIsOneParameter) {
  Made made(2, {{"dp", {{0, 1}}}});
  made.runs.reference.clear();
  for (int r = 0; r < 2; ++r) {
    made.Add(&made.rank(r), "parameter", "head", {20}, Made::Noise(20, static_cast<unsigned>(r + 2)));
    made.Add(&made.rank(r), "parameter", "other", {20}, Made::Noise(20, static_cast<unsigned>(r + 4)));
    made.Add(&made.rank(r), "gradient", "head", {20}, Made::Noise(20, 7));
  }
  const ParityResult result = JudgeParity(made.runs);
  ASSERT_EQ(result.findings.size(), 1U);
  EXPECT_EQ(result.findings.front().name, "head");
  EXPECT_EQ(result.laws.unknown, 1U);
  EXPECT_EQ(result.not_compared.begin()->second, std::vector<std::string>{"parameter other"});
}

TEST(Parity, WhatIsMarkedAsSplitAndIsWholeCountsTwiceInTheNorm) {
  for (const bool declared : {true, false}) {
    Made made(2, {{"tp", {{0, 1}}}});
    const Values norm = Made::Noise(16, 2), rest = Made::Noise(16, 3);
    double squares = 0;
    for (const float v : norm) squares += 2.0 * v * v;
    for (const float v : rest) squares += static_cast<double>(v) * v;
    for (int r = 0; r < 2; ++r) {
      made.Add(&made.rank(r), "gradient", "rest", {16}, rest);
      made.Add(&made.rank(r), "gradient", "norm", {16}, norm);
      ParityEntry& entry = made.Entry(r, "gradient");
      if (declared) {
        entry.whole = {32}, entry.boxes = {{{r * 16}, {16}}};
      } else {
        entry.unknown = "tp";
      }
      made.rank(r).numbers[{0, "norm"}] = {std::sqrt(squares)};
    }
    made.Add(&made.reference(), "gradient", "rest", {16}, rest);
    made.Add(&made.reference(), "gradient", "norm", {16}, norm);
    const ParityFinding first = made.First();
    EXPECT_EQ(first.name, "norm");
    EXPECT_EQ(first.cause.kind, CauseKind::kNorm);
    EXPECT_NE(first.cause.text.English().find("marked as split"), std::string::npos);
  }
}

TEST(Parity, WhatFailedWhileItLookedIsNoEquality) {
  Made made(2, {{"dp", {{0, 1}}}});
  made.rank(1).lost = {"look_at_parameters"};
  EXPECT_TRUE(JudgeParity(made.runs).cannot_say.has_value());
}

}  // namespace
}  // namespace msprobe
