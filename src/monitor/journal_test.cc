#include "monitor/journal.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "base/file.h"
#include "base/temp_directory.h"
#include "base/text.h"
#include "monitor/series_reader.h"

namespace msprobe {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct HostTensor {
  std::vector<float> values;
  std::vector<int64_t> shape;
  TensorView view() const {
    return {values.data(), DType::kFloat32, static_cast<int>(shape.size()), shape.data(), nullptr};
  }
};

class JournalTest : public testing::Test {
 protected:
  void Open(std::vector<AlertRule> rules = {}) {
    JournalOptions options;
    options.directory = directory_->path();
    options.steps_per_file = 2;
    options.rules = std::move(rules);
    auto opened = Journal::Open(std::move(options));
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    journal_ = std::move(*opened);
  }
  void SetUp() override {
    auto made = TempDirectory::Create(testing::TempDir(), "monitor");
    ASSERT_TRUE(made.ok());
    directory_ = std::make_unique<TempDirectory>(std::move(*made));
  }
  void Take(uint32_t series, const HostTensor& tensor) {
    const TensorView view = tensor.view();
    journal_->Take({&series, 1}, {&view, 1}, 1);
  }
  std::string Text(const std::string& name) { return ReadText(JoinPath(directory_->path(), name)); }

  std::unique_ptr<TempDirectory> directory_;
  std::unique_ptr<Journal> journal_;
};

TEST_F(JournalTest, WritesRowsAsTheOldToolDoes) {
  Open();
  const uint32_t table = journal_->AddTable("grad_reduced", {"norm", "max", "nans", "zeros", "shape", "dtype"}, false,
                                            Journal::Order::kDeclared);
  const uint32_t a = journal_->AddSeries({table, 0, "a.weight", -1}, 0, "a");
  const uint32_t b = journal_->AddSeries({table, 1, "b", -1}, 0, "b");
  Take(b, {{3, 4}, {2}});
  Take(a, {{0, 1e-9f, 2, std::nanf("")}, {2, 2}});
  EXPECT_EQ(journal_->Write(2).rows, 2u);
  Take(b, {{1.0f / 3}, {1}});
  journal_->Write(3);
  EXPECT_EQ(Text("grad_reduced_2-3.csv"),
            "vpp_stage,name,step,norm,max,nans,zeros,shape,dtype\n"
            "0,a.weight,2,nan,nan,1,0.5,\"[2, 2]\",torch.float32\n"
            "1,b,2,5.0,4.0,0,0.0,[2],torch.float32\n"
            "1,b,3,0.333333,0.333333,0,0.0,[1],torch.float32\n");
}

TEST_F(JournalTest, WholeNumbersBecomeRealWhereOneOfTheBlockIs) {
  Open();
  const uint32_t table = journal_->AddTable("actv", {"min"}, true, Journal::Order::kArrival);
  const uint32_t first = journal_->AddSeries({table, 0, "x.input", 0}, 1, "x");
  const uint32_t second = journal_->AddSeries({table, 0, "x.output", 0}, 1, "y");
  const uint32_t other = journal_->AddSeries({table, 2, "z, \"of y\"", 3}, 0, "z");
  journal_->Put(first, {CsvCell::Integer(5)});
  journal_->Put(second, {CsvCell::Real(-0.5)});
  journal_->Put(other, {CsvCell::Integer(7)});
  journal_->Write(0);
  EXPECT_EQ(
      Text("actv_0-1.csv"),
      "vpp_stage,name,step,micro_step,min\n2,\"z, \"\"of y\"\"\",0,3,7\n0,x.input,0,0,5.0\n0,x.output,0,0,-0.5\n");
}

TEST_F(JournalTest, WhatHasNoValueInAStepHasNoRow) {
  Open();
  const uint32_t table = journal_->AddTable("t", {"norm"}, false, Journal::Order::kArrival);
  const uint32_t a = journal_->AddSeries({table, 0, "a", -1}, 0, "a");
  const uint32_t b = journal_->AddSeries({table, 0, "b", -1}, 0, "b");
  const std::vector<uint32_t> order{b, a};
  journal_->Announce(order);
  Take(a, {{1}, {1}});
  Take(b, {{2}, {1}});
  journal_->Write(0);
  Take(a, {{3}, {1}});
  EXPECT_EQ(journal_->Write(1).rows, 1u);
  Take(a, {{4}, {1}});
  journal_->Drop();
  EXPECT_EQ(journal_->Write(1).rows, 0u);
  EXPECT_EQ(Text("t_0-1.csv"), "vpp_stage,name,step,norm\n0,b,0,2.0\n0,a,0,1.0\n0,a,1,3.0\n");
  const auto file = SeriesFile::Open(JoinPath(directory_->path(), "monitor.series"));
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file->series().size(), 2u);
  EXPECT_EQ(file->series()[0].name, "a");
  const auto points = file->Read(0, 0);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[1].step, 1);
  EXPECT_EQ(points[1].value, 3.0);
}

TEST_F(JournalTest, AFileThatIsThereIsContinued) {
  for (const int step : {0, 1}) {
    Open();
    const uint32_t table = journal_->AddTable("t", {"norm"}, false, Journal::Order::kArrival);
    const uint32_t a = journal_->AddSeries({table, 0, "a", -1}, 0, "a");
    Take(a, {{static_cast<float>(step)}, {1}});
    journal_->Write(step);
    journal_.reset();
  }
  EXPECT_EQ(Text("t_0-1.csv"), "vpp_stage,name,step,norm\n0,a,0,0.0\n0,a,1,1.0\n");
  const auto file = SeriesFile::Open(JoinPath(directory_->path(), "monitor.series"));
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file->series().size(), 1u);
  EXPECT_EQ(file->Read(0, 0).size(), 2u);
}

TEST_F(JournalTest, RulesOfTheOldToolAlarm) {
  Open({{AlertRule::Kind::kTurbulence, 0.5}, {AlertRule::Kind::kNan, std::nullopt}});
  const uint32_t table = journal_->AddTable("t", {"norm", "max"}, false, Journal::Order::kArrival);
  const uint32_t a = journal_->AddSeries({table, 0, "a", -1}, 0, "0:a/rank0/post_grad");
  std::vector<size_t> alarms;
  for (const float v : {1.0f, 1.4f, 2.0f, std::nanf(""), 1.0f}) {
    Take(a, {{v}, {1}});
    const StepReport report = journal_->Write(static_cast<int64_t>(alarms.size()));
    alarms.push_back(report.alarms.size());
    if (v == 2.0f) {
      ASSERT_EQ(report.alarms.size(), 1u);
      EXPECT_EQ(report.alarms[0].rule, "AnomalyTurbulence");
      EXPECT_EQ(report.alarms[0].statistic, "norm");
      EXPECT_NEAR(report.alarms[0].mean, 1.004, 1e-9);
    }
  }
  EXPECT_EQ(alarms, (std::vector<size_t>{0, 0, 1, 2, 0}));  // a NaN is told of both statistics
}

TEST_F(JournalTest, AFullDiskIsToldAndLeavesNoHalfRow) {
  Open();
  const uint32_t table = journal_->AddTable("t", {"norm"}, false, Journal::Order::kArrival);
  const uint32_t a = journal_->AddSeries({table, 0, "a", -1}, 0, "a");
  const std::string csv = JoinPath(directory_->path(), "t_0-1.csv");
  ASSERT_EQ(mkdir(csv.c_str(), 0750), 0);  // stands for a file that cannot be opened
  Take(a, {{1}, {1}});
  EXPECT_NE(journal_->Write(0).status.message().find("t_0-1.csv"), std::string::npos);
  ASSERT_EQ(rmdir(csv.c_str()), 0);
  Take(a, {{2}, {1}});
  EXPECT_TRUE(journal_->Write(1).status.ok());
  EXPECT_EQ(Text("t_0-1.csv"), "vpp_stage,name,step,norm\n0,a,1,2.0\n");
}

TEST(RoundDecimals, AsNumpy) {
  EXPECT_EQ(RoundDecimals(0.1234565, 6), 0.123456);  // half to even of the product
  EXPECT_EQ(RoundDecimals(1e-7, 6), 0.0);
  EXPECT_EQ(RoundDecimals(2.5, 0), 2.0);
  EXPECT_EQ(RoundDecimals(1e300, 20), 1e300);
  EXPECT_TRUE(std::isinf(RoundDecimals(std::numeric_limits<double>::infinity(), 6)));
}

TEST(AppendRounded, IsTheReprOfTheRoundedNumber) {
  std::mt19937_64 rng(1);
  std::vector<double> values{0.0, -0.0,   1e-4,  9.9995e-5,    0.00010005, 0.5,  -2.5, 1e15,
                             9e8, -123.0, 1e300, 0.9999999999, 99.5,       1e16, 1e-7, std::nan("")};
  values.push_back(std::numeric_limits<double>::infinity());
  for (int i = 0; i < 20000; ++i) {
    const double mantissa = std::uniform_real_distribution<double>(-1, 1)(rng);
    values.push_back(mantissa * std::pow(10.0, static_cast<double>(rng() % 24) - 7));
    values.push_back(static_cast<double>(static_cast<float>(values.back())));
    values.push_back(static_cast<double>(static_cast<int64_t>(rng() % 2'000'000) - 1'000'000) / 1000.0);
  }
  for (const int digits : {0, 1, 3, 4, 6, 12, 15, 16, 20}) {
    for (const double v : values) {
      std::string text;
      AppendRounded(text, v, digits);
      ASSERT_EQ(text, PyRepr(RoundDecimals(v, digits))) << v << " to " << digits;
    }
  }
}

TEST(EventFile, ChecksumsAreCastagnolis) { EXPECT_EQ(Crc32C("123456789"), 0xE3069283u); }

TEST(SummarizeTensors, ThreadsGiveTheSameAndZerosAreCounted) {
  std::vector<std::vector<float>> memory;
  std::vector<int64_t> sizes{5, 1 << 20, 0, 1 << 19, 7};
  std::vector<TensorView> views;
  for (const int64_t size : sizes) {
    memory.emplace_back();
    for (int64_t i = 0; i < size; ++i) memory.back().push_back(i % 3 == 0 ? 1e-9f : static_cast<float>(i % 101) - 50);
  }
  for (size_t i = 0; i < sizes.size(); ++i) views.push_back({memory[i].data(), DType::kFloat32, 1, &sizes[i], nullptr});
  std::vector<TensorSummary> one(views.size()), two(views.size());
  SummarizeTensors(views, 1e-8, 1, one.data());
  SummarizeTensors(views, 1e-8, 2, two.data());
  for (size_t i = 0; i < views.size(); ++i) {
    EXPECT_EQ(one[i].stats.norm, two[i].stats.norm);
    EXPECT_EQ(one[i].near_zero, two[i].near_zero);
    int64_t zeros = 0;
    for (const float v : memory[i]) zeros += std::fabs(v) < 1e-8;
    EXPECT_EQ(one[i].near_zero, zeros);
  }
}

}  // namespace
}  // namespace msprobe
