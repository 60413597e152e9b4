#include "view/run/open_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/temp_directory.h"
#include "monitor/series_writer.h"
#include "view/run/run_cache.h"

namespace msprobe::view {
namespace {

Deadline Whenever() { return std::chrono::steady_clock::now() + std::chrono::hours(1); }

class OpenRankTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDirectory::Create(testing::TempDir(), "run");
    ASSERT_TRUE(made.ok());
    directory_ = std::make_unique<TempDirectory>(std::move(*made));
    rank_ = JoinPath(directory_->path(), "Nov25_18-24-11-rank3-0000abcd");
    ASSERT_TRUE(std::filesystem::create_directory(rank_));
  }
  // Series layers.0.w to layers.{count - 1}.w with the value step + 1000 * series.
  void Open(uint32_t count) {
    ASSERT_TRUE(writer_.Open(JoinPath(rank_, "monitor.series")).ok());
    writer_.AddTable("grad", std::vector<std::string>{"mean", "norm"}, false);
    std::vector<SeriesName> names;
    for (uint32_t i = 0; i < count; ++i) {
      names.push_back({0, 0, "layers." + std::to_string(i) + ".w", -1});
      rows_.push_back(i);
    }
    writer_.AddSeries(names);
  }
  void Write(int64_t first, int64_t last, int64_t interval = 1) {
    for (int64_t step = first; step < last; step += interval) {
      std::vector<double> values;
      for (int stat = 0; stat < 2; ++stat) {
        for (const uint32_t row : rows_) values.push_back(stat == 0 ? 0 : ValueAt(row, step));
      }
      writer_.AddValues(step, 0, rows_, values);
    }
    ASSERT_TRUE(writer_.Flush().ok());
  }
  double ValueAt(uint32_t row, int64_t step) const {
    if (row == 1 && step == broken_) return std::nan("");
    return static_cast<double>(step) + 1000.0 * row;
  }
  static RunTileQuery Query(int level, int64_t from, size_t bins, RunFold fold = RunFold::kNone) {
    RunTileQuery query;
    query.rows = {"grad", "norm", "", fold, CellView::kHighest};
    query.level = level;
    query.from = from;
    query.bins = bins;
    return query;
  }

  std::unique_ptr<TempDirectory> directory_;
  std::string rank_;
  SeriesWriter writer_;
  std::vector<uint32_t> rows_;
  int64_t broken_ = -1;
};

TEST_F(OpenRankTest, EachLevelHoldsTheExtremesOfItsSteps) {
  broken_ = 77;
  Open(12);
  Write(0, 5000);
  auto rank = OpenRank::Open({rank_});
  ASSERT_TRUE(rank.ok());
  for (const int level : {0, 1, 2, 5, 9}) {
    const int64_t width = int64_t{1} << level;
    const auto tile = (*rank)->Tile(Query(level, 1, 8), Whenever());
    ASSERT_TRUE(tile.ok());
    ASSERT_EQ(tile->rows.size(), 12u);
    EXPECT_EQ(tile->rows[2].label, "layers.2.w") << "in natural order";
    for (size_t bin = 0; bin < 8; ++bin) {
      const int64_t first = (1 + static_cast<int64_t>(bin)) * width, last = std::min<int64_t>(first + width, 5000) - 1;
      const BinCell& cell = tile->cells[2 * tile->bins + bin];
      EXPECT_EQ(cell.low, 2000 + static_cast<float>(first)) << level;
      EXPECT_EQ(cell.high, 2000 + static_cast<float>(last)) << level;
      EXPECT_NEAR(CellValue(cell, CellView::kMean), 2000 + static_cast<float>(first + last) / 2, 0.01);
      EXPECT_EQ(tile->cells[tile->bins + bin].nan, first <= 77 && 77 <= last ? 1 : 0) << level;
    }
  }
  const auto beyond = (*rank)->Tile(Query(0, 4999, 4), Whenever());
  ASSERT_TRUE(beyond.ok());
  EXPECT_FALSE(beyond->final);
  EXPECT_EQ(CellValue(beyond->cells[1], CellView::kHighest), kNoBinValue);
}

TEST_F(OpenRankTest, ALayerTakesItsSeriesTogether) {
  ASSERT_EQ(LayerOf("model.layers.3.mlp.w"), "model.layers.3");
  ASSERT_EQ(LayerOf("lm_head.weight"), "lm_head.weight");
  Open(3);
  Write(0, 10);
  auto rank = OpenRank::Open({rank_});
  ASSERT_TRUE(rank.ok());
  auto query = Query(1, 0, 5, RunFold::kLayer).rows;
  query.text = "LAYERS.1";
  const auto rows = (*rank)->Rows(query, Whenever());
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->rows.size(), 1u);
  EXPECT_EQ(rows->rows[0].label, "layers.1");
  EXPECT_EQ(rows->sizes[0].middle, 1005);
}

TEST_F(OpenRankTest, FollowsAFileThatGrowsAndTakesWhatIsWhole) {
  Open(2);
  Write(0, 100, 10);
  auto rank = OpenRank::Open({rank_});
  ASSERT_TRUE(rank.ok());
  const auto before = (*rank)->Info(Whenever());
  ASSERT_TRUE(before.ok());
  EXPECT_EQ(before->interval, 10);
  EXPECT_EQ(before->last_step, 90);
  Write(100, 30000, 10);
  std::ofstream(JoinPath(rank_, "monitor.series"), std::ios::app | std::ios::binary) << "cut off";
  const auto after = (*rank)->Info(Whenever());
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after->last_step, 29990);
  EXPECT_NE(after->version, before->version);
  const auto tile = (*rank)->Tile(Query(6, 0, 64), Whenever());
  ASSERT_TRUE(tile.ok());
  EXPECT_EQ(tile->cells[46].high, 29990);
  EXPECT_TRUE((*rank)->Tile(Query(6, 0, 40), Whenever())->final);
}

TEST_F(OpenRankTest, WithoutTimeItSaysThatItIsBehindAndGoesOnFromThere) {
  Open(200);
  Write(0, 20000);
  auto rank = OpenRank::Open({rank_});
  ASSERT_TRUE(rank.ok());
  const Deadline now = std::chrono::steady_clock::now();
  const auto first = (*rank)->Tile(Query(8, 0, 256), now);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(first->behind);
  EXPECT_FALSE(first->final);
  int asked = 0;
  while ((*rank)->Tile(Query(8, 0, 256), now)->behind && asked < 10000) ++asked;
  EXPECT_GT(asked, 1);
  EXPECT_EQ((*rank)->Tile(Query(8, 0, 256), now)->cells[78].high, 19999);
}

TEST_F(OpenRankTest, RefusesWhatIsNotThere) {
  Open(1);
  Write(0, 3);
  auto rank = OpenRank::Open({rank_});
  ASSERT_TRUE(rank.ok());
  auto query = Query(0, 0, 4);
  query.rows.stat = "max";
  EXPECT_EQ((*rank)->Tile(query, Whenever()).status().code(), Code::kBadInput);
  query = Query(30, int64_t{1} << 32, 4);
  EXPECT_EQ((*rank)->Tile(query, Whenever()).status().code(), Code::kUsage);
  RunCache cache;
  EXPECT_EQ(cache.Ranks(directory_->path())->at(0), 3);
  EXPECT_EQ(cache.Rank(directory_->path(), 0).status().code(), Code::kBadInput);
  EXPECT_FALSE(IsRunDirectory("/nowhere"));
}

TEST_F(OpenRankTest, ReadsCsvFilesAndAResumedRun) {
  const auto csv = [](const std::string& path, int first) {
    std::ofstream out(path);
    out << "vpp_stage,name,step,norm\n";
    for (int step = first; step < first + 5; ++step) out << "0,b," << step << ",2.5\n0,a," << step << ",\n";
  };
  csv(JoinPath(rank_, "grad_0-4.csv"), 0);
  csv(JoinPath(rank_, "grad_5-9.csv"), 5);
  const std::string again = JoinPath(directory_->path(), "Nov26_18-24-11-rank3-0000abce");
  std::filesystem::create_directory(again);
  csv(JoinPath(again, "grad_10-14.csv"), 10);
  auto rank = OpenRank::Open({rank_, again});
  ASSERT_TRUE(rank.ok());
  const auto tile = (*rank)->Tile(Query(0, 0, 15), Whenever());
  ASSERT_TRUE(tile.ok());
  ASSERT_EQ(tile->rows.size(), 2u);
  EXPECT_EQ(tile->rows[1].label, "b");
  EXPECT_EQ(tile->cells[15 + 14].high, 2.5F);
  EXPECT_EQ(tile->cells[0].nan, 1) << "pandas writes NaN as nothing";
}

}  // namespace
}  // namespace msprobe::view
