// Two tensors are measured by all metrics.
#pragma once

#include <array>
#include <string>

#include "compare/metrics/metric.h"
#include "tensor/kernels/metrics.h"

namespace msprobe {

using MetricCells = std::array<MetricCell, kMetricCount>;

/// CompareTensors() with the loops of the metrics that have one.
TensorMetrics MeasureTensors(const TensorView& target, const TensorView& golden, MetricsOptions options = {});

/// The cells of tensors of several elements. Returns what the first metric has to note, mostly nothing.
std::string SetTensorCells(const TensorMetrics& metrics, MetricCells* cells);
/// Those of one element. Returns which metrics there are none of.
std::string SetElementCells(const TensorMetrics& metrics, MetricCells* cells);
/// What a list of one element has beside the cells of one element.
void AddListCells(const TensorMetrics& metrics, MetricCells* cells);

}  // namespace msprobe
