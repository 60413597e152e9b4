// Largest absolute error of an element.
#include "compare/metrics/metric.h"
#include "compare/metrics/one_element.h"

namespace msprobe {
namespace {

MetricCell OfTensor(const TensorMetrics& m, const LoopSums&) { return MetricCell::Rounded(m.max_abs_err); }
MetricCell OfElement(const TensorMetrics& m) { return MetricCell::Rounded(ErrorsOfOne(m).absolute); }

}  // namespace

const Metric kMaxAbsErrMetric = {.title = "MaxAbsErr",
                                 .of_tensor = OfTensor,
                                 .of_element = OfElement,
                                 .curve = CurveOf::kError,
                                 .atb_title = "Max Absolute Err"};

}  // namespace msprobe
