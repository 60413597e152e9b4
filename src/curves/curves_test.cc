#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "curves/band.h"
#include "curves/difference.h"
#include "curves/event_curves.h"
#include "curves/factor.h"
#include "curves/judge.h"
#include "curves/line_pattern.h"
#include "curves/log_curves.h"
#include "curves/means.h"
#include "curves/number_text.h"
#include "curves/plot.h"
#include "curves/table_curves.h"

namespace msprobe {
namespace {

RunCurves ReadLog(std::string_view log, const CurveNames& names = {}) {
  auto out = ReadLogCurves(log, "a.log", names);
  EXPECT_TRUE(out.ok()) << out.status().message();
  return out.ok() ? *std::move(out) : RunCurves{};
}

void ExpectPoint(const RunCurves& run, std::string_view format, int64_t step, double loss, double norm, double rate) {
  EXPECT_EQ(run.format, "log of " + std::string(format));
  ASSERT_FALSE(run.of(CurveKind::kLoss).empty()) << format;
  EXPECT_EQ(run.of(CurveKind::kLoss).steps.back(), step) << format;
  EXPECT_DOUBLE_EQ(run.of(CurveKind::kLoss).values.back(), loss) << format;
  for (const auto& [kind, value] : {std::pair{CurveKind::kGradNorm, norm}, {CurveKind::kLearningRate, rate}}) {
    if (std::isnan(value)) continue;
    ASSERT_FALSE(run.of(kind).empty()) << format;
    EXPECT_DOUBLE_EQ(run.of(kind).values.back(), value) << format;
  }
}

TEST(LogCurves, StepsThatAreSkippedForGoodAreNaN) {
  const auto log = [](int skipped) {
    std::string out;
    for (int step = 1; step <= 100; ++step) {
      const bool skips = step <= 5 || (step > 40 && step <= 40 + skipped);
      out += fmt::format(
          " iteration {:8}/ 100 | learning rate: 1.0E-04 |{} loss scale: 1.0 | number of skipped iterations: {} |\n",
          step, skips ? "" : " lm loss: 2.5E+00 |", skips ? 1 : 0);
    }
    return ReadLogCurves(out, "a.log", {});
  };
  const auto few = log(4), many = log(60);
  ASSERT_TRUE(few.ok() && many.ok());
  EXPECT_EQ(few->of(CurveKind::kLoss).size(), 91u);
  ASSERT_EQ(few->notes.size(), 1u);
  EXPECT_EQ(few->notes[0].English(),
            "the log says that 9 steps were skipped and updated no weights: 1, 2, 3, 4, 5, 41, 42, 43, ...");
  const Curve& loss = many->of(CurveKind::kLoss);
  ASSERT_EQ(loss.size(), 95u);
  EXPECT_TRUE(std::isfinite(loss.values[34]) && std::isnan(loss.values[35]));
  EXPECT_EQ(loss.steps[35], 41);
}

TEST(AverageAlike, MeansOfALogStandAgainstMeans) {
  RunCurves single{"single", "csv", {}, {}}, means{"means", "trainer_state.json", {}, {}},
      plain{"plain", "csv", {}, {}};
  Curve &a = single.of(CurveKind::kLoss), &b = means.of(CurveKind::kLoss);
  for (int64_t step = 1; step <= 30; ++step) {
    a.steps.push_back(step);
    a.values.push_back(static_cast<double>(step));
    a.units.push_back(1e-4);
  }
  for (int64_t step = 10; step <= 40; step += 10) {
    b.steps.push_back(step);
    b.values.push_back(static_cast<double>(step));
    b.units.push_back(1e-4);
  }
  plain.of(CurveKind::kLoss) = b;
  RunCurves twin = single;
  AverageAlike(std::array<RunCurves*, 2>{&twin, &plain});  // a csv says nothing of means
  EXPECT_EQ(twin.of(CurveKind::kLoss).size(), 30u);
  AverageAlike(std::array<RunCurves*, 2>{&single, &means});
  EXPECT_EQ(a.steps, (std::vector<int64_t>{10, 20, 30}));
  EXPECT_EQ(a.values, (std::vector<double>{5.5, 15.5, 25.5}));
  EXPECT_EQ(single.notes.size(), 1u);
  EXPECT_TRUE(means.notes.empty());
}

TEST(LogCurvesTest, ReadsTheLinesOfEachFramework) {
  ExpectPoint(ReadLog(" [2025-01-02 03:04:05] iteration       12/  500000 | consumed samples: 512 | elapsed time per "
                      "iteration (ms): 1234.5 | learning rate: 1.500000E-04 | global batch size: 512 | lm loss: "
                      "1.084838E+01 | loss scale: 1.0 | grad norm: 2.345 | number of nan iterations: 0 |\n"),
              "Megatron", 12, 10.84838, 2.345, 1.5e-4);
  ExpectPoint(ReadLog("2025-01-02 - INFO - { Epoch:[  2/  3], step:[   10/  500], loss: 7.620, per_step_time: 3000ms, "
                      "lr: 3e-05, overflow cond: False, loss_scale: 65536, global_norm: [1.25]}\n"),
              "MindFormers", 510, 7.62, 1.25, 3e-5);
  ExpectPoint(ReadLog("{'loss': 2.5, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': 0.01}\n"
                      "{'loss': '2.25', 'grad_norm': '1.25', 'learning_rate': '4e-05', 'epoch': '0.02'}\n"
                      "{'eval_loss': 9.0, 'epoch': 0.02}\n"),
              "transformers", 2, 2.25, 1.25, 4e-5);
  ExpectPoint(ReadLog("[2025-01-02 03:04:05,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, skipped=0, "
                      "lr=[9.65e-06, 9.65e-06], mom=[(0.9, 0.95)]\n"
                      "steps: 20 loss: 6.9311 iter time (s): 0.31 samples/sec: 1000.1\n"),
              "DeepSpeed", 20, 6.9311, NAN, 9.65e-6);
  ExpectPoint(
      ReadLog("[rank0]:[titan] 2025-01-02 - root - INFO - \x1b[31mstep: 30  \x1b[32mloss:  7.5001  "
              "\x1b[38;2;180;60;0mgrad_norm:  1.2500  \x1b[33mmemory:  0.90GiB(0.95%)  \x1b[34mtps: 1,234\x1b[39m\n"),
      "torchtitan", 30, 7.5001, 1.25, NAN);
  ExpectPoint(ReadLog("(TaskRunner pid=12) step:3 - global_seqlen/min:80 - actor/pg_loss:np.float64(-0.0125) - "
                      "actor/grad_norm:0.5 - actor/lr:1e-06 - timing_s/gen:3.1\n"),
              "verl", 3, -0.0125, 0.5, 1e-6);
  ExpectPoint(ReadLog("step:4 - train/loss:0.75 - train/lr(1e-3):0.02\n"), "verl", 4, 0.75, NAN, 2e-5);
  ExpectPoint(ReadLog("iter 40: loss 3.1234, time 99.9ms, mfu 1.2%\n"), "a training", 40, 3.1234, NAN, NAN);
  ExpectPoint(ReadLog("{\"step\": 5, \"train_loss\": 1.5, \"lr\": 0.001}\n"), "a training", 5, 1.5, NAN, 1e-3);
}

TEST(LogCurvesTest, AStepThatComesTwiceCountsOnce) {
  const RunCurves run = ReadLog("step 1 loss: 3\nstep 2 loss: 2\nstep 2 loss: 2.5\nstep 3 loss: nan\n");
  EXPECT_EQ(run.of(CurveKind::kLoss).steps, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(run.of(CurveKind::kLoss).values[1], 2.5);
  EXPECT_TRUE(std::isnan(run.of(CurveKind::kLoss).values[2]));
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_EQ(run.notes[0].English(), "1 steps come more than once, of which the last one counts");
}

TEST(LogCurvesTest, ALogWithoutALossIsRefused) {
  for (const std::string_view log : {"", "hello\n", "step 3 lr 0.1\n", "loss: high\n", "no loss here\n"}) {
    const auto read = ReadLogCurves(log, "a.log", {});
    ASSERT_FALSE(read.ok()) << log;
    EXPECT_EQ(read.status().code(), Code::kBadInput);
    EXPECT_NE(read.status().message().find("--pattern"), std::string::npos);
  }
}

TEST(LogCurvesTest, APatternAndANameOfTheUser) {
  CurveNames names;
  names.pattern = "<{step}> L {loss} {} rate={lr}";
  const RunCurves run = ReadLog("x <7>  L  2.5 and so on rate=1e-3\nother\n", names);
  EXPECT_EQ(run.of(CurveKind::kLoss).steps, (std::vector<int64_t>{7}));
  EXPECT_EQ(run.of(CurveKind::kLearningRate).values, (std::vector<double>{1e-3}));
  CurveNames word;
  word.loss = "nll";
  EXPECT_EQ(ReadLog("step 3 loss: 9 nll: 4\n", word).of(CurveKind::kLoss).values, (std::vector<double>{4}));
  for (const std::string_view bad : {"{step}", "{loss", "{los}", ""}) {
    const auto parsed = LinePattern::Parse(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.status().code(), Code::kUsage);
  }
}

TEST(NumberTextTest, KnowsTheLastDigit) {
  EXPECT_DOUBLE_EQ(ReadNumberText("1.084838E+01 |")->unit, 1e-5);
  EXPECT_DOUBLE_EQ(ReadNumberText("12.50")->unit, 0.01);
  EXPECT_DOUBLE_EQ(ReadNumberText("3")->unit, 1);
  EXPECT_TRUE(std::isnan(ReadNumberText("nan,")->value));
  EXPECT_FALSE(ReadNumberText("infer"));
  EXPECT_FALSE(ReadNumberText("12x"));
  EXPECT_FALSE(ReadNumberText(""));
}

TEST(TableCurvesTest, ColumnsByTheirNames) {
  const auto run = ReadCsvCurves("Iteration,lm loss,grad-norm\n1,3.5,2\n2,3.25,1\n", "a.csv", {});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->of(CurveKind::kLoss).values, (std::vector<double>{3.5, 3.25}));
  EXPECT_EQ(run->of(CurveKind::kGradNorm).values, (std::vector<double>{2, 1}));
  EXPECT_EQ(ReadCsvCurves("Wall time,Step,Value\n1.5,10,3.5\n", "b.csv", {})->of(CurveKind::kLoss).steps,
            (std::vector<int64_t>{10}));
  EXPECT_FALSE(ReadCsvCurves("a,b\n1,2\n", "c.csv", {}).ok());
  const auto state = ReadTrainerState(
      R"({"log_history": [{"loss": 2.5, "learning_rate": 1e-4, "step": 10}, {"eval_loss": 3, "step": 10}]})", "s", {});
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->of(CurveKind::kLoss).steps, (std::vector<int64_t>{10}));
  EXPECT_FALSE(ReadTrainerState("{}", "s", {}).ok());
}

Curve CurveOf(const std::vector<double>& values) {
  Curve out;
  for (size_t i = 0; i < values.size(); ++i) {
    out.steps.push_back(static_cast<int64_t>(i));
    out.values.push_back(values[i]);
    out.units.push_back(1e-9);
  }
  return out;
}

/// Noise of which each value keeps `kept` of the one before.
std::vector<double> Noise(uint32_t seed, size_t n, double kept, double offset = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> out;
  double v = 0;
  for (size_t i = 0; i < n; ++i) {
    v = kept * v + normal(random);
    out.push_back(v + offset);
  }
  return out;
}

TEST(ZeroAxisTest, CorrelatedNoiseIsSeldomCalledOneSided) {
  for (const double kept : {0.0, 0.9, 0.98}) {
    int one_sided = 0;
    for (uint32_t seed = 0; seed < 200; ++seed) {
      one_sided += TestZeroAxis(Noise(seed, 400, kept)).verdict == ZeroAxis::kOneSided;
    }
    EXPECT_LE(one_sided, 4) << kept;
  }
}

TEST(ZeroAxisTest, AnOffsetIsSeen) {
  int one_sided = 0;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    one_sided += TestZeroAxis(Noise(seed, 400, 0.5, 3)).verdict == ZeroAxis::kOneSided;
  }
  EXPECT_EQ(one_sided, 50);
  EXPECT_EQ(TestZeroAxis({0.1, 0.1, 0.1, 0.1, 0.1, 0.1}).verdict, ZeroAxis::kOneSided);
  EXPECT_EQ(TestZeroAxis({0, 0, 0}).verdict, ZeroAxis::kEqual);
  EXPECT_EQ(TestZeroAxis({0.1}).verdict, ZeroAxis::kUndecided);
}

TEST(BandTest, IsBuiltByTheNumberOfRuns) {
  const Curve a = CurveOf({1, 2, 3}), b = CurveOf({1.1, 2, 3.2});
  const Curve* two[] = {&a, &b};
  const auto band = MakeBand(two);
  ASSERT_TRUE(band.ok());
  EXPECT_EQ(band->construction, BandConstruction::kTwoRuns);
  for (const double w : band->half_widths) EXPECT_NEAR(w, 0.4, 1e-12);
  const Curve* three[] = {&a, &b, &a};
  EXPECT_EQ(MakeBand(three)->construction, BandConstruction::kWholeRun);
  EXPECT_NEAR(MakeBand(three)->half_widths[0], 0.3, 1e-12);
  EXPECT_FALSE(band->runs_covered);
  std::vector<Curve> runs;
  for (uint32_t seed = 0; seed < 5; ++seed) runs.push_back(CurveOf(Noise(seed, 200, 0)));
  const Curve* five[] = {&runs[0], &runs[1], &runs[2], &runs[3], &runs[4]};
  const auto wide = MakeBand(five);
  EXPECT_EQ(wide->construction, BandConstruction::kWindow);
  ASSERT_TRUE(wide->runs_covered);
  EXPECT_GT(wide->steps_covered, 0.98);
  const Curve other{{100}, {1}, {0}};
  const Curve* apart[] = {&a, &other};
  EXPECT_EQ(MakeBand(apart).status().code(), Code::kBadInput);
  const Curve* same[] = {&a, &a};
  EXPECT_TRUE(MakeBand(same)->IsEmpty());
}

CurveVerdict VerdictOf(const std::vector<double>& b, size_t golden = 5) {
  const size_t n = b.size();
  std::vector<Curve> runs;
  for (uint32_t seed = 0; seed < 5; ++seed) runs.push_back(CurveOf(Noise(100 + seed, n, 0)));
  std::vector<const Curve*> places;
  for (size_t i = 0; i < golden; ++i) places.push_back(&runs[i]);
  ComparedCurve c;
  c.pair = PairCurves(runs[0], CurveOf(b));
  c.difference = CompareCurves(c.pair);
  if (golden > 1) {
    c.band = *MakeBand(places);
    c.check = CheckBand(*c.band, c.pair);
  }
  return JudgeCurves({c}).verdict;
}

TEST(JudgeTest, EachVerdict) {
  const std::vector<double> noise = Noise(7, 200, 0);
  EXPECT_EQ(VerdictOf(Noise(100, 200, 0)), CurveVerdict::kEqual);
  EXPECT_EQ(VerdictOf(noise), CurveVerdict::kReasonable);
  EXPECT_EQ(VerdictOf(noise, 1), CurveVerdict::kNoBand);
  EXPECT_EQ(VerdictOf(Noise(7, 200, 0, 1.5)), CurveVerdict::kOneSided);
  EXPECT_EQ(VerdictOf(Noise(7, 200, 0, 50)), CurveVerdict::kFromFirstStep);
  std::vector<double> late = noise, jump = noise, broken = noise, early = noise;
  for (size_t i = 0; i < 200; ++i) {
    if (i > 100) late[i] += 0.2 * static_cast<double>(i - 100);
    if (i > 120) jump[i] += 500;
    if (i > 5) early[i] += 12;
  }
  broken[150] = NAN;
  EXPECT_EQ(VerdictOf(late), CurveVerdict::kLateDifference);
  EXPECT_EQ(VerdictOf(jump), CurveVerdict::kDiverges);
  EXPECT_EQ(VerdictOf(broken), CurveVerdict::kDiverges);
  EXPECT_EQ(VerdictOf(early), CurveVerdict::kOutsideBand);
  for (const CurveVerdict v : {CurveVerdict::kEqual, CurveVerdict::kReasonable, CurveVerdict::kWithinBand}) {
    EXPECT_TRUE(IsFine(v));
  }
  EXPECT_FALSE(IsFine(CurveVerdict::kNoBand));
}

TEST(PairTest, ShiftAndSteps) {
  const Curve a{{1, 2, 4, 5}, {1, 2, 4, 5}, {0, 0, 0, 0}}, b{{0, 1, 3}, {1, 2.5, 4}, {0, 0, 0}};
  const CurvePair pair = PairCurves(a, b, 1);
  EXPECT_EQ(pair.steps, (std::vector<int64_t>{1, 2, 4}));
  EXPECT_EQ(pair.difference(1), 0.5);
  EXPECT_EQ(CompareCurves(pair).max_step, 2);
}

TEST(PlotTest, DrawsWhatIsFinite) {
  const std::string plot = DrawPlot({{{0, 1, 2}, {0, NAN, 10}, '*'}}, 10, 5);
  EXPECT_EQ(std::count(plot.begin(), plot.end(), '*'), 2);
  EXPECT_EQ(DrawPlot({{{0}, {NAN}, '*'}}, 10, 5), "");
}

/// Equal losses beside another quantity of both.
CurveJudgement BesideEqualLosses(CurveKind kind, const std::vector<double>& a, const std::vector<double>& b) {
  ComparedCurve loss, other;
  loss.pair = PairCurves(CurveOf(Noise(1, a.size(), 0)), CurveOf(Noise(1, a.size(), 0)));
  loss.difference = CompareCurves(loss.pair);
  other.kind = kind;
  other.pair = PairCurves(CurveOf(a), CurveOf(b));
  other.difference = CompareCurves(other.pair);
  return JudgeCurves({loss, other});
}

TEST(JudgeTest, EqualLossesDoNotHideWhatDiffersBesideThem) {
  const std::vector<double> norms(20, 1.5), doubled(20, 3.0), near(20, 1.51), nan(20, NAN);
  EXPECT_EQ(BesideEqualLosses(CurveKind::kGradNorm, norms, norms).verdict, CurveVerdict::kEqual);
  EXPECT_EQ(BesideEqualLosses(CurveKind::kGradNorm, norms, doubled).verdict, CurveVerdict::kNormDiffers);
  EXPECT_EQ(BesideEqualLosses(CurveKind::kGradNorm, norms, nan).verdict, CurveVerdict::kNormDiffers);
  EXPECT_EQ(BesideEqualLosses(CurveKind::kGradNorm, nan, nan).verdict, CurveVerdict::kNotFinite);
  EXPECT_EQ(BesideEqualLosses(CurveKind::kGradNorm, norms, near).verdict, CurveVerdict::kNoBand);
  EXPECT_EQ(BesideEqualLosses(CurveKind::kLearningRate, norms, doubled).verdict, CurveVerdict::kRateDiffers);
}

TEST(JudgeTest, WhatFailsARuleIsNoGoodJudgement) {
  for (const auto& b : {std::vector<double>(20, 3.0), std::vector<double>(20, NAN)}) {
    const CurveJudgement judged = BesideEqualLosses(CurveKind::kGradNorm, std::vector<double>(20, 1.5), b);
    EXPECT_FALSE(IsFine(judged.verdict));
    EXPECT_GE(WeightOf(Conclude(JudgementsOf(judged)).kind), JudgementWeight::kSuspect);
  }
}

TEST(JudgeTest, AJumpAfterEqualStepsNeedsNoBand) {
  std::vector<double> jump = Noise(100, 200, 0);
  for (size_t i = 150; i < 200; ++i) jump[i] += 5;
  EXPECT_EQ(VerdictOf(jump, 1), CurveVerdict::kDiverges);
}

TEST(TableCurvesTest, ASummaryOfTheRunIsNoStep) {
  const auto run = ReadTrainerState(
      R"({"log_history": [{"step": 10, "loss": 2.5}, {"step": 20, "loss": 0.4},
          {"step": 20, "train_loss": 2.38, "train_runtime": 9.1, "total_flos": 5}]})",
      "trainer_state.json", {});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->of(CurveKind::kLoss).values, (std::vector<double>{2.5, 0.4}));
  EXPECT_TRUE(run->notes.empty());
  const RunCurves log = ReadLog(
      "{'loss': 2.5, 'learning_rate': 1e-4, 'epoch': 0.5}\n{'loss': 0.4, 'learning_rate': 1e-4, 'epoch': 1.0}\n"
      "{'train_runtime': 9.1, 'train_loss': 2.38, 'epoch': 1.0}\n");
  EXPECT_EQ(log.of(CurveKind::kLoss).values, (std::vector<double>{2.5, 0.4}));
}

TEST(LogCurvesTest, AFormatLosesNothingThatTheGeneralReaderReads) {
  const RunCurves run = ReadLog("iteration 1 loss 3.5 lr 1e-4 gnorm 2.0\niteration 2 loss 3.25 lr 2e-4 gnorm 1.0\n");
  EXPECT_EQ(run.of(CurveKind::kLearningRate).values, (std::vector<double>{1e-4, 2e-4}));
  EXPECT_EQ(run.of(CurveKind::kGradNorm).values, (std::vector<double>{2, 1}));
  const RunCurves megatron = ReadLog(" iteration        5/     100 | lm_loss: 7.1 | learning rate: 1e-4 |\n");
  EXPECT_EQ(megatron.of(CurveKind::kLoss).values, (std::vector<double>{7.1}));
}

TEST(LogCurvesTest, LinesOfAResumedRunAreCountedByTheirEpochs) {
  std::string whole, resumed;
  for (int line = 1; line <= 18; ++line) {
    const std::string text = fmt::format("{{'loss': {}.5, 'epoch': {:.2f}}}\n", line, 0.11 * line);
    whole += text;
    if (line >= 9) resumed += text;
  }
  EXPECT_EQ(ReadLog(whole).of(CurveKind::kLoss).steps.front(), 1);
  EXPECT_EQ(ReadLog(resumed).of(CurveKind::kLoss).steps.front(), 9);
  EXPECT_EQ(ReadLog(resumed).of(CurveKind::kLoss).steps.back(), 18);
}

TEST(JudgeTest, EvaluationsAreComparedToo) {
  const std::vector<double> losses(6, 2.5), worse(6, 2.8), near(6, 2.5001), apart(6, 2.51);
  EXPECT_EQ(BesideEqualLosses(CurveKind::kEvalLoss, losses, losses).verdict, CurveVerdict::kEqual);
  EXPECT_EQ(BesideEqualLosses(CurveKind::kEvalLoss, losses, worse).verdict, CurveVerdict::kEvalDiffers);
  EXPECT_EQ(BesideEqualLosses(CurveKind::kEvalLoss, losses, apart).verdict, CurveVerdict::kEvalDiffers)
      << "equal weights do not give that";
  EXPECT_EQ(BesideEqualLosses(CurveKind::kEvalLoss, losses, near).verdict, CurveVerdict::kNoBand);
}

TEST(JudgeTest, TheFirstStepOfAnyRuleLeads) {
  std::vector<double> loss = Noise(7, 100, 0), norms(100, 1.0), other = norms;
  std::vector<double> left = loss;
  for (size_t i = 60; i < 100; ++i) left[i] += 5;
  for (size_t i = 20; i < 100; ++i) other[i] = 2.5;
  ComparedCurve a, b;
  a.pair = PairCurves(CurveOf(loss), CurveOf(left));
  a.difference = CompareCurves(a.pair);
  b.kind = CurveKind::kGradNorm;
  b.pair = PairCurves(CurveOf(norms), CurveOf(other));
  b.difference = CompareCurves(b.pair);
  const CurveJudgement judged = JudgeCurves({a, b});
  EXPECT_EQ(judged.verdict, CurveVerdict::kDiverges);
  EXPECT_EQ(judged.step, b.difference.first_apart);
}

TEST(JudgeTest, AFactorThatStaysIsTold) {
  std::vector<double> a = Noise(3, 40, 0.1), four, uneven;
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] += 3;
    four.push_back(4 * a[i]);
    uneven.push_back((i % 2 == 0 ? 4 : 2) * a[i]);
  }
  EXPECT_EQ(FactorBetween(PairCurves(CurveOf(a), CurveOf(four)), 0.03), 4);
  EXPECT_EQ(FactorBetween(PairCurves(CurveOf(four), CurveOf(a)), 0.03), 0.25);
  EXPECT_EQ(FactorBetween(PairCurves(CurveOf(a), CurveOf(uneven)), 0.03), std::nullopt);
  EXPECT_EQ(FactorBetween(PairCurves(CurveOf(a), CurveOf(a)), 0.03), std::nullopt);
}

TEST(JudgeTest, AJumpThatComesBackDoesNotDiverge) {
  std::vector<double> jump = Noise(100, 200, 0);
  jump[150] += 5;
  const auto says = [](const std::vector<double>& b) {
    ComparedCurve c;
    c.pair = PairCurves(CurveOf(Noise(100, b.size(), 0)), CurveOf(b));
    c.difference = CompareCurves(c.pair);
    std::string out;
    for (const CurveRule& rule : JudgeCurves({c}).rules) out += rule.text.English() + "; ";
    return out;
  };
  EXPECT_NE(says(jump).find("comes back"), std::string::npos) << says(jump);
  for (size_t i = 150; i < 200; ++i) jump[i] += 5;
  EXPECT_EQ(says(jump).find("comes back"), std::string::npos) << says(jump);
}

TEST(TableCurvesTest, LossesOfEvaluationsAndWhatIsNotCompared) {
  const auto run = ReadTrainerState(
      R"({"log_history": [{"step": 10, "loss": 2.5, "entropy": 1.5}, {"step": 10, "eval_loss": 2.25, "eval_runtime": 3.5},
          {"step": 20, "loss": 0.4, "entropy": 1.25, "epoch": 2}]})",
      "trainer_state.json", {});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->of(CurveKind::kEvalLoss).values, std::vector<double>{2.25});
  EXPECT_EQ(run->others, std::vector<std::string>{"entropy"});
  const auto table = ReadCsvCurves("step,loss,val_loss,accuracy\n1,2.5,,0.5\n2,2.25,2.75,0.5\n", "m.csv", {});
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->of(CurveKind::kEvalLoss).steps, std::vector<int64_t>{2});
  EXPECT_EQ(table->others, std::vector<std::string>{"accuracy"});
  const RunCurves megatron = ReadLog(
      " iteration 10/ 20 | learning rate: 1.0E-04 | lm loss: 2.5E+00 |\n"
      " validation loss at iteration 10 on validation set | lm loss value: 2.75E+00 | lm loss PPL: 1.5E+01 |\n"
      " iteration 11/ 20 | learning rate: 1.0E-04 | lm loss: 2.25E+00 |\n");
  EXPECT_EQ(megatron.of(CurveKind::kEvalLoss).values, std::vector<double>{2.75});
  EXPECT_EQ(megatron.of(CurveKind::kEvalLoss).steps, std::vector<int64_t>{10});
  EXPECT_EQ(megatron.of(CurveKind::kLoss).size(), 2u);
  const RunCurves trainer = ReadLog(
      "{'loss': 2.5, 'learning_rate': 1e-4, 'epoch': 0.5}\n{'eval_loss': 2.0, 'eval_runtime': 1.5, 'epoch': 0.5}\n"
      "{'loss': 0.4, 'learning_rate': 1e-4, 'epoch': 1.0}\n");
  EXPECT_EQ(trainer.of(CurveKind::kEvalLoss).steps, std::vector<int64_t>{1});
}

}  // namespace
}  // namespace msprobe
