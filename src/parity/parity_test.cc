#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "parity/made_step.h"

namespace msprobe {
namespace {

using made::kTwoByTwo;
using made::Made;
using made::Sum;
using made::Times;
using made::Values;

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

TEST(Parity, APlacementThatSaysPartialIsReadAsASum) {
  Made made(2, {{"tp", {{0, 1}}}});
  const Values a = Made::Noise(16, 2), b = Made::Noise(16, 3), whole = Sum(a, b);
  double squares = 0;
  for (const float v : whole) squares += static_cast<double>(v) * v;
  for (int r = 0; r < 2; ++r) {
    made.Add(&made.rank(r), "gradient", "norm", {16}, r == 0 ? a : b);
    ParityEntry& entry = made.Entry(r, "gradient");
    entry.partial = {"tp"}, entry.whole = {16}, entry.boxes = {{{0}, {16}}};
    made.rank(r).numbers[{0, "norm"}] = {std::sqrt(squares)};
  }
  made.Add(&made.reference(), "gradient", "norm", {16}, whole);
  EXPECT_TRUE(JudgeParity(made.runs).findings.empty());
}

TEST(Parity, PartsOfAMeanAreNoReplicas) {
  Made made(2, {{"tp", {{0, 1}}}});
  const Values a = Made::Noise(16, 2), b = Made::Noise(16, 3);
  for (int r = 0; r < 2; ++r) {
    made.Add(&made.rank(r), "gradient", "norm", {16}, r == 0 ? a : b);
    ParityEntry& entry = made.Entry(r, "gradient");
    entry.mean = {"tp"}, entry.whole = {16}, entry.boxes = {{{0}, {16}}};
  }
  ParityResult result;
  JudgeLaws(made.runs, 0, &result);
  EXPECT_TRUE(result.findings.empty());
}

/// Two data-parallel ranks of two tensor-parallel ones; the model returns the mean loss of its own rows.
ParityFinding OwnLosses(float share, float behind) {
  Made made(4, kTwoByTwo);
  const Values rows = Made::Noise(32, 5);
  for (int r = 0; r < 4; ++r) {
    const auto first = rows.begin() + (r / 2) * 16;
    made.Add(&made.rank(r), "forward", "model#0", {}, {r < 2 ? 1.0F : 3.0F});
    made.Add(&made.rank(r), "backward", "model#0", {}, {share});
    made.Add(&made.rank(r), "backward", "norm#0", {2, 8}, Times(Values(first, first + 16), 2 * share * behind));
  }
  made.Add(&made.reference(), "forward", "model#0", {}, {2});
  made.Add(&made.reference(), "backward", "model#0", {}, {1});
  made.Add(&made.reference(), "backward", "norm#0", {4, 8}, rows);
  return made.First();
}

TEST(Parity, ALossThatTheModelReturnsIsEachRanksOwn) {
  EXPECT_EQ(OwnLosses(1, 1).phase, "");
  EXPECT_EQ(OwnLosses(0.5F, 1).phase, "");
  const ParityFinding twice = OwnLosses(1, 2);
  EXPECT_EQ(twice.name, "norm#0");
  EXPECT_EQ(twice.cause.kind, CauseKind::kReducedTwice);
}

TEST(Parity, TheGradientOfWhatAllRowsShareIsASumWhateverIsBehindIt) {
  Made made(2, {{"dp", {{0, 1}}}});
  const Values rows = Made::Noise(32, 5), a = Made::Noise(8, 6), b = Made::Noise(8, 7);
  for (int r = 0; r < 2; ++r) {
    const auto first = rows.begin() + r * 16;
    const float own = r == 0 ? 1.9F : 2.1F;  // by local token counts
    made.Add(&made.rank(r), "backward", "block#0", {2, 8}, Times(Values(first, first + 16), own));
    made.Add(&made.rank(r), "backward", "positions#0", {8}, Times(r == 0 ? a : b, own));
    made.Add(&made.rank(r), "backward", "words#0", {2, 8}, Made::Noise(16, static_cast<unsigned>(r + 20)));
  }
  made.Add(&made.reference(), "backward", "block#0", {4, 8}, rows);
  made.Add(&made.reference(), "backward", "positions#0", {8}, Sum(a, b));
  made.Add(&made.reference(), "backward", "words#0", {4, 8}, Made::Noise(32, 30));
  EXPECT_EQ(made.First().name, "words#0");
}

TEST(Parity, AStepOfAGradientThatIsRoundingAloneMayGoEitherWay) {
  const auto first = [](float off) {
    Made made(2, {{"dp", {{0, 1}}}});
    const Values before = Made::Noise(16, 2);
    Values gradient = Made::Noise(16, 3), other = gradient;
    gradient[5] = 1e-9F, other[5] = -1e-9F;
    const auto after = [&](const Values& g) {
      Values out = before;
      for (size_t e = 0; e < out.size(); ++e) out[e] -= g[e] > 0 ? 1e-2F : -1e-2F;
      return out;
    };
    for (int r = 0; r < 2; ++r) {
      made.Add(&made.rank(r), "parameter", "v", {16}, before);
      made.Add(&made.rank(r), "gradient", "v", {16}, other);
      Values updated = after(other);
      updated[7] += off;
      made.Add(&made.rank(r), "updated", "v", {16}, updated);
    }
    made.Add(&made.reference(), "parameter", "v", {16}, before);
    made.Add(&made.reference(), "gradient", "v", {16}, gradient);
    made.Add(&made.reference(), "updated", "v", {16}, after(gradient));
    return made.First();
  };
  EXPECT_EQ(first(0).phase, "");
  EXPECT_EQ(first(5e-3F).phase, "updated");
}

TEST(Parity, StagesWithOtherWeightsCannotBeCompared) {
  Made made(2, {{"pp", {{0, 1}}}});
  for (int i = 0; i < 4; ++i) {
    const std::string name = "layer" + std::to_string(i), bias = "bias" + std::to_string(i);
    const Values weight = Made::Noise(12, static_cast<unsigned>(i + 2));
    made.Add(&made.reference(), "parameter", name, {12}, weight);
    made.Add(&made.reference(), "parameter", bias, {12}, Values(12));
    made.Add(&made.rank(i / 2), "parameter", name, {12},
             i < 2 ? weight : Made::Noise(12, static_cast<unsigned>(i + 20)));
    made.Add(&made.rank(i / 2), "parameter", bias, {12}, Values(12));
  }
  const ParityResult result = JudgeParity(made.runs);
  ASSERT_TRUE(result.cannot_say.has_value());
  EXPECT_NE(result.cannot_say->English().find("could not be made equal on stage 1: 2 of 2"), std::string::npos);
}

TEST(Parity, AParameterIsNoReduction) {
  Made made(4, {{"dp", {{0, 1, 2, 3}}}});
  const Values weight = Made::Noise(12, 5);
  for (int r = 0; r < 4; ++r) {  // so little that half the sum of both is near to what it should be
    made.Add(&made.rank(r), "parameter", "norm", {12}, r == 1 ? Times(weight, 1.000002F) : weight);
  }
  made.Add(&made.reference(), "parameter", "norm", {12}, weight);
  const ParityFinding first = made.First();
  EXPECT_EQ(first.cause.kind, CauseKind::kReplicaDrift);
  EXPECT_EQ(first.cause.ranks, std::vector<int>{1});
}

TEST(Parity, ASecondNameOfATiedWeightIsACopyOfTheFirst) {
  for (const float off : {0.0F, 0.1F}) {
    Made made(2, {{"pp", {{0, 1}}}});
    const Values before = Made::Noise(12, 5), after = Made::Noise(12, 6);
    Values copy = after;
    copy[3] += off;
    made.Add(&made.rank(0), "parameter", "embed", {12}, before);
    made.Add(&made.rank(1), "parameter", "head", {12}, before);
    made.Add(&made.rank(0), "updated", "embed", {12}, after);
    made.Add(&made.rank(1), "updated", "head", {12}, copy);
    made.Add(&made.reference(), "parameter", "embed", {12}, before);
    made.Add(&made.reference(), "updated", "embed", {12}, after);
    const ParityResult result = JudgeParity(made.runs);
    EXPECT_TRUE(result.not_compared.find("only the ranks have it") == result.not_compared.end());
    EXPECT_EQ(result.findings.size(), off == 0 ? 0U : 1U);
  }
}

TEST(Parity, APartOfATiedWeightThatIsMissingIsNamed) {
  Made made(2, {{"pp", {{0, 1}}}});
  const Values a = Made::Noise(12, 5), b = Made::Noise(12, 6);
  made.Add(&made.rank(0), "gradient", "embed", {12}, a);
  made.Add(&made.rank(1), "gradient", "head", {12}, b);
  made.Add(&made.reference(), "gradient", "embed", {12}, Sum(a, b));
  const ParityFinding first = made.First();
  EXPECT_EQ(first.cause.kind, CauseKind::kPartialSum);
  EXPECT_EQ(first.cause.axis, "pp");
}

TEST(Parity, ASecondFaultBehindAnotherIsNamedByWhatItsReductionDoes) {
  Made made(2, {{"tp", {{0, 1}}}});
  for (int i = 0; i < 4; ++i) {
    const std::string name = "norm" + std::to_string(i);
    const Values own = Made::Noise(16, static_cast<unsigned>(i + 20));  // of other values than the reference has
    for (int r = 0; r < 2; ++r) {
      made.Add(&made.rank(r), "local", name, {16}, own);
      made.Add(&made.rank(r), "gradient", name, {16}, Times(own, i == 2 ? 2 : 1));
    }
    made.Add(&made.reference(), "gradient", name, {16}, Made::Noise(16, static_cast<unsigned>(i + 40)));
  }
  for (const ParityFinding& one : JudgeParity(made.runs).findings) {
    EXPECT_EQ(one.cause.kind == CauseKind::kReducedTwice, one.name == "norm2") << one.name;
  }
}

}  // namespace
}  // namespace msprobe
