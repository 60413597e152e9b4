#include "compare/metrics/measure.h"

#include <vector>

namespace msprobe {
namespace {

/// A metric that has one finds its sums where it stands here.
std::vector<const PairLoop*> ListLoops() {
  std::vector<const PairLoop*> out;
  for (const Metric* metric : kMetrics) {
    if (metric->loop) out.push_back(metric->loop);
  }
  return out;
}

std::string ListElementless() {
  std::vector<std::string_view> titles;
  for (const Metric* metric : kMetrics) {
    if (!metric->of_element) titles.push_back(metric->title);
  }
  std::string out = "This is type of 0-d tensor, can not calculate ";
  for (size_t i = 0; i < titles.size(); ++i) {
    if (i > 0) out += i + 1 < titles.size() ? ", " : " and ";
    out.append("'").append(titles[i]).append("'");
  }
  return out + ". ";
}

}  // namespace

TensorMetrics MeasureTensors(const TensorView& target, const TensorView& golden, MetricsOptions options) {
  static const std::vector<const PairLoop*> kLoops = ListLoops();
  options.loops = kLoops;
  return CompareTensors(target, golden, options);
}

std::string SetTensorCells(const TensorMetrics& metrics, MetricCells* cells) {
  static const LoopSums kNothing;
  std::string note;
  size_t loop = 0;
  for (size_t k = 0; k < kMetricCount; ++k) {
    const Metric& metric = *kMetrics[k];
    const bool has_sums = metric.loop && loop < metrics.loops.size();
    (*cells)[k] = metric.of_tensor(metrics, has_sums ? metrics.loops[loop++] : kNothing);
    if (note.empty() && metric.note) note = metric.note(metrics);
  }
  return note;
}

std::string SetElementCells(const TensorMetrics& metrics, MetricCells* cells) {
  static const std::string kNote = ListElementless();
  for (size_t k = 0; k < kMetricCount; ++k) {
    if (kMetrics[k]->of_element) (*cells)[k] = kMetrics[k]->of_element(metrics);
  }
  return kNote;
}

void AddListCells(const TensorMetrics& metrics, MetricCells* cells) {
  for (size_t k = 0; k < kMetricCount; ++k) {
    if (kMetrics[k]->of_list) (*cells)[k] = kMetrics[k]->of_list(metrics);
  }
}

}  // namespace msprobe
