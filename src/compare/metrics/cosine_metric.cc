// Cosine of the angle between both tensors as vectors.
#include "compare/metrics/metric.h"

namespace msprobe {
namespace {

MetricCell OfTensor(const TensorMetrics& m, const LoopSums&) {
  constexpr double kNearlyOne = 0.9999;  // cosines above it have six decimals
  constexpr int kDecimals = 6;
  switch (m.cosine_state) {
    case CosineState::kLengthOne: return {};
    case CosineState::kBothZero: return MetricCell::Number(1);
    case CosineState::kNumber: break;
    default: return MetricCell::Nan();
  }
  const MetricCell cell = MetricCell::Rounded(m.cosine);
  return cell.value > kNearlyOne ? MetricCell::Number(RoundedTo(kDecimals, cell.value)) : cell;
}

std::string_view Note(const TensorMetrics& m) {
  switch (m.cosine_state) {
    case CosineState::kTargetZero: return "Cannot compare by Cosine Similarity, All the data is Zero in npu dump data.";
    case CosineState::kGoldenZero:
      return "Cannot compare by Cosine Similarity, All the data is Zero in Bench dump data.";
    case CosineState::kNan: return "Cannot compare by Cosine Similarity, the dump data has NaN.";
    default: return "";
  }
}

}  // namespace

const Metric kCosineMetric = {.title = "Cosine", .of_tensor = OfTensor, .note = Note, .curve = CurveOf::kLikeness};

}  // namespace msprobe
