// Share of the elements whose relative error is below 0.005.
#include "compare/metrics/metric.h"

namespace msprobe {
namespace {

MetricCell OfTensor(const TensorMetrics& m, const LoopSums&) {
  return MetricCell::Rounded(m.share(m.below_five_thousandths));
}
MetricCell OfList(const TensorMetrics& m) { return MetricCell::Number(m.below_five_thousandths > 0 ? 1 : 0); }

}  // namespace

const Metric kFiveThousandthsRatioMetric = {.title = "Five Thousandths Err Ratio",
                                            .of_tensor = OfTensor,
                                            .of_list = OfList,
                                            .atb_title = "Five Thousandth Err Ratio"};

}  // namespace msprobe
