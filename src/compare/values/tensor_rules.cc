#include "compare/values/tensor_rules.h"

#include <algorithm>

namespace msprobe {
namespace {

bool IsOutput(const OpDiff& op, size_t i) { return op.target[i].state == ItemState::kOutput; }

void Set(DiffRow* row, Finding finding, Verdict verdict) {
  row->findings |= finding;
  row->verdict = std::max(row->verdict, verdict);
}

/// Smallest value over the inputs or the outputs that have a number there; 1 without any.
double Smallest(const OpDiff& op, MetricId metric, bool outputs) {
  double out = 1;
  for (size_t i = 0; i < op.rows_used; ++i) {
    const MetricCell& cell = op.tensors[i].cells[metric];
    if (IsOutput(op, i) == outputs && cell.IsNumber()) out = std::min(out, cell.value);
  }
  return out;
}

/// A row whose values were not compared does not end as `pass` without a word.
void NoteNotCompared(const ItemView& item, TensorDiff* tensor, DiffRow* row) {
  if (row->findings != 0) return;
  const TensorOutcome outcome = tensor->outcome;
  const bool no_file = outcome == TensorOutcome::kNoData || outcome == TensorOutcome::kNoGoldenData;
  const bool says_nothing = outcome == TensorOutcome::kCompared || outcome == TensorOutcome::kEmpty ||
                            outcome == TensorOutcome::kShape || (no_file && !item.tensor);
  if (says_nothing && row->golden != kNoItem) return;
  const Verdict verdict = outcome == TensorOutcome::kNanInf ? Verdict::kError : Verdict::kWarning;
  tensor->finding = std::string(VerdictText(verdict)) + ": " +
                    (row->golden == kNoItem ? "Bench api/module unmatched." : tensor->note);
  Set(row, kNotCompared, verdict);
}

/// How the two tensors were read is said beside whatever was found.
void NoteOrder(TensorDiff* tensor, DiffRow* row) {
  if (tensor->order.empty()) return;
  tensor->finding += (tensor->finding.empty() ? "note: " : "; ") + tensor->order + ".";
  row->findings |= kNotCompared;
}

}  // namespace

void ApplyTensorRules(bool inputs_count, OpDiff* op) {
  const Thresholds& t = *op->thresholds;
  size_t first_output = 0;
  while (first_output < op->rows_used && !IsOutput(*op, first_output)) ++first_output;
  if (inputs_count && first_output < op->rows_used) {
    DiffRow* row = &op->rows[first_output];
    if (Smallest(*op, kOneThousandthRatio, false) > t.ratio_agrees &&
        Smallest(*op, kOneThousandthRatio, true) < t.ratio_wrong) {
      Set(row, kOneThousandth, Verdict::kError);
    }
    const double input = Smallest(*op, kCosine, false);
    if (input > t.cosine_agrees && input - Smallest(*op, kCosine, true) > t.cosine_drop) {
      Set(row, kCosineDrops, Verdict::kWarning);
    }
  }
  for (size_t i = 0; i < op->rows_used; ++i) {
    if (inputs_count || IsOutput(*op, i)) NoteNotCompared(op->target[i], &op->tensors[i], &op->rows[i]);
    NoteOrder(&op->tensors[i], &op->rows[i]);
  }
}

}  // namespace msprobe
