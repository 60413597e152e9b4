// Largest relative error of an element.
#include "compare/metrics/metric.h"
#include "compare/metrics/one_element.h"

namespace msprobe {
namespace {

MetricCell OfTensor(const TensorMetrics& m, const LoopSums&) { return MetricCell::Rounded(m.max_relative_err); }
MetricCell OfElement(const TensorMetrics& m) { return MetricCell::Rounded(ErrorsOfOne(m).relative); }

}  // namespace

const Metric kMaxRelativeErrMetric = {.title = "MaxRelativeErr",
                                      .of_tensor = OfTensor,
                                      .of_element = OfElement,
                                      .curve = CurveOf::kError,
                                      .atb_title = "Max Relative Err"};

}  // namespace msprobe
