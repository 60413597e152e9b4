// What a training explains itself is no finding, and what nothing explains is one.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "judge/judge_directory.h"
#include "judge/law_events.h"
#include "judge/rank_watch.h"
#include "judge/run_judge.h"
#include "judge/who_began.h"

namespace msprobe {
namespace {

const std::vector<std::string> kNormOnly{"norm"};

class Noise {
 public:
  explicit Noise(uint32_t seed, double size = 0.05) : random_(seed), size_(size) {}
  double Next() {
    std::normal_distribution<double> noise;
    return std::exp(size_ * noise(random_));
  }

 private:
  std::mt19937 random_;
  double size_;
};

/// Rows of one table, of the value at a step; `end` is called before each step ends.
RunJudge Judged(const std::string& table, int rows, int64_t steps, const std::function<double(int, int64_t)>& value,
                const std::function<void(RunJudge*, int64_t)>& end = {}) {
  RunJudge judge({});
  for (int64_t step = 0; step < steps; ++step) {
    for (int row = 0; row < rows; ++row) {
      const size_t number = judge.AddRow({0, table, 0, "blocks." + std::to_string(row) + ".weight", -1}, kNormOnly);
      judge.Put(number, std::vector<double>{value(row, step)});
    }
    if (end) end(&judge, step);
    judge.EndStep(step);
  }
  return judge;
}

TEST(Explained, AConstantThatNeverChangedDoesNotStopChanging) {
  EXPECT_TRUE(WhoBegan(Judged("actv", 2, 400, [](int, int64_t) { return 3.25; })).empty());
  // It moved for a few steps while the run began.
  EXPECT_TRUE(WhoBegan(Judged("actv", 2, 400, [](int, int64_t s) { return s < 9 ? 1.0 + double(s) : 10; })).empty());
  Noise noise(3);
  const auto events = WhoBegan(Judged("actv", 1, 400, [&](int, int64_t s) { return s < 120 ? noise.Next() : 2; }));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].detector, Detector::kStuck);
  EXPECT_EQ(events[0].onset, 120);
}

TEST(Explained, TheEndOfADecayIsNoFaultAndAFallAtOnceIs) {
  const auto run = [](const std::function<double(int64_t)>& rate, bool known) {
    std::vector<Noise> noise;
    for (uint32_t i = 0; i < 6; ++i) noise.emplace_back(i + 1);
    return WhoBegan(Judged(
        "param_update", 6, 400, [&](int row, int64_t s) { return rate(s) * noise[static_cast<size_t>(row)].Next(); },
        [&](RunJudge* judge, int64_t s) {
          if (known) judge->PutRate(rate(s));
        }));
  };
  const auto linear = [](int64_t s) { return (401.0 - double(s)) / 400; };
  const auto fall = [](int64_t s) { return s < 300 ? 1 : 0.1; };
  const auto jump = [](int64_t s) { return s < 300 ? 1 : 8.0; };
  EXPECT_TRUE(run(linear, false).empty());
  EXPECT_TRUE(run(linear, true).empty());
  EXPECT_TRUE(run(fall, true).empty());  // the log says that it is the learning rate
  for (const auto& events : {run(fall, false), run(jump, false), run(jump, true)}) {
    ASSERT_FALSE(events.empty());
    EXPECT_EQ(events[0].onset, 300);
    EXPECT_TRUE(events[0].all_layers);
  }
}

/// A second moment that follows its gradients, one of which is large; then what `change` makes of it.
std::vector<JudgedEvent> Moments(const std::function<double(int64_t, double)>& change) {
  std::vector<Noise> noise;
  std::vector<double> moments(4, 0);
  for (uint32_t i = 0; i < 4; ++i) noise.emplace_back(i + 9, 0.3);
  RunJudge judge({});
  for (int64_t step = 0; step < 360; ++step) {
    for (int row = 0; row < 4; ++row) {
      double& moment = moments[static_cast<size_t>(row)];
      const double gradient = noise[static_cast<size_t>(row)].Next() * (step % 97 == 50 ? 6 : 1);
      const std::string name = "fc" + std::to_string(row) + ".weight";
      moment = change(step, moment);
      judge.Put(judge.AddRow({0, "grad_reduced", 0, name, -1}, kNormOnly), std::vector<double>{gradient});
      judge.Put(judge.AddRow({0, "exp_avg_sq", 0, name, -1}, kNormOnly), std::vector<double>{moment});
      moment = 0.999 * moment + 0.001 * gradient * gradient;
    }
    judge.EndStep(step);
  }
  std::vector<JudgedEvent> events = WhoBegan(judge);
  std::erase_if(events, [](const JudgedEvent& e) { return e.table != "exp_avg_sq"; });
  return events;
}

TEST(Explained, AMomentFollowsItsGradientAndIsResetByNothing) {
  EXPECT_TRUE(Moments([](int64_t, double m) { return m; }).empty());
  const auto reset = Moments([](int64_t s, double m) { return s == 70 ? 0 : m; });
  ASSERT_FALSE(reset.empty());
  EXPECT_EQ(reset[0].detector, Detector::kReset);
  EXPECT_EQ(reset[0].onset, 70);
  JudgedDirectory run;
  run.ranks = 1;
  EXPECT_NE(EventText(reset[0], run).English().find("it was reset"), std::string::npos);
  const auto grown = Moments([](int64_t s, double m) { return s == 250 ? m * 1e6 : m; });
  ASSERT_FALSE(grown.empty());
  EXPECT_EQ(grown[0].onset, 250);
}

TEST(Explained, ALowerLimitOfClippingIsToldAndTheSameLimitIsNot) {
  const auto run = [](double from, double to) {
    std::vector<Noise> noise;
    for (uint32_t i = 0; i < 3; ++i) noise.emplace_back(i + 20, 0.4);
    std::vector<double> now(3);
    return WhoBegan(Judged("grad_reduced", 3, 300, [&](int row, int64_t s) {
      if (row == 0) {
        double sum = 0;
        for (size_t i = 0; i < 3; ++i) now[i] = 2 * noise[i].Next(), sum += now[i] * now[i];
        const double limit = s < 240 ? from : to;
        const double scale = std::min(1.0, limit / std::sqrt(sum));
        for (double& v : now) v *= scale;
      }
      return now[static_cast<size_t>(row)];
    }));
  };
  EXPECT_TRUE(run(3.0, 3.0).empty());
  const auto events = run(3.0, 0.2);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].detector, Detector::kPinned);
  EXPECT_EQ(events[0].onset, 240);
  EXPECT_TRUE(events[0].all_layers);
}

// Each rank has batches of its own: a step says nothing, and the mean of many does.
TEST(Explained, ARankWhoseLossIsScaledStandsBesideTheOthers) {
  const auto run = [](size_t ranks, double factor) {
    std::mt19937 random(12);
    std::normal_distribution<double> noise;
    RunJudge judge({});
    for (int64_t step = 0; step < 460; ++step) {
      for (size_t rank = 0; rank < ranks; ++rank) {
        const double batch = std::exp(0.8 * noise(random)) * (rank == 2 % ranks && step >= 300 ? factor : 1);
        for (int row = 0; row < 4; ++row) {
          const std::string name = "net." + std::to_string(row) + ".weight";
          judge.Put(judge.AddRow({rank, "grad_unreduced", 0, name, -1}, kNormOnly),
                    std::vector<double>{batch * std::exp(0.1 * noise(random))});
        }
      }
      judge.EndStep(step);
    }
    return WhoBegan(judge);
  };
  EXPECT_TRUE(run(4, 1).empty());
  const auto four = run(4, 2.7);
  ASSERT_FALSE(four.empty());
  EXPECT_EQ(four[0].culprit, 2);
  EXPECT_NEAR(static_cast<double>(four[0].onset), 300, 12);
  const auto two = run(2, 4);
  ASSERT_FALSE(two.empty());
  EXPECT_FALSE(two[0].culprit);
  EXPECT_TRUE(two[0].rank_undecided);
}

TEST(Explained, ALawThatBrokeAsEarlyIsTheHeadline) {
  JudgedEvent change;
  change.onset = change.told = 300;
  BrokenLaw law;
  law.law = "lr_schedule";
  law.text = "the learning rate jumps";
  law.step = 299;
  std::vector<JudgedEvent> events{change};
  AddLaws({law}, INT64_MIN, &events);
  JudgedDirectory run;
  run.ranks = 1;
  EXPECT_EQ(events[0].onset, 299);
  EXPECT_EQ(EventText(events[0], run).English(), "step 299: law lr_schedule broken, the learning rate jumps");
  law.step = 301;
  events = {change};
  AddLaws({law}, INT64_MIN, &events);
  EXPECT_FALSE(events[0].law_first);
}

}  // namespace
}  // namespace msprobe
