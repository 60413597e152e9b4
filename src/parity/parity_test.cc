#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <deque>
#include <random>

#include "parity/judge.h"

namespace msprobe {
namespace {

using Values = std::vector<float>;

/// A step that is made up: tensors are kept as long as the runs.
class Made {
 public:
  ParityRuns runs;

  Made(int ranks, std::map<std::string, std::vector<std::vector<int>>> axes) {
    for (int r = 0; r < ranks; ++r) {
      ParityRank& rank = runs.ranks.emplace_back();
      rank.rank = r, rank.world = ranks, rank.steps = 1;
      for (const auto& [axis, groups] : axes) {
        for (const auto& group : groups) {
          if (std::find(group.begin(), group.end(), r) != group.end()) rank.axes[axis] = group;
        }
      }
    }
    runs.reference.emplace_back().steps = 1;
    // Something that is the same everywhere.
    const Values weight = Noise(12);
    for (ParityRank& rank : runs.ranks) Add(&rank, "parameter", "w", {3, 4}, weight);
    Add(&runs.reference.front(), "parameter", "w", {3, 4}, weight);
  }

  static Values Noise(size_t count, unsigned seed = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    Values out(count);
    for (float& value : out) value = normal(random);
    return out;
  }

  void Add(ParityRank* rank, const std::string& phase, const std::string& name, std::vector<int64_t> shape,
           Values values) {
    kept_.push_back(std::move(values));
    ParityEntry entry;
    entry.name = name, entry.dtype = DType::kFloat32, entry.shape = std::move(shape);
    entry.data = reinterpret_cast<const char*>(kept_.back().data());
    ParityPhase& to = rank->phases[{0, phase}];
    to.by_name.emplace(name, to.entries.size());
    to.entries.push_back(std::move(entry));
  }

  ParityRank& rank(int number) { return runs.ranks[static_cast<size_t>(number)]; }
  ParityRank& reference() { return runs.reference.front(); }

  ParityFinding First() {
    const ParityResult result = JudgeParity(runs);
    return result.findings.empty() ? ParityFinding{} : result.findings.front();
  }

 private:
  std::deque<Values> kept_;
};

Values Times(Values values, float factor) {
  for (float& value : values) value *= factor;
  return values;
}

Values Sum(Values a, const Values& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

const std::map<std::string, std::vector<std::vector<int>>> kTwoByTwo{{"tp", {{0, 1}, {2, 3}}},
                                                                     {"dp", {{0, 2}, {1, 3}}}};

TEST(Parity, AGradientOfEachRankThatIsAveragedIsEqual) {
  Made made(2, {{"dp", {{0, 1}}}});
  const Values a = Made::Noise(12, 2), b = Made::Noise(12, 3), mean = Times(Sum(a, b), 0.5F);
  for (int r = 0; r < 2; ++r) {
    made.Add(&made.rank(r), "local", "w", {3, 4}, r == 0 ? a : b);
    made.Add(&made.rank(r), "gradient", "w", {3, 4}, mean);
  }
  made.Add(&made.reference(), "gradient", "w", {3, 4}, mean);
  EXPECT_TRUE(JudgeParity(made.runs).findings.empty());
}

/// What rank 0 to 3 get of gradients a to d, where the reference has their mean.
ParityFinding Reduced(const std::array<std::array<float, 4>, 4>& weights, std::array<float, 4> counts = {1, 1, 1, 1}) {
  Made made(4, {{"dp", {{0, 1, 2, 3}}}, {"tp", {{0}, {1}, {2}, {3}}}, {"half", {{0, 1}, {2, 3}}}});
  const float total = counts[0] + counts[1] + counts[2] + counts[3];
  Values mean(12);
  std::vector<Values> each;
  for (int r = 0; r < 4; ++r) {
    each.push_back(Made::Noise(12, static_cast<unsigned>(10 + r)));
    mean = Sum(mean, Times(each.back(), counts[static_cast<size_t>(r)] / total));
  }
  for (int r = 0; r < 4; ++r) {
    Values got(12);
    for (size_t i = 0; i < 4; ++i) got = Sum(got, Times(each[i], weights[static_cast<size_t>(r)][i]));
    made.Add(&made.rank(r), "local", "w", {3, 4}, each[static_cast<size_t>(r)]);
    made.Add(&made.rank(r), "gradient", "w", {3, 4}, got);
  }
  made.Add(&made.reference(), "gradient", "w", {3, 4}, mean);
  return made.First();
}

TEST(Parity, HowAGradientWasReducedIsSolvedFor) {
  using Row = std::array<float, 4>;
  const Row all{.25, .25, .25, .25};
  EXPECT_EQ(Reduced({Row{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}).cause.kind, CauseKind::kPartialSum);
  const ParityFinding wrong = Reduced({Row{.5, .5, 0, 0}, {.5, .5, 0, 0}, {0, 0, .5, .5}, {0, 0, .5, .5}});
  EXPECT_EQ(wrong.cause.kind, CauseKind::kWrongGroup);
  EXPECT_EQ(wrong.cause.text.English(),
            "reduced over the wrong group: rank 0 has the gradients of half [0, 1] instead of dp [0, 1, 2, 3]");
  EXPECT_EQ(Reduced({Row{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}}).cause.kind, CauseKind::kSumForMean);
  const Row sixteenth{.0625, .0625, .0625, .0625};
  EXPECT_EQ(Reduced({sixteenth, sixteenth, sixteenth, sixteenth}).cause.kind, CauseKind::kMeanForSum);
  EXPECT_EQ(Reduced({all, all, all, all}, {1, 2, 3, 4}).cause.kind, CauseKind::kLocalTokens);
  EXPECT_EQ(Reduced({all, all, all, all}).phase, "");
  const Row heavy{.25, .25, .5, .25};
  const ParityFinding one = Reduced({heavy, heavy, heavy, heavy});
  EXPECT_EQ(one.cause.text.English(), "ranks [2] bring 2 times their part into the reduction over dp [0, 1, 2, 3]");
}

TEST(Parity, ASummandIsNoFaultUntilItIsUsed) {
  for (const bool reduced : {true, false}) {
    Made made(2, {{"tp", {{0, 1}}}});
    const Values a = Made::Noise(64, 2), b = Made::Noise(64, 3), x = Made::Noise(64, 4);
    for (int r = 0; r < 2; ++r) {
      const Values& own = r == 0 ? a : b;
      made.Add(&made.rank(r), "forward", "down#0", {8, 8}, own);
      made.Add(&made.rank(r), "forward", "block#0", {8, 8}, Sum(x, reduced ? Sum(a, b) : own));
    }
    made.Add(&made.reference(), "forward", "down#0", {8, 8}, Sum(a, b));
    made.Add(&made.reference(), "forward", "block#0", {8, 8}, Sum(x, Sum(a, b)));
    const ParityFinding first = made.First();
    EXPECT_EQ(first.name, reduced ? "" : "down#0");
    if (!reduced) EXPECT_EQ(first.cause.kind, CauseKind::kPartialSum);
  }
}

TEST(Parity, ABiasBehindTheReductionHidesNoFactor) {
  const Values bias = Made::Noise(8, 9);
  const auto with_bias = [&](Values values) {
    for (size_t i = 0; i < values.size(); ++i) values[i] += bias[i % 8];
    return values;
  };
  const auto cause_of = [&](const Values& first, const Values& second, const Values& whole) {
    Made made(2, {{"tp", {{0, 1}}}});
    made.Add(&made.rank(0), "forward", "down#0", {8, 8}, first);
    made.Add(&made.rank(1), "forward", "down#0", {8, 8}, second);
    made.Add(&made.reference(), "forward", "down#0", {8, 8}, whole);
    return made.First().cause.kind;
  };
  const Values a = Made::Noise(64, 2), b = Made::Noise(64, 3), sum = Sum(a, b), whole = with_bias(sum);
  EXPECT_EQ(cause_of(with_bias(a), with_bias(b), whole), CauseKind::kPartialSum);
  const Values twice = with_bias(Times(sum, 2)), mean = with_bias(Times(sum, 0.5F)), often = with_bias(whole);
  EXPECT_EQ(cause_of(twice, twice, whole), CauseKind::kReducedTwice);
  EXPECT_EQ(cause_of(mean, mean, whole), CauseKind::kMeanForSum);
  EXPECT_EQ(cause_of(often, often, whole), CauseKind::kReducedTwice);
}

TEST(Parity, PartsOfRowsAndColumnsAreFoundBySizes) {
  Made made(4, kTwoByTwo);
  Values whole(32);
  for (size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<float>(i * i);
  for (int r = 0; r < 4; ++r) {
    const int tp = r % 2, dp = r / 2;
    Values part;
    for (int row = 0; row < 2; ++row) {
      for (int column = 0; column < 4; ++column)
        part.push_back(whole[static_cast<size_t>((dp * 2 + row) * 8 + tp * 4 + column)]);
    }
    made.Add(&made.rank(r), "forward", "up#0", {2, 4}, part);
  }
  made.Add(&made.reference(), "forward", "up#0", {4, 8}, whole);
  const ParityResult result = JudgeParity(made.runs);
  EXPECT_TRUE(result.findings.empty());
  const auto row =
      std::find_if(result.rows.begin(), result.rows.end(), [](const ParityRow& r) { return r.name == "up#0"; });
  ASSERT_NE(row, result.rows.end());
  EXPECT_EQ(row->mapping, "dp splits dim 0, tp splits dim 1");
  EXPECT_EQ(row->kind, PartsKind::kBitEqual);
}

TEST(Parity, OfMappingsThatTheSizesAllowTheNearestCounts) {
  Made made(4, kTwoByTwo);
  const Values whole = Made::Noise(64, 2);
  for (int r = 0; r < 4; ++r) {  // data parallelism divides the rows; each tensor-parallel rank has twice the sum
    const auto first = whole.begin() + (r / 2) * 32;
    made.Add(&made.rank(r), "forward", "down#0", {4, 8}, Times(Values(first, first + 32), 2));
  }
  made.Add(&made.reference(), "forward", "down#0", {8, 8}, whole);
  const ParityFinding first = made.First();
  EXPECT_EQ(first.cause.kind, CauseKind::kReducedTwice);
  EXPECT_EQ(first.cause.axis, "tp");
}

TEST(Parity, RowsThatWereJoinedWithTheSequenceAreFound) {
  Made made(2, {{"dp", {{0, 1}}}});
  const Values whole = Made::Noise(64, 2);  // 4 of the sequence times 4 rows, of which each rank has 2
  for (int r = 0; r < 2; ++r) {
    Values part;
    for (int s = 0; s < 4; ++s) {
      const auto first = whole.begin() + (s * 4 + r * 2) * 4;
      part.insert(part.end(), first, first + 8);
    }
    made.Add(&made.rank(r), "forward", "router#0", {8, 4}, part);
  }
  made.Add(&made.reference(), "forward", "router#0", {16, 4}, whole);
  EXPECT_TRUE(JudgeParity(made.runs).findings.empty());
}

TEST(Parity, ExchangedPartsAreNamed) {
  Made made(2, {{"tp", {{0, 1}}}});
  const Values a = Made::Noise(16, 2), b = Made::Noise(16, 3);
  Values whole = a;
  whole.insert(whole.end(), b.begin(), b.end());
  made.Add(&made.rank(0), "parameter", "v", {4, 4}, b);
  made.Add(&made.rank(1), "parameter", "v", {4, 4}, a);
  made.Add(&made.reference(), "parameter", "v", {8, 4}, whole);
  EXPECT_EQ(made.First().cause.kind, CauseKind::kShardExchanged);
}

TEST(Parity, AnExchangedGradientIsNoReduction) {
  Made made(2, {{"tp", {{0, 1}}}, {"cp", {{0}, {1}}}});
  const Values a = Made::Noise(16, 2), b = Made::Noise(16, 3);
  Values whole = a;
  whole.insert(whole.end(), b.begin(), b.end());
  for (int r = 0; r < 2; ++r) {
    made.Add(&made.rank(r), "local", "v", {4, 4}, r == 0 ? a : b);
    made.Add(&made.rank(r), "gradient", "v", {4, 4}, r == 0 ? b : a);
  }
  made.Add(&made.reference(), "gradient", "v", {8, 4}, whole);
  EXPECT_EQ(made.First().cause.kind, CauseKind::kShardExchanged);
}

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

TEST(Parity, OtherWeightsAreNoFault) {
  Made made(2, {{"dp", {{0, 1}}}});
  for (int i = 0; i < 3; ++i) {
    const std::string name = "v" + std::to_string(i);
    for (int r = 0; r < 2; ++r)
      made.Add(&made.rank(r), "parameter", name, {12}, Made::Noise(12, static_cast<unsigned>(i + 2)));
    made.Add(&made.reference(), "parameter", name, {12}, Made::Noise(12, static_cast<unsigned>(i + 20)));
  }
  const ParityResult result = JudgeParity(made.runs);
  EXPECT_TRUE(result.cannot_say.has_value());
  EXPECT_TRUE(result.findings.empty());
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

}  // namespace
}  // namespace msprobe
