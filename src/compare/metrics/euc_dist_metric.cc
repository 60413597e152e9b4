// Length of the difference as a vector.
#include "compare/metrics/metric.h"
#include "compare/metrics/one_element.h"

namespace msprobe {
namespace {

MetricCell OfTensor(const TensorMetrics& m, const LoopSums&) { return MetricCell::Number(m.euc_dist); }
MetricCell OfList(const TensorMetrics& m) { return MetricCell::Rounded(ErrorsOfOne(m).absolute); }

}  // namespace

const Metric kEucDistMetric = {.title = "EucDist",
                               .of_tensor = OfTensor,
                               .of_list = OfList,
                               .curve = CurveOf::kError,
                               .atb_title = "Euc Distance"};

}  // namespace msprobe
