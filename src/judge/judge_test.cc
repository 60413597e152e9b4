#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <random>

#include "judge/judge_directory.h"
#include "judge/run_judge.h"
#include "judge/series_watch.h"
#include "judge/tail.h"
#include "judge/who_began.h"
#include "monitor/series_writer.h"

namespace msprobe {
namespace {

// A healthy norm: it falls slowly, its noise is autocorrelated and has heavy tails.
class Healthy {
 public:
  explicit Healthy(uint32_t seed, double correlation = 0.5) : random_(seed), correlation_(correlation) {}
  double Next() {
    std::student_t_distribution<double> noise(6);
    state_ = correlation_ * state_ + 0.1 * noise(random_);
    return std::exp(state_ - 0.3 * std::log1p(0.01 * ++count_));
  }

 private:
  std::mt19937 random_;
  double correlation_, state_ = 0, count_ = 0;
};

constexpr double kLeast = 7.5;

std::optional<std::pair<int64_t, Change>> FirstChange(SeriesWatch* watch, int64_t steps,
                                                      const std::function<double(int64_t)>& value) {
  for (int64_t step = 0; step < steps; ++step) {
    if (const auto change = watch->Add(step, value(step), kLeast)) return std::pair(step, *change);
  }
  return std::nullopt;
}

TEST(Tail, StrengthGrowsWithDistanceAndNeedsHistory) {
  Tail tail;
  std::vector<double> few(10, 1.0);
  tail.Fit(few);
  EXPECT_EQ(tail.Strength(1e9), 0);
  std::mt19937 random(1);
  std::normal_distribution<double> noise;
  std::vector<double> many(400);
  for (double& v : many) v = std::fabs(noise(random));
  tail.Fit(many);
  EXPECT_EQ(tail.Strength(0.5), 0);
  EXPECT_NEAR(tail.Strength(2.58), 2, 0.4);  // 1 % of a normal distribution
  EXPECT_GT(tail.Strength(20), 7.5);
  EXPECT_LT(tail.Strength(5), 7.5);
  EXPECT_TRUE(std::isinf(tail.Strength(INFINITY)));
}

TEST(Tail, FewDifferentValuesHaveNoTail) {
  Tail tail;
  std::vector<double> two(400, 0.1);
  std::fill(two.begin() + 370, two.end(), 0.2);
  tail.Fit(two);
  EXPECT_FALSE(tail.known());
  EXPECT_EQ(tail.Strength(0.7), 0);
}

TEST(RunJudge, LargestTokenIsQuiet) {
  // Ids of tokens: their largest one is the last of the vocabulary or a little less.
  RunJudge judge({});
  std::mt19937 random(4);
  for (int64_t step = 0; step < 2000; ++step) {
    double largest = 0;
    for (int i = 0; i < 64; ++i) largest = std::max<double>(largest, random() % 48);
    const size_t row = judge.AddRow({0, "actv", 0, "embed_tokens.input", -1}, std::vector<std::string>{"max"});
    judge.Put(row, std::vector<double>{largest});
    judge.EndStep(step);
  }
  EXPECT_TRUE(WhoBegan(judge).empty());
}

TEST(SeriesWatch, HealthySeriesAreQuiet) {
  size_t alarms = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Healthy healthy(seed, seed % 3 == 0 ? 0.9 : 0.4);
    SeriesWatch watch(SeriesScale::kLogarithm, true);
    alarms += FirstChange(&watch, 2000, [&](int64_t) { return healthy.Next(); }).has_value() ? 1 : 0;
  }
  EXPECT_EQ(alarms, 0U);
}

TEST(SeriesWatch, TellsEachKindOfChangeAndWhereItBegan) {
  struct Case {
    Detector detector;
    int64_t onset, slack, latest;
    std::function<double(int64_t, double)> change;
  };
  const std::vector<Case> cases{
      {Detector::kSpike, 500, 0, 500, [](int64_t s, double v) { return s == 500 ? 60 * v : v; }},
      {Detector::kLevel, 500, 4, 530, [](int64_t s, double v) { return s >= 500 ? 2.6 * v : v; }},
      {Detector::kNotFinite, 500, 0, 500, [](int64_t s, double v) { return s == 500 ? NAN : v; }},
      {Detector::kNotFinite, 500, 0, 500, [](int64_t s, double v) { return s == 500 ? INFINITY : v; }},
      {Detector::kZeros, 500, 0, 510, [](int64_t s, double v) { return s >= 500 ? 0 : v; }},
      {Detector::kStuck, 500, 0, 510, [](int64_t s, double v) { return s >= 500 ? 0.5 : v; }},
  };
  for (const Case& one : cases) {
    Healthy healthy(7);
    SeriesWatch watch(SeriesScale::kLogarithm, true);
    const auto found = FirstChange(&watch, 600, [&](int64_t s) { return one.change(s, healthy.Next()); });
    ASSERT_TRUE(found) << DetectorName(one.detector);
    EXPECT_EQ(found->second.detector, one.detector);
    EXPECT_NEAR(static_cast<double>(found->second.onset), static_cast<double>(one.onset),
                static_cast<double>(one.slack));
    EXPECT_LE(found->first, one.latest);
  }
}

TEST(SeriesWatch, SaysNothingBeforeItsWarmUp) {
  Healthy healthy(3);
  SeriesWatch watch(SeriesScale::kLogarithm, true);
  const auto found =
      FirstChange(&watch, 150, [&](int64_t s) { return s > 100 ? 100 * healthy.Next() : healthy.Next(); });
  EXPECT_FALSE(found);
}

const std::vector<std::string> kNorm{"norm", "min", "max"};

// A run of some ranks whose values are those of `value` (rank, table, layer, step).
using RunValue = std::function<double(size_t, const std::string&, int, int64_t, double)>;
RunJudge JudgedRun(size_t ranks, int64_t steps, const RunValue& value) {
  RunJudge judge({});
  std::vector<Healthy> noise;
  for (uint32_t i = 0; i < 64; ++i) noise.emplace_back(i + 100);
  for (int64_t step = 0; step < steps; ++step) {
    for (size_t rank = 0; rank < ranks; ++rank) {
      size_t number = 0;
      for (const char* table : {"param_origin", "param_updated", "grad_unreduced", "grad_reduced"}) {
        for (int layer = 0; layer < 4; ++layer, ++number) {
          // Replicas have the same; gradients after the reduction are those before it.
          const bool after = std::string(table) == "grad_reduced";
          double common =
              after ? judge
                          .rows()[judge.AddRow(
                              {rank, "grad_unreduced", 0, "layers." + std::to_string(layer) + ".weight", -1}, kNorm)]
                          .now[0]
                    : (rank == 0 ? noise[number].Next() : 0);
          if (!after && rank > 0) {
            common = judge.rows()[judge.AddRow({0, table, 0, "layers." + std::to_string(layer) + ".weight", -1}, kNorm)]
                         .now[0];
          }
          if (std::string(table) == "param_origin")
            common = 5 + static_cast<double>(layer) + 0.001 * static_cast<double>(step);
          if (std::string(table) == "param_updated")
            common = 5 + static_cast<double>(layer) + 0.001 * static_cast<double>(step + 1);
          const double v = value(rank, table, layer, step, common);
          const std::vector<double> row{v, -v / 2, v / 3};
          judge.Put(judge.AddRow({rank, table, 0, "layers." + std::to_string(layer) + ".weight", -1}, kNorm), row);
        }
      }
    }
    judge.EndStep(step);
  }
  return judge;
}

TEST(RunJudge, HealthyRunHasNoEvent) {
  const RunJudge judge = JudgedRun(3, 600, [](size_t, const std::string&, int, int64_t, double v) { return v; });
  for (const JudgedEvent& e : WhoBegan(judge)) {
    ADD_FAILURE() << DetectorName(e.detector) << ' ' << e.table << ' ' << e.column << ' ' << e.onset << ' ' << e.before
                  << ' ' << e.after;
  }
}

// A batch that is easy has small gradients, once and in all layers; one layer alone does not have an easy batch.
TEST(RunJudge, AnEasyBatchIsNoFault) {
  const auto dip = [](int layers) {
    return JudgedRun(1, 600, [layers](size_t, const std::string& table, int layer, int64_t step, double v) {
      return step == 500 && layer < layers && table.starts_with("grad") ? v * 0.2 : v;
    });
  };
  for (const JudgedEvent& e : WhoBegan(dip(4))) {
    ADD_FAILURE() << DetectorName(e.detector) << ' ' << e.table << ' ' << e.column << ' ' << e.before << ' ' << e.after;
  }
  const auto events = WhoBegan(dip(1));
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].onset, 500);
  EXPECT_EQ(events[0].layers, std::vector<std::string>{"layers.0"});
  // One that is hard, or is noise, is told.
  EXPECT_FALSE(WhoBegan(JudgedRun(1, 600, [](size_t, const std::string& table, int, int64_t step, double v) {
                 return step == 500 && table.starts_with("grad") ? v * 50 : v;
               })).empty());
}

// Of three ranks one is the median itself for some steps on end: how far it is from that is zero, or nearly, then.
TEST(SeriesWatch, LessNoiseIsNoFaultWhereASeriesMayBeCalm) {
  for (const bool may : {false, true}) {
    Healthy healthy(5);
    SeriesWatch watch(SeriesScale::kLinear, false);
    if (may) watch.IgnoreCalm();
    const auto found = FirstChange(&watch, 560, [&](int64_t s) {
      const double v = std::log(healthy.Next());
      return s >= 500 ? v * 1e-4 : v;
    });
    EXPECT_EQ(found.has_value(), !may);
    if (found) {
      EXPECT_EQ(found->second.detector, Detector::kVariance);
    }
  }
}

TEST(RunJudge, ReplicaThatDiffersIsNamedOnlyByAMajority) {
  const RunValue flip = [](size_t rank, const std::string& table, int layer, int64_t step, double v) {
    return rank == 1 && layer == 2 && step >= 400 && table == "param_updated" ? v * 1.0001 : v;
  };
  const RunJudge three = JudgedRun(3, 420, flip);
  const auto events = WhoBegan(three);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].culprit, 1);
  EXPECT_EQ(events[0].onset, 400);
  EXPECT_EQ(events[0].layers, std::vector<std::string>{"layers.2"});
  const RunJudge two = JudgedRun(2, 420, flip);
  const auto undecided = WhoBegan(two);
  ASSERT_FALSE(undecided.empty());
  EXPECT_FALSE(undecided[0].culprit);
  EXPECT_TRUE(undecided[0].rank_undecided);
}

TEST(RunJudge, BrokenRelationsNameTheLayer) {
  const RunJudge outside = JudgedRun(1, 420, [](size_t, const std::string& table, int layer, int64_t step, double v) {
    return table == "param_origin" && layer == 1 && step == 400 ? v * 1.00001 : v;
  });
  auto events = WhoBegan(outside);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].detector, Detector::kOutside);
  EXPECT_EQ(events[0].layers, std::vector<std::string>{"layers.1"});
  const RunJudge changed = JudgedRun(1, 420, [](size_t, const std::string& table, int layer, int64_t step, double v) {
    return table == "grad_reduced" && layer == 3 && step >= 400 ? -v : v;
  });
  events = WhoBegan(changed);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].detector, Detector::kReduction);
  EXPECT_EQ(events[0].layers, std::vector<std::string>{"layers.3"});
}

TEST(RunJudge, RowThatStopsIsMissing) {
  RunJudge judge({});
  Healthy a(1), b(2);
  for (int64_t step = 0; step < 420; ++step) {
    const double x = a.Next(), y = b.Next();
    judge.Put(judge.AddRow({0, "grad_reduced", 0, "fc1.weight", -1}, kNorm), std::vector<double>{x, x, x});
    if (step < 400)
      judge.Put(judge.AddRow({0, "grad_reduced", 0, "fc2.weight", -1}, kNorm), std::vector<double>{y, y, y});
    judge.EndStep(step);
  }
  const auto events = WhoBegan(judge);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].detector, Detector::kMissing);
  EXPECT_EQ(events[0].onset, 400);
  EXPECT_EQ(events[0].layers, std::vector<std::string>{"fc2"});
}

TEST(JudgeDirectory, ReadsFilesOfRanksAndRefusesOthers) {
  const auto base = std::filesystem::path(testing::TempDir()) / "judge_directory";
  std::filesystem::remove_all(base);
  std::filesystem::create_directories(base / "Nov25_10-00-00-rank0-01234567");
  JudgeRequest request;
  request.directory = base.string();
  EXPECT_EQ(JudgeDirectory(request).status().code(), Code::kBadInput);
  SeriesWriter writer;
  ASSERT_TRUE(writer.Open((base / "Nov25_10-00-00-rank0-01234567" / "monitor.series").string()).ok());
  writer.AddTable("grad_reduced", kNorm, false);
  writer.AddSeries(std::vector<SeriesName>{{0, 0, "fc.weight", -1}});
  Healthy healthy(5);
  const std::vector<uint32_t> rows{0};
  for (int64_t step = 0; step < 400; ++step) {
    const double v = (step == 300 ? 80 : 1) * healthy.Next();
    writer.AddValues(step, 0, rows, std::vector<double>{v, v, v});
    request.loss.emplace_back(step, step >= 304 ? 50 + healthy.Next() : healthy.Next());
  }
  ASSERT_TRUE(writer.Flush().ok());
  writer.Close();
  const auto judgement = JudgeDirectory(request);
  ASSERT_TRUE(judgement.ok());
  ASSERT_EQ(judgement->events.size(), 1U);
  EXPECT_EQ(judgement->events[0].onset, 300);
  EXPECT_EQ(judgement->events[0].lead(), 4);
  EXPECT_NE(JudgementText(*judgement).English().find("step 300: gradient norm of fc, "), std::string::npos);
  EXPECT_NE(JudgementText(*judgement).English().find(", 4 steps before the loss"), std::string::npos);
  EXPECT_NE(JudgementJson(*judgement).find("\"detector\": \"spike\""), std::string::npos);
}

}  // namespace
}  // namespace msprobe
