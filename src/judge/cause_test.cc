// What began an event: what the training was given before what it made of it, and what does most harm.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "judge/judge_directory.h"
#include "judge/run_judge.h"
#include "judge/who_began.h"

namespace msprobe {
namespace {

constexpr size_t kLayersOfRun = 4;

// A run of four layers with their gradients, a loss and what a script sets.
class SmallRun {
 public:
  using Factor = std::function<double(int64_t)>;
  Factor gradients = [](int64_t) { return 1.0; };  // all layers
  Factor one = [](int64_t) { return 1.0; };        // the first layer
  Factor loss = [](int64_t) { return 1.0; };
  Factor rate = [](int64_t) { return 1e-3; };
  Factor factor = [](int64_t) { return 1.0; };
  Factor input = [](int64_t) { return 1.0; };

  RunJudge& Judge(int64_t steps) {
    std::mt19937 random(3);
    std::normal_distribution<double> noise;
    const std::vector<std::string> norm{"norm"}, value{"value"};
    const auto put = [&](const std::string& table, const std::string& name, const std::vector<std::string>& columns,
                         double number) {
      judge_.Put(judge_.AddRow({0, table, 0, name, -1}, columns), {&number, 1});
    };
    for (int64_t step = 0; step < steps; ++step) {
      const double together = 0.05 * noise(random);
      for (size_t layer = 0; layer < kLayersOfRun; ++layer) {
        const double own = layer == 0 ? one(step) : 1;
        put("grad_reduced", "layers." + std::to_string(layer) + ".weight", norm,
            gradients(step) * own * std::exp(together + 0.01 * noise(random)));
      }
      put("loss", "loss", value, 2 * loss(step) * std::exp(0.02 * noise(random)));
      put("learning_rate", "group0", value, rate(step));
      put("loss_factor", "loss", value, factor(step));
      put("model_input", "args.0", norm, input(step) * std::exp(0.02 * noise(random)));
      judge_.EndStep(step);
    }
    return judge_;
  }

  /// The text of an event, without what only a directory has.
  std::string Text(const JudgedEvent& event) {
    JudgedDirectory directory;
    directory.ranks = 1;
    directory.rows.assign(judge_.rows().begin(), judge_.rows().end());
    if (JudgedLoss judged(judge_); !judged.watches.empty()) directory.loss.emplace(std::move(judged));
    return EventText(event, directory).English();
  }

 private:
  RunJudge judge_{JudgeOptions{}};
};

SmallRun::Factor From(int64_t first, double before, double after) {
  return [=](int64_t step) { return step < first ? before : after; };
}

SmallRun::Factor At(int64_t when, double times) {
  return [=](int64_t step) { return step == when ? times : 1.0; };
}

TEST(Cause, AFactorOfTheLossThatChangesStandsBeforeTheGradients) {
  SmallRun run;
  run.factor = From(300, 0.25, 16);
  run.gradients = From(300, 1, 64);
  const auto events = WhoBegan(run.Judge(360));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(
      run.Text(events[0]),
      "step 300: the factor of the loss before backward(), 16 instead of 0.25 from one step to the next, the loss "
      "does not show it");
}

TEST(Cause, ARateThatJumpsStandsBeforeWhatItDoesStepsLater) {
  SmallRun run;
  run.rate = From(300, 1e-3, 2e-2);
  run.gradients = From(306, 1, 5);
  const auto events = WhoBegan(run.Judge(360));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].table, "learning_rate");
  EXPECT_EQ(events[0].onset, 300);
}

TEST(Cause, ABatchOfTheSameStepIsTheCauseAndOneBeforeItIsNot) {
  for (const int64_t when : {300, 290}) {
    SmallRun run;
    run.input = At(when, 3);
    run.gradients = At(300, 20);
    run.loss = At(300, 3);
    const auto events = WhoBegan(run.Judge(340));
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].table, when == 300 ? "model_input" : "grad_reduced");
  }
}

TEST(Cause, WhatATrainingIsGivenIsNoAlarmByItself) {
  SmallRun run;
  run.factor = From(300, 1, 64);
  run.rate = From(300, 1e-3, 1);
  run.input = At(320, 50);
  EXPECT_TRUE(WhoBegan(run.Judge(400)).empty());
  // Nor does it stop to come: the last batch of an epoch may have no mask.
  SmallRun warm_up;
  warm_up.rate = [](int64_t step) { return 1e-5 * static_cast<double>(step + 1); };
  EXPECT_TRUE(WhoBegan(warm_up.Judge(260)).empty());
}

TEST(Cause, ALittleThingThatWasOverIsNotTheBeginningOfALargeOne) {
  SmallRun run;
  run.one = At(280, 1.5);
  run.gradients = From(300, 1, 40);
  run.loss = From(300, 1, 3);
  const auto events = WhoBegan(run.Judge(340));
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].onset, 280);
  EXPECT_EQ(events[1].onset, 300);
  EXPECT_GT(events[1].harm, 3 * events[0].harm);
}

TEST(Cause, OneStepIsOneStepAndAMetricIsNamedOnce) {
  SmallRun run;
  run.gradients = From(300, 1, 40);
  run.loss = From(301, 1, 3);
  const auto events = WhoBegan(run.Judge(340));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_NE(run.Text(events[0]).find(", 1 step before the loss"), std::string::npos) << run.Text(events[0]);
  std::vector<std::string> tables;
  for (const JudgedEvent::Metric& metric : events[0].metrics) {
    tables.push_back(run.Judge(0).rows()[metric.first.row].key.table);
  }
  EXPECT_EQ(tables, (std::vector<std::string>{"grad_reduced", "loss"}));
  EXPECT_EQ(events[0].metrics[0].series, kLayersOfRun);
}

TEST(Cause, ARestartOfTheScheduleExplainsItsUpdates) {
  const auto updates = [](double peak) {
    RunJudge judge{JudgeOptions{}};
    std::mt19937 random(5);
    std::normal_distribution<double> noise;
    const std::vector<std::string> norm{"norm"}, value{"value"};
    for (int64_t step = 0; step < 400; ++step) {
      const double part = static_cast<double>(step % 300) / 300, top = step >= 300 ? peak : 1;
      const double rate = 1e-3 * top * (0.05 + 0.95 * 0.5 * (1 + std::cos(M_PI * part)));
      judge.Put(judge.AddRow({0, "learning_rate", 0, "group0", -1}, value), {&rate, 1});
      for (const char* name : {"a.weight", "b.weight", "c.weight", "d.weight"}) {
        const double update = rate * std::exp(0.05 * noise(random));
        judge.Put(judge.AddRow({0, "param_update", 0, name, -1}, norm), {&update, 1});
      }
      judge.EndStep(step);
    }
    return WhoBegan(judge);
  };
  EXPECT_TRUE(updates(1).empty());
  const auto higher = updates(4);
  ASSERT_FALSE(higher.empty());
  EXPECT_EQ(higher[0].table, "learning_rate");
  EXPECT_EQ(higher[0].onset, 300);
}

}  // namespace
}  // namespace msprobe
