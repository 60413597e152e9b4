#include "report/columns.h"

#include <fmt/core.h>

#include <cmath>

#include "base/text.h"
#include "compare/ruler.h"
#include "compare/tensor_diff.h"

namespace msprobe {

std::vector<std::string_view> TableColumns(CompareMode mode, bool with_stack, const std::vector<std::string>& custom,
                                           bool ruler) {
  std::vector<std::string_view> out = {"NPU Name",          "Bench Name",         "NPU Dtype",
                                       "Bench Dtype",       "NPU Tensor Shape",   "Bench Tensor Shape",
                                       "NPU Requires_grad", "Bench Requires_grad"};
  const auto add = [&](std::initializer_list<std::string_view> names) { out.insert(out.end(), names); };
  if (mode == CompareMode::kStatistics) {
    add({"Max diff", "Min diff", "Mean diff", "L2norm diff"});
    add({"MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr"});
  } else if (mode == CompareMode::kTensor) {
    out.insert(out.end(), kMetricNames.begin(), kMetricNames.end());
    out.insert(out.end(), custom.begin(), custom.end());
  } else {
    add({"NPU MD5", "BENCH MD5"});
  }
  if (mode != CompareMode::kChecksum) {
    add({"NPU max", "NPU min", "NPU mean", "NPU l2norm"});
    add({"Bench max", "Bench min", "Bench mean", "Bench l2norm"});
  }
  add({"Requires_grad Consistent", "Result", "Err_message"});
  if (with_stack) add({"NPU_Stack_Info"});
  if (mode == CompareMode::kTensor) add({"Data_name"});
  if (ruler) add({"Ruler Error", "Ruler Units", "Ruler Verdict"});
  return out;
}

std::string RulerText(double value, const RulerCell& cell) {
  if (cell.verdict == RulerVerdictText(RulerVerdict::kNone)) return std::string(kNotAvailableCell);
  return std::isinf(value) ? " inf" : fmt::format("{:.3g}", value);
}

std::string DataNameCell(std::string_view target, std::string_view golden) {
  std::string out = "[";
  AppendPyStrRepr(out, target);
  out += ", ";
  AppendPyStrRepr(out, golden);
  return out + "]";
}

}  // namespace msprobe
