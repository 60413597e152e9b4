#include "compare/values/tensor_rules.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

/// An op whose rows are set one by one.
class TensorRulesTest : public testing::Test {
 protected:
  TensorDiff& Row(ItemState state, double cosine, double ratio) {
    ItemView& item = op_.target.emplace_back();
    item.state = state;
    item.tensor = true;
    DiffRow& row = op_.rows.emplace_back();
    row.golden = 0;
    ++op_.rows_used;
    TensorDiff& tensor = op_.tensors.emplace_back();
    tensor.outcome = TensorOutcome::kCompared;
    tensor.cells[kCosine] = {MetricCell::Kind::kNumber, cosine};
    tensor.cells[kOneThousandthRatio] = {MetricCell::Kind::kNumber, ratio};
    return tensor;
  }
  uint16_t Findings(size_t row) {
    ApplyTensorRules(true, &op_);
    return op_.rows[row].findings;
  }
  OpDiff op_;
};

TEST_F(TensorRulesTest, OutputsAreJudgedAgainstInputs) {
  Row(ItemState::kInput, 1, 0.95);
  Row(ItemState::kOutput, 1, 0.59);
  Row(ItemState::kOutput, 0.89, 1);
  EXPECT_EQ(Findings(1), kOneThousandth | kCosineDrops) << "the first output is told for all";
  EXPECT_EQ(op_.rows[1].verdict, Verdict::kError);
  EXPECT_EQ(op_.rows[2].findings, 0);
}

TEST_F(TensorRulesTest, LimitsAreNotFindings) {
  Row(ItemState::kParameter, 1, 0.95);
  Row(ItemState::kOutput, 0.9, 0.6);
  EXPECT_EQ(Findings(1), 0);
}

TEST_F(TensorRulesTest, InputsThatDifferExplainTheOutput) {
  Row(ItemState::kInput, 0.5, 0.9);
  Row(ItemState::kOutput, 0.1, 0);
  EXPECT_EQ(Findings(1), 0);
}

TEST_F(TensorRulesTest, TextsAreNoNumbers) {
  Row(ItemState::kInput, 1, 1).cells[kCosine].kind = MetricCell::Kind::kNan;
  TensorDiff& output = Row(ItemState::kOutput, 0, 0);
  output.cells[kCosine].kind = output.cells[kOneThousandthRatio].kind = MetricCell::Kind::kUnsupported;
  EXPECT_EQ(Findings(1), 0);
}

TEST_F(TensorRulesTest, NothingIsJudgedByInputsThatNobodyWrote) {
  Row(ItemState::kInput, 1, 1);
  Row(ItemState::kOutput, 0, 0);
  ApplyTensorRules(false, &op_);
  EXPECT_EQ(op_.rows[1].findings, 0);
}

TEST_F(TensorRulesTest, RowsThatWereNotComparedSaySo) {
  TensorDiff& missing = Row(ItemState::kInput, 1, 1);
  missing.outcome = TensorOutcome::kUnreadable;
  missing.note = "x is gone";
  Row(ItemState::kInput, 1, 1).outcome = TensorOutcome::kNanInf;
  Row(ItemState::kInput, 1, 1).outcome = TensorOutcome::kNoData;
  Row(ItemState::kInput, 1, 1).outcome = TensorOutcome::kNoData;
  op_.target.back().tensor = false;
  Row(ItemState::kInput, 1, 1).outcome = TensorOutcome::kUnmatched;
  op_.rows.back().golden = kNoItem;
  Row(ItemState::kInput, 1, 1).outcome = TensorOutcome::kShape;
  ApplyTensorRules(true, &op_);
  EXPECT_EQ(op_.tensors[0].finding, "warning: x is gone");
  const Verdict verdicts[] = {Verdict::kWarning, Verdict::kError,   Verdict::kWarning,
                              Verdict::kPass,    Verdict::kWarning, Verdict::kPass};
  for (size_t i = 0; i < std::size(verdicts); ++i) EXPECT_EQ(op_.rows[i].verdict, verdicts[i]) << i;
  EXPECT_EQ(op_.tensors[4].finding, "warning: Bench api/module unmatched.");
}

TEST_F(TensorRulesTest, OtherFindingsAreWordsEnough) {
  Row(ItemState::kInput, 1, 1).outcome = TensorOutcome::kNanInf;
  op_.rows[0].findings = kNanInf;
  EXPECT_EQ(Findings(0), kNanInf);
}

}  // namespace
}  // namespace msprobe
