#include "report/columns.h"

namespace msprobe {

std::vector<std::string_view> TableColumns(CompareMode mode, bool with_stack) {
  std::vector<std::string_view> out = {"NPU Name",          "Bench Name",         "NPU Dtype",
                                       "Bench Dtype",       "NPU Tensor Shape",   "Bench Tensor Shape",
                                       "NPU Requires_grad", "Bench Requires_grad"};
  const auto add = [&](std::initializer_list<std::string_view> names) { out.insert(out.end(), names); };
  if (mode == CompareMode::kStatistics) {
    add({"Max diff", "Min diff", "Mean diff", "L2norm diff"});
    add({"MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr"});
    add({"NPU max", "NPU min", "NPU mean", "NPU l2norm"});
    add({"Bench max", "Bench min", "Bench mean", "Bench l2norm"});
  } else {
    add({"NPU MD5", "BENCH MD5"});
  }
  add({"Requires_grad Consistent", "Result", "Err_message"});
  if (with_stack) add({"NPU_Stack_Info"});
  return out;
}

}  // namespace msprobe
