// A metric of two tensors: a column of tables, a line of graphs and of the page. metrics.def lists them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "compare/metrics/metric_cell.h"
#include "tensor/kernels/pair_loop.h"
#include "tensor/kernels/pair_metrics.h"

namespace msprobe {

/// How a curve is drawn of a column's numbers.
enum class CurveOf : uint8_t { kNothing, kError, kLikeness };  // 1 is the best likeness: 1 - value is drawn

struct Metric {
  std::string_view title;
  /// Of tensors of several elements, with the same NaN and infinities at the same places. `sums` is what `loop` gave;
  /// tensors from one and the same file are not read and give none (`identical` is true).
  MetricCell (*of_tensor)(const TensorMetrics& metrics, const LoopSums& sums);
  /// Of a single element, which may be NaN or infinite on either side; null: it has none.
  MetricCell (*of_element)(const TensorMetrics& metrics) = nullptr;
  /// Of a list of one element, in tables that know no tensors without dimensions; null: as of_element.
  MetricCell (*of_list)(const TensorMetrics& metrics) = nullptr;
  /// Why of_tensor gives no number, or what is special about it; else empty.
  std::string_view (*note)(const TensorMetrics& metrics) = nullptr;
  CurveOf curve = CurveOf::kNothing;
  std::string_view atb_title = {};  // in tables of ATB dumps, where it is another
  /// -hl: a result is yellow that is worse than the worst of the op's inputs by more than this. A likeness is worse
  /// where it is lower, all others where they are higher.
  double yellow_beyond = std::numeric_limits<double>::infinity();
  /// What the shared kernels do not give; null for what can be said of TensorMetrics, which costs nothing.
  const PairLoop* loop = nullptr;
};

#define MSPROBE_METRIC(name) extern const Metric k##name##Metric;
#include "compare/metrics/metrics.def"
#undef MSPROBE_METRIC

enum MetricId : uint8_t {
#define MSPROBE_METRIC(name) k##name,
#include "compare/metrics/metrics.def"
#undef MSPROBE_METRIC
  kMetricCount
};

/// By MetricId.
inline constexpr std::array<const Metric*, kMetricCount> kMetrics = {
#define MSPROBE_METRIC(name) &k##name##Metric,
#include "compare/metrics/metrics.def"
#undef MSPROBE_METRIC
};

}  // namespace msprobe
