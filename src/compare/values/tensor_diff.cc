#include "compare/values/tensor_diff.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace msprobe {

bool IsTensorModeColumn(std::string_view name) {
  static constexpr std::string_view kColumns[] = {
      "NPU Name",    "Bench Name",     "NPU Dtype",  "Bench Dtype",  "NPU Tensor Shape",         "Bench Tensor Shape",
      "NPU max",     "NPU min",        "NPU mean",   "NPU l2norm",   "NPU Requires_grad",        "Bench Requires_grad",
      "Bench max",   "Bench min",      "Bench mean", "Bench l2norm", "Requires_grad Consistent", "Result",
      "Err_message", "NPU_Stack_Info", "Data_name"};
  return std::find(std::begin(kColumns), std::end(kColumns), name) != std::end(kColumns) ||
         std::any_of(kMetrics.begin(), kMetrics.end(), [&](const Metric* metric) { return metric->title == name; });
}

std::string TensorLogText(const TensorDiff& diff) {
  if (diff.outcome <= TensorOutcome::kUnmatched) return diff.note + " ";
  std::string out;
  for (size_t k = 0; k < kMetricCount; ++k) {
    out += kMetrics[k]->title;
    out += ' ';
    diff.cells[k].AppendText(&out);
    out += ", ";
  }
  return out + diff.note;
}

std::string TensorLogLine(std::string_view name, const TensorDiff& diff) {
  return "[" + OneLine(name) + "] Compare result: " + TensorLogText(diff) + "\n";
}

}  // namespace msprobe
