#include "judge/loss_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "judge/judge_directory.h"
#include "judge/who_began.h"
#include "monitor/series_writer.h"

namespace msprobe {
namespace {

constexpr double kAlarm = 6.2;
using Draw = std::function<double()>;

// Made losses: they fall from 2.3 to `floor` with a time of `tau`, with noise on the logarithm.
struct Made {
  double floor = 0.05, tau = 15, noise = 0.1;
  double At(int64_t step, double z) const {
    return (floor + (2.3 - floor) * std::exp(-static_cast<double>(step) / tau)) * std::exp(noise * z);
  }
};

struct Told {
  std::vector<Change> changes;
  std::optional<LossLeap> open, largest;
};

Told Judged(const std::vector<double>& losses) {
  LossWatch watch;
  Told out;
  for (size_t i = 0; i < losses.size(); ++i) {
    if (const auto change = watch.Add(static_cast<int64_t>(i), losses[i], kAlarm)) out.changes.push_back(*change);
  }
  out.open = watch.Open(kAlarm);
  out.largest = watch.largest();
  return out;
}

// Shapes of healthy losses, by name.
std::vector<std::pair<const char*, std::function<double(int64_t, const Draw&, double)>>> HealthyShapes() {
  const auto at = [](int64_t step) { return static_cast<double>(step); };
  const Made made;
  return {
      {"falls", [=](int64_t s, const Draw& z, double) { return made.At(s, z()); }},
      {"batches of one", [=](int64_t s, const Draw& z, double) { return made.At(s, 8 * z()); }},
      {"a hump of the warm-up",
       [=](int64_t s, const Draw& z, double) {
         return made.At(s, z()) * (1 + 1.2 * std::exp(-std::pow((at(s) - 30) / 8, 2)));
       }},
      {"restarts of a schedule",
       [=](int64_t s, const Draw& z, double) {
         return made.At(s, z()) * (s < 60 ? 1 : 1 + 0.8 * std::exp(-4 * at(s % 60) / 60));
       }},
      {"other data, 1.5 times",
       [=](int64_t s, const Draw& z, double) { return made.At(s, z()) * (s >= 90 ? 1.5 : 1); }},
      {"drifts to and fro",
       [=](int64_t, const Draw& z, double before) {
         return std::exp(0.9 * std::log(before > 0 ? before : 0.7) + 0.1 * std::log(0.7) + 0.1 * z());
       }},
      {"about zero", [=](int64_t, const Draw& z, double) { return 0.05 * z(); }},
      {"below zero", [=](int64_t s, const Draw& z, double) { return -3 * (1 - std::exp(-at(s) / 40)) + 0.1 * z(); }},
      {"one higher", [=](int64_t s, const Draw& z, double) { return made.At(s, z()) * (s == 77 ? 5 : 1); }},
      {"nearly zero",
       [=](int64_t s, const Draw& z, double) { return 1e-6 * std::exp(z()) + 2.3 * std::exp(-at(s) / 6); }},
      {"one value", [=](int64_t, const Draw&, double) { return 0.693; }},
      {"zeros", [=](int64_t, const Draw&, double) { return 0.0; }},
  };
}

TEST(LossWatch, HealthyLossesAreQuiet) {
  size_t runs = 0;
  for (const auto& [name, value] : HealthyShapes()) {
    for (uint32_t seed = 0; seed < 20; ++seed, ++runs) {
      std::mt19937 random(seed);
      std::normal_distribution<double> normal;
      std::student_t_distribution<double> heavy(4);
      const Draw noise = [&] { return seed % 2 == 0 ? normal(random) : heavy(random); };
      std::vector<double> losses;
      for (int64_t s = 0; s < 320; ++s) losses.push_back(value(s, noise, losses.empty() ? 0 : losses.back()));
      const Told told = Judged(losses);
      EXPECT_TRUE(told.changes.empty()) << name << ' ' << seed << ' ' << told.changes.front().onset;
      EXPECT_FALSE(told.open) << name << ' ' << seed;
    }
  }
  EXPECT_EQ(runs, 240U);
}

TEST(LossWatch, TellsALeapAtItsStepHoweverEarly) {
  for (const int64_t begun : {40, 132, 252, 502}) {
    for (const double times : {8.0, 16.0, 40.0}) {
      for (uint32_t seed = 0; seed < 10; ++seed) {
        std::mt19937 random(seed);
        std::normal_distribution<double> normal;
        std::vector<double> losses;
        for (int64_t s = 0; s < begun + 20; ++s)
          losses.push_back(Made().At(s, normal(random)) * (s >= begun ? times : 1));
        const Told told = Judged(losses);
        ASSERT_EQ(told.changes.size(), 1U) << begun << ' ' << times << ' ' << seed;
        EXPECT_EQ(told.changes[0].detector, Detector::kLeap);
        EXPECT_EQ(told.changes[0].onset, begun);
        EXPECT_NEAR(std::log(told.changes[0].after / told.changes[0].before), std::log(times), 0.7);
      }
    }
  }
}

// A learning rate that is too high takes a few steps until the loss is where it stays.
TEST(LossWatch, TellsWhereARiseBegan) {
  std::vector<double> losses;
  for (int64_t s = 0; s < 150; ++s) {
    losses.push_back(Made().At(s, s % 3 - 1.0) * (s < 132 ? 1 : std::min(20.0, std::pow(1.7, s - 131))));
  }
  const Told told = Judged(losses);
  ASSERT_EQ(told.changes.size(), 1U);
  EXPECT_NEAR(static_cast<double>(told.changes[0].onset), 132, 1);
}

TEST(LossWatch, TellsLossesOnBothSidesOfZero) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::vector<double> losses;
  for (int64_t s = 0; s < 160; ++s) losses.push_back(0.05 * normal(random) + (s >= 132 ? -3 : 0));
  const Told told = Judged(losses);
  ASSERT_EQ(told.changes.size(), 1U);
  EXPECT_EQ(told.changes[0].onset, 132);
}

TEST(LossWatch, TellsOneLossAboveTheFirstOfATrainingThatHasLearned) {
  std::vector<double> losses;
  std::mt19937 random(5);
  std::normal_distribution<double> noise;
  const Made made;
  for (int64_t step = 0; step < 190; ++step) losses.push_back(made.At(step, noise(random)));
  losses[150] = 5;  // 2.3 at first, 0.05 now
  const Told told = Judged(losses);
  ASSERT_EQ(told.changes.size(), 1u);
  EXPECT_EQ(told.changes[0].detector, Detector::kSpike);
  EXPECT_EQ(told.changes[0].onset, 150);
  losses[150] = 2.3;  // as at first: a batch that is hard
  EXPECT_TRUE(Judged(losses).changes.empty());
}

TEST(LossWatch, TellsTheFirstNanAlways) {
  const Told first = Judged({NAN, 1, 1});
  ASSERT_EQ(first.changes.size(), 1U);
  EXPECT_EQ(first.changes[0].detector, Detector::kNotFinite);
  EXPECT_EQ(Judged({1, 0.9, INFINITY, NAN}).changes.size(), 1U);
}

TEST(LossWatch, LeavesOpenWhatTheLastLossesDo) {
  std::vector<double> losses;
  for (int64_t s = 0; s < 100; ++s) losses.push_back(Made().At(s, s % 3 - 1.0) * (s >= 98 ? 30 : 1));
  const Told told = Judged(losses);
  EXPECT_TRUE(told.changes.empty());
  ASSERT_TRUE(told.open);
  EXPECT_EQ(told.open->step, 98);
  EXPECT_EQ(told.open->losses, 2U);
}

TEST(LossWatch, NamesTheLargestRiseThatIsNoAlarm) {
  std::vector<double> losses;
  for (int64_t s = 0; s < 200; ++s) losses.push_back(Made().At(s, s % 3 - 1.0) * (s == 77 ? 5 : 1));
  const Told told = Judged(losses);
  EXPECT_TRUE(told.changes.empty());
  ASSERT_TRUE(told.largest);
  EXPECT_EQ(told.largest->step, 77);
}

TEST(RunJudge, WhatTheLossOfAHealthyTrainingMayDoIsEvidenceOnly) {
  const std::vector<std::pair<double, bool>> cases{{1.35, false}, {3, true}};  // from a step on: other data, or a fault
  for (const auto& [times, told] : cases) {
    RunJudge judge({});
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    for (int64_t s = 0; s < 600; ++s) {
      const double loss = (s >= 400 ? times : 1) * (s == 300 ? 1.4 : 1) * std::exp(0.03 * normal(random));
      judge.Put(judge.AddRow({0, "loss", 0, "loss", -1}, std::vector<std::string>{"value"}), std::vector<double>{loss});
      judge.EndStep(s);
    }
    const auto events = WhoBegan(judge);
    EXPECT_EQ(!events.empty(), told) << times;
    EXPECT_FALSE(judge.changes().empty());
    if (!events.empty()) EXPECT_EQ(events[0].onset, 400);
  }
}

// Where little is left to learn, the gradients of one batch are large for those about it, and its loss is a usual one.
TEST(RunJudge, GradientsAsLargeAsEverAreNoAlarmBesideAUsualLoss) {
  struct Case {
    double gradient, loss;
    bool told;
  };
  for (const Case& one : {Case{0.5, 1, false}, Case{0.5, 3, true}, Case{30, 1, true}}) {
    RunJudge judge({});
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    for (int64_t s = 0; s < 420; ++s) {
      const auto step = static_cast<double>(s);
      const double loss =
          (0.05 + 2 * std::exp(-step / 40)) * std::exp(0.05 * normal(random)) * (s == 400 ? one.loss : 1);
      judge.Put(judge.AddRow({0, "loss", 0, "loss", -1}, std::vector<std::string>{"value"}), std::vector<double>{loss});
      for (const char* name : {"a.weight", "b.weight", "c.weight", "d.weight"}) {
        double norm = (1e-3 + std::exp(-step / 40)) * std::exp(0.05 * normal(random));
        if (s == 400) norm = one.gradient;
        judge.Put(judge.AddRow({0, "grad_reduced", 0, name, -1}, std::vector<std::string>{"norm"}),
                  std::vector<double>{norm});
      }
      judge.EndStep(s);
    }
    EXPECT_EQ(!WhoBegan(judge).empty(), one.told) << one.gradient << ' ' << one.loss;
  }
}

// What was learned at once after a long time is no fault; a loss that is another from one step to the next may be.
TEST(RunJudge, ALossThatBeginsToFallIsNoAlarm) {
  for (const bool at_once : {false, true}) {
    RunJudge judge({});
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    for (int64_t s = 0; s < 600; ++s) {
      const double fall = s < 400 ? 1 : at_once ? 0.3 : 0.2 + 0.8 * std::exp(-static_cast<double>(s - 400) / 8);
      const double loss = 2.3 * fall * std::exp(0.05 * normal(random));
      judge.Put(judge.AddRow({0, "loss", 0, "loss", -1}, std::vector<std::string>{"value"}), std::vector<double>{loss});
      judge.EndStep(s);
    }
    EXPECT_EQ(WhoBegan(judge).empty(), !at_once);
    EXPECT_FALSE(judge.changes().empty());
  }
}

// A monitored run whose loss is given, and nothing else that moves.
JudgedDirectory JudgedRun(const std::string& name, int64_t steps, const std::function<double(int64_t)>& loss) {
  const auto base = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(base);
  std::filesystem::create_directories(base / "Nov25_10-00-00-rank0-01234567");
  SeriesWriter writer;
  EXPECT_TRUE(writer.Open((base / "Nov25_10-00-00-rank0-01234567" / "monitor.series").string()).ok());
  writer.AddTable("grad_reduced", std::vector<std::string>{"norm"}, false);
  writer.AddSeries(std::vector<SeriesName>{{0, 0, "fc.weight", -1}});
  JudgeRequest request;
  request.directory = base.string();
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (int64_t s = 0; s < steps; ++s) {
    writer.AddValues(s, 0, std::vector<uint32_t>{0}, std::vector<double>{std::exp(0.2 * normal(random))});
    if (loss) request.loss.emplace_back(s, loss(s));
  }
  EXPECT_TRUE(writer.Flush().ok());
  writer.Close();
  auto judged = JudgeDirectory(request);
  EXPECT_TRUE(judged.ok());
  return std::move(*judged);
}

TEST(JudgeDirectory, SaysWhatOfAShortRunWasJudged) {
  const auto healthy = [](int64_t s) { return Made().At(s, s % 3 - 1.0); };
  const JudgedDirectory short_run = JudgedRun("judge_short", 120, healthy);
  EXPECT_FALSE(short_run.too_early());
  EXPECT_EQ(Conclude(JudgementsOf(short_run)).kind, JudgementKind::kRoundOff);
  const std::string text = JudgementText(short_run).English();
  EXPECT_NE(text.find("no change that a healthy training would not have\nthe loss was judged from step 26 on"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("the other 1 series are judged from 200 monitored steps on"), std::string::npos) << text;
  const JudgedDirectory no_loss = JudgedRun("judge_no_loss", 120, {});
  EXPECT_TRUE(no_loss.too_early());
  EXPECT_EQ(Conclude(JudgementsOf(no_loss)).kind, JudgementKind::kTooEarly);
  EXPECT_TRUE(JudgedRun("judge_few", 20, healthy).too_early());
  const JudgedDirectory open =
      JudgedRun("judge_open", 120, [&](int64_t s) { return healthy(s) * (s >= 118 ? 30 : 1); });
  EXPECT_TRUE(open.too_early());
  EXPECT_NE(JudgementText(open).English().find("the last 2 losses, from step 118 on"), std::string::npos);
  const JudgedDirectory leap =
      JudgedRun("judge_leap", 120, [&](int64_t s) { return healthy(s) * (s >= 100 ? 30 : 1); });
  ASSERT_EQ(leap.events.size(), 1U);
  EXPECT_NE(JudgementText(leap).English().find("step 100: the loss, "), std::string::npos);
  EXPECT_NE(JudgementJson(leap).find("\"detector\": \"leap\""), std::string::npos);
}

}  // namespace
}  // namespace msprobe
