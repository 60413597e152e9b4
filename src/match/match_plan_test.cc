#include "match/match_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <random>
#include <string>

#include "json/writer.h"

namespace msprobe {
namespace {

using NameViews = std::vector<std::string_view>;

MatchPlan Match(const NameViews& target, const NameViews& golden, bool fuzzy = false, bool exact = false) {
  MatchOptions options;
  options.fuzzy = fuzzy;
  options.exact = exact;
  return MatchOps(target, golden, options);
}

TEST(MatchOpsTest, PairsForwardOpsByNameWhateverTheOrder) {
  const NameViews a = {"F.x.0.forward", "F.y.0.forward", "F.x.1.forward"};
  const NameViews b = {"F.y.0.forward", "F.x.1.forward", "F.z.0.forward"};
  const MatchPlan plan = Match(a, b);
  EXPECT_EQ(plan.golden_of, (std::vector<uint32_t>{kNoOp, 0, 1}));
  EXPECT_EQ(plan.golden_only, (std::vector<uint32_t>{2}));
  EXPECT_EQ(plan.matched, 2u);
  EXPECT_EQ(plan.target_only(), 1u);
}

TEST(MatchOpsTest, CountsBackwardCallsAnewInOrderOfAppearance) {
  // The target recomputed the forward, so its backward ops carry the numbers 2 and 1.
  const NameViews a = {"F.gelu.2.backward", "F.gelu.1.backward", "Module.m.M.backward.5"};
  const NameViews b = {"F.gelu.1.backward", "F.gelu.0.backward", "Module.m.M.backward.0"};
  EXPECT_EQ(Match(a, b).golden_of, (std::vector<uint32_t>{0, 1, 2}));
}

TEST(MatchOpsTest, BackwardWithoutANumberMatchesByName) {
  const NameViews a = {"F.x.backward", "F.y.backward"}, b = {"F.y.backward", "F.x.backward"};
  EXPECT_EQ(Match(a, b).golden_of, (std::vector<uint32_t>{1, 0}));
}

TEST(MatchOpsTest, ApiAndModuleOfOneNameStayApart) {
  const NameViews a = {"A.b.backward.0"}, b = {"A.b.0.backward"};
  EXPECT_EQ(Match(a, b).matched, 0u);
}

TEST(MatchOpsTest, ExactKeepsNames) {
  const NameViews a = {"x.2.backward"}, b = {"x.1.backward"};
  EXPECT_EQ(Match(a, b, false, true).matched, 0u);
  EXPECT_EQ(Match(a, b).matched, 1u);
}

TEST(MatchOpsTest, FuzzyIgnoresCallNumbersOfApisAndModules) {
  const NameViews a = {"F.linear.1.forward", "Module.fc.Linear.forward.4", "F.relu.7.forward", "F.relu.7.backward"};
  const NameViews b = {"F.linear.3.forward", "Module.fc.Linear.forward.0", "F.relu.0.forward", "F.relu.0.backward"};
  EXPECT_EQ(Match(a, b, true).golden_of, (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(Match(a, b).matched, 1u) << "only the backward call, which is counted anew";
}

TEST(MatchOpsTest, FuzzySkipsAnExtraOpAndGoesOn) {
  const NameViews a = {"F.add.0.forward", "F.mul.0.forward", "F.add.1.forward", "F.linear.0.forward",
                       "F.add.2.forward"};
  const NameViews b = {"F.add.0.forward", "F.mul.0.forward", "F.linear.0.forward", "F.add.1.forward"};
  const MatchPlan plan = Match(a, b, true);
  EXPECT_EQ(plan.golden_of, (std::vector<uint32_t>{0, 1, kNoOp, 2, 3}));
  EXPECT_TRUE(plan.golden_only.empty());
}

TEST(MatchOpsTest, FuzzyKeepsDirectionsApart) {
  const NameViews a = {"F.x.0.forward"}, b = {"F.x.0.backward"};
  EXPECT_EQ(Match(a, b, true).matched, 0u);
}

TEST(MatchOpsTest, EmptySides) {
  EXPECT_EQ(Match({}, {"a"}).golden_only.size(), 1u);
  EXPECT_EQ(Match({"a"}, {}, true).target_only(), 1u);
}

TEST(MatchOpsTest, PrintsAsJson) {
  const NameViews a = {"a\"b", "c"}, b = {"a\"b", "d"};
  JsonWriter json;
  WriteMatchPlan(&json, Match(a, b), a, b);
  EXPECT_EQ(
      json.Take(),
      R"({"how": "exact", "fuzzy": false, "matched": 1, "pairs": [["a\"b", "a\"b"]], "target_only": ["c"], "golden_only": ["d"]})");
}

/// Length of the longest common subsequence, by the textbook table.
size_t LongestCommon(const BigArray<uint32_t>& a, const BigArray<uint32_t>& b) {
  std::vector<std::vector<size_t>> t(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      t[i][j] = a[i - 1] == b[j - 1] ? t[i - 1][j - 1] + 1 : std::max(t[i - 1][j], t[i][j - 1]);
    }
  }
  return t[a.size()][b.size()];
}

void ExpectValid(const BigArray<uint32_t>& a, const BigArray<uint32_t>& b, const BigArray<IndexPair>& pairs) {
  for (size_t k = 0; k < pairs.size(); ++k) {
    ASSERT_LT(pairs[k].first, a.size());
    ASSERT_LT(pairs[k].second, b.size());
    EXPECT_EQ(a[pairs[k].first], b[pairs[k].second]);
    if (k == 0) continue;
    EXPECT_LT(pairs[k - 1].first, pairs[k].first);
    EXPECT_LT(pairs[k - 1].second, pairs[k].second);
  }
}

TEST(AlignSequencesTest, IsALongestCommonSubsequence) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    BigArray<uint32_t> a(random() % 30), b(random() % 30);
    for (auto& v : a) v = random() % 4;
    for (auto& v : b) v = random() % 4;
    const auto pairs = AlignSequences(a, b);
    ExpectValid(a, b, pairs);
    EXPECT_EQ(pairs.size(), LongestCommon(a, b));
  }
}

TEST(AlignSequencesTest, SmallWindowsStillGiveAValidAlignment) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    BigArray<uint32_t> a(random() % 40), b(random() % 40);
    for (auto& v : a) v = random() % 3;
    for (auto& v : b) v = random() % 3;
    ExpectValid(a, b, AlignSequences(a, b, 1 + random() % 3));
  }
}

TEST(AlignSequencesTest, CostStaysLinearForUnrelatedSequences) {
  const auto cost = [](size_t length) {
    std::mt19937 random(3);
    BigArray<uint32_t> a(length), b(length);
    for (auto& v : a) v = random() % 500;
    for (auto& v : b) v = random() % 500;
    const std::clock_t start = std::clock();  // of the processor: a busy machine is not a fault
    ExpectValid(a, b, AlignSequences(a, b));
    return static_cast<double>(std::clock() - start);
  };
  // How fast the machine is cancels out; quadratic would be sixteen times.
  EXPECT_LT(cost(20'000), 9 * cost(5'000));
}

/// What a plan must be, by the plainest means.
std::vector<uint32_t> PlainPartners(const NameViews& target, const NameViews& golden) {
  std::vector<uint32_t> out;
  for (const std::string_view name : target) {
    const auto it = std::find(golden.begin(), golden.end(), name);
    out.push_back(it == golden.end() ? kNoOp : static_cast<uint32_t>(it - golden.begin()));
  }
  return out;
}

TEST(MatchOpsTest, OrdersThatPartAtTheStartInTheMiddleAtTheEndOrNever) {
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) texts.push_back("F.x." + std::to_string(i) + ".forward");
  const NameViews all(texts.begin(), texts.end());
  for (const size_t at : {0, 1, 20, 38, 39, 40}) {
    NameViews golden = all;
    std::reverse(golden.begin() + static_cast<std::ptrdiff_t>(at), golden.end());
    EXPECT_EQ(Match(all, golden).golden_of, PlainPartners(all, golden)) << at;
    golden.erase(golden.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(at, 39)));
    const MatchPlan plan = Match(all, golden);
    EXPECT_EQ(plan.golden_of, PlainPartners(all, golden)) << at;
    EXPECT_EQ(plan.target_only(), 1u);
    EXPECT_EQ(Match(golden, all).golden_of, PlainPartners(golden, all)) << at;
  }
  EXPECT_EQ(Match(all, {}).target_only(), 40u);
  EXPECT_EQ(Match({}, all).golden_only.size(), 40u);
  EXPECT_EQ(Match({}, {}).matched, 0u);
}

TEST(MatchOpsTest, BackwardCallsAreCountedFromTheStartAlsoBehindAnEqualFront) {
  const NameViews a = {"F.x.1.backward", "F.a.0.forward", "F.x.5.backward", "F.x.backward.2"};
  const NameViews b = {"F.x.1.backward", "F.b.0.forward", "F.x.0.backward", "F.x.backward.7"};
  EXPECT_EQ(Match(a, b).golden_of, (std::vector<uint32_t>{0, kNoOp, 2, 3}));
}

TEST(MatchOpsTest, OfTwoOpsThatAreRenamedAlikeTheFirstHasThePartner) {
  const NameViews a = {"y", "x", "x"}, b = {"x", "y"};
  EXPECT_EQ(Match(a, b).golden_of, (std::vector<uint32_t>{1, 0, kNoOp}));
}

}  // namespace
}  // namespace msprobe
