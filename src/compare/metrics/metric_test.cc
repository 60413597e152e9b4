#include "compare/metrics/metric.h"

#include <gtest/gtest.h>

#include <set>

#include "compare/metrics/measure.h"

namespace msprobe {
namespace {

TEST(MetricTest, EachHasATitleOfItsOwnAndGivesACell) {
  std::set<std::string_view> titles, atb_titles;
  const int64_t n = 3;
  const float target[] = {1, 2, 3}, golden[] = {1, -2, 4};
  const TensorMetrics metrics =
      MeasureTensors({target, DType::kFloat32, 1, &n, nullptr}, {golden, DType::kFloat32, 1, &n, nullptr});
  MetricCells cells;
  EXPECT_EQ(SetTensorCells(metrics, &cells), "");
  for (size_t k = 0; k < kMetricCount; ++k) {
    const Metric& metric = *kMetrics[k];
    ASSERT_FALSE(metric.title.empty());
    EXPECT_TRUE(titles.insert(metric.title).second) << metric.title;
    EXPECT_TRUE(atb_titles.insert(metric.atb_title.empty() ? metric.title : metric.atb_title).second) << metric.title;
    EXPECT_TRUE(cells[k].IsNumber()) << metric.title;
  }
}

TEST(MetricTest, TheNoteOfOneElementNamesWhatHasNoValue) {
  TensorMetrics one;
  one.scalar = true;
  MetricCells cells;
  const std::string note = SetElementCells(one, &cells);
  for (size_t k = 0; k < kMetricCount; ++k) {
    const Metric& metric = *kMetrics[k];
    EXPECT_EQ(note.find("'" + std::string(metric.title) + "'") == std::string::npos, cells[k].IsNumber())
        << metric.title << note;
    EXPECT_EQ(cells[k].IsNumber(), metric.of_element != nullptr);
  }
}

TEST(MetricTest, AListOfOneElementHasADistanceAndShares) {
  TensorMetrics one;
  one.scalar = true;
  one.max_abs_err = 0.5;
  one.below_five_thousandths = 1;
  MetricCells cells;
  SetElementCells(one, &cells);
  EXPECT_FALSE(cells[kEucDist].IsNumber());
  AddListCells(one, &cells);
  EXPECT_EQ(cells[kEucDist].value, 0.5);
  EXPECT_EQ(cells[kOneThousandthRatio].value, 0);
  EXPECT_EQ(cells[kFiveThousandthsRatio].value, 1);
  EXPECT_FALSE(cells[kCosine].IsNumber());
}

}  // namespace
}  // namespace msprobe
