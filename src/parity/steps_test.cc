#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "parity/apart.h"
#include "parity/certificate.h"
#include "parity/made_step.h"

namespace msprobe {
namespace {

using made::kTwoByTwo;
using made::Made;
using made::Sum;
using made::Times;
using made::Values;

/// Two steps; one element of the gradient is rounding alone, so that its step goes either way.
ParityResult TwoSteps(float behind) {
  Made made(2, {{"dp", {{0, 1}}}});
  const Values before = Made::Noise(16, 2);
  Values gradient = Made::Noise(16, 3), other = gradient;
  gradient[5] = 1e-9F, other[5] = -1e-9F;
  const auto after = [](Values values, const Values& g) {
    for (size_t e = 0; e < values.size(); ++e) values[e] -= g[e] > 0 ? 1e-2F : -1e-2F;
    return values;
  };
  Values own = before, golden = before;
  for (made.step = 0; made.step < 2; ++made.step) {
    for (int r = 0; r < 2; ++r) {
      made.Add(&made.rank(r), "parameter", "v", {16}, own);
      made.Add(&made.rank(r), "gradient", "v", {16}, other);
      made.Add(&made.rank(r), "updated", "v", {16}, after(own, other));
      made.rank(r).steps = 2;
    }
    made.Add(&made.reference(), "parameter", "v", {16}, golden);
    made.Add(&made.reference(), "gradient", "v", {16}, gradient);
    made.Add(&made.reference(), "updated", "v", {16}, after(golden, gradient));
    own = after(own, other), golden = after(golden, gradient);
    own[7] += behind;
  }
  return JudgeParity(made.runs);
}

TEST(Parity, WhatAStepWasExcusedForIsExcusedBeforeTheNext) {
  const ParityResult right = TwoSteps(0);
  EXPECT_TRUE(right.findings.empty());
  const auto row = std::find_if(right.rows.begin(), right.rows.end(), [](const ParityRow& one) {
    return one.step == 1 && one.phase == "parameter" && one.name == "v";
  });
  ASSERT_NE(row, right.rows.end());
  EXPECT_EQ(row->kind, PartsKind::kEqual);
  EXPECT_LE(row->error, row->bound);
  const ParityResult changed = TwoSteps(1e-3F);  // between the steps
  ASSERT_FALSE(changed.findings.empty());
  EXPECT_EQ(changed.findings.front().phase, "parameter");
  EXPECT_EQ(changed.findings.front().step, 1);
}

TEST(Parity, AFactorIsNeverToldAsOne) {
  Made made(4, {{"dp", {{0, 1, 2, 3}}}});
  const Values weight = Made::Noise(64, 5);
  for (int r = 0; r < 4; ++r) {
    Values own = weight;
    if (r == 1) own = Times(own, 1.000003F);
    if (r == 2) own[3] += 3e-5F;
    made.Add(&made.rank(r), "parameter", "v", {64}, own);
  }
  made.Add(&made.reference(), "parameter", "v", {64}, weight);
  for (const ParityFinding& one : JudgeParity(made.runs).findings) {
    EXPECT_EQ(one.cause.text.English().find("1 times"), std::string::npos) << one.cause.text.English();
    EXPECT_EQ(one.cause.kind, CauseKind::kReplicaDrift);
  }
}

/// Four micro batches of the ranks, one of the reference; gradients by this factor.
ParityResult Pipelined(std::array<float, 4> losses, float factor) {
  Made made(2, {{"pp", {{0, 1}}}});
  for (size_t i = 0; i < losses.size(); ++i)
    made.Add(&made.rank(1), "loss", "loss#" + std::to_string(i), {}, {losses[i]});
  made.Add(&made.reference(), "loss", "loss#0", {}, {2.5F});
  const Values early = Made::Noise(12, 5), late = Made::Noise(12, 6);
  made.Add(&made.rank(0), "gradient", "layers.0.weight", {12}, Times(early, factor));
  made.Add(&made.rank(1), "gradient", "layers.1.weight", {12}, late);
  made.Add(&made.reference(), "gradient", "layers.0.weight", {12}, early);
  made.Add(&made.reference(), "gradient", "layers.1.weight", {12}, late);
  return JudgeParity(made.runs);
}

TEST(Parity, MicroBatchesOfTheRanksAloneAreOneLoss) {
  EXPECT_TRUE(Pipelined({1, 2, 3, 4}, 1).findings.empty());
  EXPECT_TRUE(Pipelined({.25F, .5F, .75F, 1}, 1).findings.empty());  // each divided by their number
  const ParityResult other = Pipelined({1, 2, 3, 5}, 1);
  EXPECT_TRUE(other.findings.empty());
  EXPECT_TRUE(other.not_compared.contains("the reference has another number of micro batches"));
  const ParityResult wrong = Pipelined({1, 2, 3, 4}, 4);
  ASSERT_EQ(wrong.findings.size(), 1U);
  EXPECT_EQ(wrong.findings.front().name, "layers.0.weight");
  EXPECT_EQ(wrong.findings.front().cause.text.English(), "scaled by 4: 4 micro batches");
}

TEST(Parity, TheRowOfALossHasTheBoundThatItWasHeldTo) {
  Made made(2, {{"dp", {{0, 1}}}});
  for (int r = 0; r < 2; ++r) made.Add(&made.rank(r), "loss", "loss#0", {}, {r == 0 ? 2.0F : 4.0F});
  made.Add(&made.reference(), "loss", "loss#0", {}, {3.1F});
  const ParityResult result = JudgeParity(made.runs);
  const ParityRow& row = result.rows.back();
  EXPECT_EQ(row.name, "loss#0");
  EXPECT_EQ(row.kind, PartsKind::kEqual);
  EXPECT_LE(row.error, row.bound);
}

TEST(Parity, TheErrorThatIsToldIsBeyondItsBound) {
  PartsComparison found;
  found.errors = {0.1, 0.02, 0.03}, found.bounds = {0.2, 0.01, 0.01};
  EXPECT_EQ(found.worst(), 0.03);
  EXPECT_EQ(found.bound(), 0.01);
  found.bounds = {0.2, 0.2, 0.1};
  EXPECT_EQ(found.worst(), 0.1);
  EXPECT_EQ(found.bound(), 0.2);
}

TEST(Parity, AStepThatTheReferenceDoesNotMakeIsJudgedBySize) {
  for (const float step : {1e-7F, 1e-2F}) {
    Made made(2, {{"dp", {{0, 1}}}});
    Values before(16, 1.0F), after = before;
    after[3] += step;
    for (int r = 0; r < 2; ++r) {
      made.Add(&made.rank(r), "parameter", "v", {16}, before);
      made.Add(&made.rank(r), "updated", "v", {16}, after);
    }
    made.Add(&made.reference(), "parameter", "v", {16}, before);
    made.Add(&made.reference(), "updated", "v", {16}, before);
    const ParityFinding first = made.First();
    EXPECT_EQ(first.phase, step > 1e-3F ? "updated" : "");
    EXPECT_EQ(first.cause.text.English().find("inf"), std::string::npos);
  }
}

TEST(Parity, AFactorOfAllGradientsIsOfNoParameter) {
  for (const bool clips : {true, false}) {
    Made made(2, {{"tp", {{0, 1}}}});
    for (unsigned i = 0; i < 5; ++i) {
      const std::string name = "layers." + std::to_string(i);
      const Values local = Made::Noise(16, i + 2), golden = Times(local, clips ? 0.25F : 1);
      for (int r = 0; r < 2; ++r) {
        made.Add(&made.rank(r), "local", name, {16}, local);
        made.Add(&made.rank(r), "gradient", name, {16}, Times(golden, 0.98F));
      }
      made.Add(&made.reference(), "local", name, {16}, local);
      made.Add(&made.reference(), "gradient", name, {16}, golden);
    }
    const ParityResult result = JudgeParity(made.runs);
    ASSERT_FALSE(result.findings.empty());
    const ParityFinding& first = result.findings.front();
    EXPECT_EQ(first.phase, clips ? "norm" : "gradient");
    EXPECT_EQ(first.cause.kind, clips ? CauseKind::kNorm : CauseKind::kScaled);
    EXPECT_NE(first.cause.text.English().find("all 5 gradients"), std::string::npos) << first.cause.text.English();
    EXPECT_EQ(result.inherited, result.findings.size() - 1);
  }
}

/// A gradient of each rank's rows on two times two ranks, alike over tensor parallelism or not.
ParityFinding Halved(bool alike) {
  Made made(4, kTwoByTwo);
  Values mean(16);
  std::vector<Values> local;
  for (unsigned r = 0; r < 4; ++r) {
    local.push_back(Made::Noise(16, alike ? r / 2 + 10 : r + 10));
    mean = Sum(mean, Times(local.back(), 0.25F));
  }
  for (int r = 0; r < 4; ++r) {
    made.Add(&made.rank(r), "local", "head.weight", {16}, local[static_cast<size_t>(r)]);
    made.Add(&made.rank(r), "gradient", "head.weight", {16}, Times(mean, 0.5F));
    made.Add(&made.rank(r), "gradient", "right", {16}, local.front());
  }
  made.Add(&made.reference(), "gradient", "right", {16}, local.front());
  made.Add(&made.reference(), "gradient", "head.weight", {16}, mean);
  return made.First();
}

TEST(Parity, OfTwoAxesOfOneSizeBothAreNamedUnlessValuesTell) {
  const std::string wrongly = ": averaged where it must be summed, or averaged twice";
  EXPECT_EQ(Halved(true).cause.text.English(), "scaled by 0.5, one over the size of dp" + wrongly);
  EXPECT_EQ(Halved(false).cause.text.English(), "scaled by 0.5, one over the size of tp or of dp" + wrongly);
}

TEST(Parity, AReductionThatTheFirstFaultCannotCauseIsAFaultOfItsOwn) {
  Made made(2, {{"dp", {{0, 1}}}});
  const auto add = [&](const std::string& name, unsigned seed, float factor, bool reduced) {
    const Values a = Made::Noise(16, seed), b = Made::Noise(16, seed + 1), mean = Times(Sum(a, b), 0.5F);
    for (int r = 0; r < 2; ++r) {
      const Values& own = r == 0 ? a : b;
      made.Add(&made.rank(r), "local", name, {16}, own);
      made.Add(&made.rank(r), "gradient", name, {16}, reduced ? Times(mean, factor) : own);
    }
    made.Add(&made.reference(), "local", name, {16}, mean);
    made.Add(&made.reference(), "gradient", name, {16}, mean);
  };
  add("embed.weight", 10, 1, true);
  add("up.weight", 20, 1, true);
  add("norm.weight", 30, 1, false);
  add("bias", 40, 0.5F, true);
  add("head.weight", 50, 0.5F, true);
  ParityCertificate certificate;
  certificate.result = JudgeParity(made.runs);
  std::map<std::string, bool> apart;
  for (const ParityFinding& one : certificate.result.findings) apart[one.name] = one.apart;
  // In the order of the reference: norm first, bias is of its own, head has what bias has.
  EXPECT_EQ(apart, (std::map<std::string, bool>{{"norm.weight", false}, {"bias", true}, {"head.weight", false}}));
  const std::string text = certificate.Text().English();
  EXPECT_NE(text.find("also: step 0: the gradient of the parameter bias: scaled by 0.5"), std::string::npos) << text;
  EXPECT_NE(text.find("behind it 1 more differ"), std::string::npos) << text;
}

TEST(Parity, OneFaultOfSeveralTensorsIsToldOnce) {
  const auto finding = [](const std::string& phase, const std::string& name, CauseKind kind, bool apart) {
    ParityFinding out;
    out.phase = phase, out.name = name, out.cause.kind = kind, out.cause.axis = "tp", out.apart = apart;
    out.law = kind == CauseKind::kReplicaDrift;
    return out;
  };
  ParityResult result;
  result.findings.push_back(finding("gradient", "up.bias", CauseKind::kWrongGroup, false));
  result.findings.push_back(finding("gradient", "down.bias", CauseKind::kWrongGroup, false));
  result.findings.push_back(finding("gradient", "norm.weight", CauseKind::kReducedTwice, true));
  result.findings.push_back(finding("gradient", "norm.bias", CauseKind::kReducedTwice, true));
  result.findings.push_back(finding("parameter", "down.bias", CauseKind::kReplicaDrift, false));  // by its gradients
  MarkApart(&result);
  for (const ParityFinding& one : result.findings) EXPECT_EQ(one.apart, one.name == "norm.weight") << one.name;
}

TEST(Parity, AReductionBehindAWrongGradientOfAResultIsAFaultOfItsOwn) {
  Made made(2, {{"dp", {{0, 1}}}});
  // The gradient of b's result is right, that of a's is not: what a gets does not come to b.
  for (const std::string module : {"b", "a"}) {
    const Values rows = Made::Noise(32, 3), other = Made::Noise(32, 4);
    const Values first = Made::Noise(16, 5), second = Made::Noise(16, 6), mean = Times(Sum(first, second), 0.5F);
    for (int r = 0; r < 2; ++r) {
      const Values& got = module == "b" ? rows : other;
      made.Add(&made.rank(r), "backward", module + "#0", {2, 8},
               Values(got.begin() + r * 16, got.begin() + r * 16 + 16));
      made.Add(&made.rank(r), "local", module + ".weight", {16}, r == 0 ? first : second);
      made.Add(&made.rank(r), "gradient", module + ".weight", {16}, r == 0 ? first : second);
    }
    made.Add(&made.reference(), "backward", module + "#0", {4, 8}, rows);
    made.Add(&made.reference(), "gradient", module + ".weight", {16}, mean);
  }
  const ParityResult result = JudgeParity(made.runs);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings.front().name, "a#0");
  size_t own = 0;
  for (const ParityFinding& one : result.findings) {
    own += one.apart;
    EXPECT_TRUE(!one.apart || one.name == "b.weight") << one.name;
  }
  EXPECT_EQ(own, 1U);
}

TEST(Parity, OfLawsAGradientThatWasNeverReducedFollowsFromNoWeight) {
  Made made(4, {{"dp", {{0, 1, 2, 3}}}});
  made.runs.reference.clear();
  const Values table = Made::Noise(32, 5), moved = Sum(table, Values(32, 1e-3F)), mean = Made::Noise(32, 6);
  for (int r = 0; r < 4; ++r) {
    const Values own = Made::Noise(32, static_cast<unsigned>(r + 10));
    ParityRank& rank = made.rank(r);
    for (const char* name : {"table", "bias", "other"}) {
      const bool first = std::string(name) == "table", bias = std::string(name) == "bias";
      made.Add(&rank, "parameter", name, {32}, first && r == 0 ? moved : table);
      made.Entry(r, "parameter").replica = {"dp"};
      made.Add(&rank, "local", name, {32}, own);
      made.Add(&rank, "gradient", name, {32}, bias ? own : mean);
      made.Add(&rank, "updated", name, {32}, Sum(first && r == 0 ? moved : table, bias ? own : mean));
      made.Entry(r, "updated").replica = {"dp"};
    }
  }
  const ParityResult result = JudgeParity(made.runs);
  ASSERT_GE(result.findings.size(), 2U);
  EXPECT_EQ(result.findings[0].name, "table");
  EXPECT_EQ(result.findings[1].name, "bias");
  EXPECT_EQ(result.findings[1].cause.kind, CauseKind::kPartialSum);
  for (const ParityFinding& one : result.findings) {
    EXPECT_EQ(one.apart, &one == &result.findings[1]) << one.Sentence().English();
  }
}

TEST(Parity, ReplicasInPairsHaveNoRankAlone) {
  Made made(4, kTwoByTwo);
  const Values weight = Made::Noise(32, 5), a = Made::Noise(32, 6), b = Made::Noise(32, 7);
  for (int r = 0; r < 4; ++r) {
    made.Add(&made.rank(r), "parameter", "embed", {32}, weight);
    made.Add(&made.rank(r), "state", "embed exp_avg", {32}, r < 2 ? a : b);
  }
  made.runs.reference.clear();
  const ParityFinding first = made.First();
  EXPECT_EQ(first.cause.ranks, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_NE(first.cause.text.English().find("between [0, 1] [2, 3]"), std::string::npos) << first.cause.text.English();
}

}  // namespace
}  // namespace msprobe
