#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/file.h"
#include "base/temp_directory.h"
#include "monitor/series_reader.h"
#include "monitor/series_writer.h"

namespace msprobe {
namespace {

class SeriesFileTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDirectory::Create(testing::TempDir(), "monitor");
    ASSERT_TRUE(made.ok());
    directory_ = std::make_unique<TempDirectory>(std::move(*made));
    path_ = JoinPath(directory_->path(), "monitor.series");
  }
  // Two series, the second one only in odd steps.
  void WriteSteps(int64_t first, int64_t last) {
    SeriesWriter writer;
    ASSERT_TRUE(writer.Open(path_).ok());
    const std::vector<std::string> columns{"norm", "mean"};
    writer.AddTable("grad", columns, false);
    const std::vector<SeriesName> names{{0, 0, "a", -1}, {0, 1, "b", 2}};
    writer.AddSeries(names);
    for (int64_t step = first; step < last; ++step) {
      const auto v = static_cast<double>(step);
      if (step % 2 != 0) {
        writer.AddValues(step, 0, std::vector<uint32_t>{1, 0}, std::vector<double>{10 * v, v, 0.5, -v});
      } else {
        writer.AddValues(step, 0, std::vector<uint32_t>{0}, std::vector<double>{v, -v});
      }
      ASSERT_TRUE(writer.Flush().ok());
    }
  }
  std::string Bytes() {
    std::ifstream file(path_, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void Put(const std::string& bytes) { std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes; }

  std::unique_ptr<TempDirectory> directory_;
  std::string path_;
};

TEST_F(SeriesFileTest, ReadsWhatWasWritten) {
  WriteSteps(0, 6);
  const auto file = SeriesFile::Open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->cut_off());
  EXPECT_EQ(file->last_step(), 5);
  ASSERT_EQ(file->series().size(), 2u);
  EXPECT_EQ(file->series()[1].micro_step, 2);
  EXPECT_EQ(file->series()[1].vpp_stage, 1);
  const auto a = file->Read(0, 1), b = file->Read(1, 0);
  ASSERT_EQ(a.size(), 6u);
  ASSERT_EQ(b.size(), 3u);
  for (const auto& [step, value] : a) EXPECT_EQ(value, -static_cast<double>(step));
  for (const auto& [step, value] : b) EXPECT_EQ(value, 10 * static_cast<double>(step));
}

TEST_F(SeriesFileTest, WhatIsWholeIsReadWhereverItWasCutOff) {
  WriteSteps(0, 4);
  const std::string bytes = Bytes();
  size_t most = 0;
  for (size_t size = 8; size <= bytes.size(); ++size) {
    Put(bytes.substr(0, size));
    const auto file = SeriesFile::Open(path_);
    ASSERT_TRUE(file.ok());
    EXPECT_GE(file->blocks(), most);
    most = file->blocks();
    EXPECT_EQ(file->cut_off(), file->whole_bytes() < size);
  }
  EXPECT_EQ(most, 4u);
}

TEST_F(SeriesFileTest, ACutFileIsContinuedBehindItsLastWholeBlock) {
  WriteSteps(0, 4);
  const std::string bytes = Bytes();
  Put(bytes.substr(0, bytes.size() - 5));
  WriteSteps(10, 12);
  const auto file = SeriesFile::Open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->cut_off());
  ASSERT_EQ(file->series().size(), 2u);
  std::vector<int64_t> steps;
  for (const auto& point : file->Read(0, 0)) steps.push_back(point.step);
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 1, 2, 10, 11}));
}

TEST_F(SeriesFileTest, AnotherFileIsRefused) {
  Put("vpp_stage,name,step\n");
  EXPECT_EQ(SeriesFile::Open(path_).status().code(), Code::kBadInput);
  SeriesWriter writer;
  EXPECT_FALSE(writer.Open(path_).ok());
  EXPECT_EQ(Bytes(), "vpp_stage,name,step\n");
}

TEST_F(SeriesFileTest, ADamagedBlockEndsTheFile) {
  WriteSteps(0, 4);
  std::string bytes = Bytes();
  bytes[bytes.size() - 9] ^= 1;
  Put(bytes);
  const auto file = SeriesFile::Open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->blocks(), 3u);
  EXPECT_TRUE(file->cut_off());
}

}  // namespace
}  // namespace msprobe
