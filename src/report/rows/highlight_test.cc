#include "report/rows/highlight.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

using Color = Cell::Color;

class HighlightTest : public testing::Test {
 protected:
  /// Two matched rows, an input and an output, that agree.
  HighlightTest() {
    op_.op = "Functional.x.0.forward";
    op_.matched = true;
    op_.rows_used = op_.golden_used = 2;
    op_.target.resize(2);
    op_.golden.resize(2);
    op_.rows.resize(2);
    op_.tensors.resize(2);
    op_.target[1].state = ItemState::kOutput;
    for (size_t i = 0; i < 2; ++i) {
      op_.rows[i].golden = static_cast<int>(i);
      op_.rows[i].grad_consistent = true;
      Max(i, 0);
      for (MetricCell& cell : op_.tensors[i].cells) cell = {MetricCell::Kind::kNumber, 1};
      Cell(i, kMaxAbsErr, 0);
    }
  }
  void Max(size_t row, double percent) {
    StatDiff& d = op_.rows[row].diff[kMax];
    d.diff_cell = d.rel_cell = percent == 0 ? StatDiff::Cell::kZero : StatDiff::Cell::kNumber;
    d.diff = -percent;
    d.rel = percent;
  }
  void Cell(size_t row, MetricId metric, double value) { op_.tensors[row].cells[metric].value = value; }
  Color Of(size_t row, CompareMode mode = CompareMode::kStatistics) { return HighlightOp(op_, mode)[row].color; }
  OpDiff op_;
};

TEST_F(HighlightTest, StatisticsByTheRelativeErrorOfMax) {
  EXPECT_EQ(Of(0), Color::kNone);
  EXPECT_EQ(Of(1), Color::kNone);
  Max(1, 20);
  EXPECT_EQ(Of(1), Color::kYellow);
  Max(0, 2);
  EXPECT_EQ(Of(1), Color::kYellow) << "tenfold and both beyond 1";
  Max(0, 5);
  EXPECT_EQ(Of(1), Color::kNone) << "the input is no better";
  Max(1, 60);
  EXPECT_EQ(Of(1), Color::kRed);
  EXPECT_EQ(Of(0), Color::kNone);
  op_.op = "Functional.empty.0.forward";
  EXPECT_EQ(Of(1), Color::kNone);
}

TEST_F(HighlightTest, TensorsByLikeness) {
  constexpr CompareMode kMode = CompareMode::kTensor;
  EXPECT_EQ(Of(1, kMode), Color::kNone);
  Cell(1, kOneThousandthRatio, 0.85);
  EXPECT_EQ(Of(1, kMode), Color::kYellow);
  Cell(1, kOneThousandthRatio, 0.5);
  EXPECT_EQ(Of(1, kMode), Color::kRed);
  Cell(1, kOneThousandthRatio, 1);
  Cell(1, kCosine, 0.8);
  EXPECT_EQ(Of(1, kMode), Color::kYellow);
  Cell(1, kCosine, 1);
  Cell(1, kMaxAbsErr, 2e10);
  EXPECT_EQ(Of(1, kMode), Color::kRed);
  op_.tensors[1].cells[kMaxAbsErr].kind = MetricCell::Kind::kUnsupported;
  EXPECT_EQ(Of(1, kMode), Color::kNone);
}

TEST_F(HighlightTest, AMetricMayHaveARuleOfItsOwn) {
  Metric metric{.title = "Mine", .of_tensor = nullptr, .curve = CurveOf::kError};
  Highlight row;
  MarkWorse(metric, 0, 1e300, &row);
  EXPECT_TRUE(row.reasons.empty()) << "it has none";
  metric.yellow_beyond = 0.5;
  MarkWorse(metric, 0.25, 0.75, &row);
  MarkWorse(metric, 1, 0, &row);
  MarkWorse(metric, std::nan(""), 1, &row);
  EXPECT_TRUE(row.reasons.empty());
  MarkWorse(metric, 0.25, 1, &row);
  metric.curve = CurveOf::kLikeness;
  MarkWorse(metric, 1, 0.25, &row);
  EXPECT_EQ(row.color, Color::kYellow);
  EXPECT_EQ(row.reasons,
            (std::vector<std::string>{"yellow: Mine rises by more than 0.5", "yellow: Mine falls by more than 0.5"}));
}

TEST_F(HighlightTest, NanAndGradientsWithTheirReasons) {
  op_.rows[0].grad_consistent = false;
  EXPECT_EQ(Of(0), Color::kYellow);
  op_.target[0].stats[kMax] = StatValue::Of(std::string_view("nan"));
  const Highlight row = HighlightOp(op_, CompareMode::kStatistics)[0];
  EXPECT_EQ(row.color, Color::kRed);
  EXPECT_EQ(WithReasons("[]", row), "[\"red: the target holds NaN or infinity\", \"yellow: requires_grad differs\"]");
  EXPECT_EQ(WithReasons("[\"a\"]", Highlight{}), "[\"a\"]");
  op_.rows[0].golden = kNoItem;
  EXPECT_EQ(HighlightOp(op_, CompareMode::kStatistics)[0].reasons.size(), 1u) << "nothing to be consistent with";
}

}  // namespace
}  // namespace msprobe
