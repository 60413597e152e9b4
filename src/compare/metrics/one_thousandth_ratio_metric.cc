// Share of the elements whose relative error is below 0.001.
#include "compare/metrics/metric.h"

namespace msprobe {
namespace {

MetricCell OfTensor(const TensorMetrics& m, const LoopSums&) {
  return MetricCell::Rounded(m.share(m.below_thousandth));
}
MetricCell OfList(const TensorMetrics& m) { return MetricCell::Number(m.below_thousandth > 0 ? 1 : 0); }

}  // namespace

const Metric kOneThousandthRatioMetric = {
    .title = "One Thousandth Err Ratio", .of_tensor = OfTensor, .of_list = OfList, .curve = CurveOf::kLikeness};

}  // namespace msprobe
