#include "lab/standards/status.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/text.h"
#include "lab/standards/plain_pass.h"

namespace msprobe {
namespace {

constexpr double kSameDirection = 0.99;
constexpr double kSmallError = 0.001;
constexpr double kHundredthShare = 0.01, kThousandthShare = 0.001, kTenThousandthShare = 0.0001;
constexpr auto kQuantised =
    std::to_array<std::string_view>({"npu_dynamic_quant", "npu_quant_lightning_indexer", "npu_rms_norm_dynamic_quant"});

/// The cosine of the two results; false where it decides that they are an error.
bool CheckCosine(const ResultPair& pair, const LargestValues& largest, StandardRelease release, CheckedOutput* out) {
  LabFigure& cell = out->row[Measure::kCosine];
  const std::vector<double>&a = pair.device.values, &b = pair.bench.values;
  if (a.size() == 1) {
    out->message = "one element has no direction";
    return true;
  }
  const double a_max = largest.device, b_max = largest.bench;
  const double zero = std::numeric_limits<double>::epsilon();
  if (a_max <= zero || b_max <= zero) {
    out->message = a_max <= zero && b_max <= zero ? "all elements are zero"
                   : a_max <= zero                ? "all elements of the device are zero"
                                                  : "all elements of the bench are zero";
    return a_max <= zero && b_max <= zero;
  }
  const CosineSums sums = SumsOfCosine(a.data(), b.data(), a.size(), a_max, b_max);
  const double cosine = sums.product / (std::sqrt(sums.device) * std::sqrt(sums.bench));
  cell = LabFigure::Double(std::isnan(cosine) ? cosine : std::clamp(cosine, -1.0, 1.0));
  if (std::isnan(cosine)) {
    out->message = "NaN or infinite elements have no direction";
    return release == StandardRelease::k26;
  }
  return cosine > kSameDirection;
}

/// The share of elements below a relative error passes when it exceeds 1 - that error.
bool CheckShare(const ResultErrors& e, double limit, LabFigure* cell) {
  uint64_t near = 0;
  const double bound = RoundTo(e.width(), limit);
  for (const double r : e.relative()) near += r < bound;
  const double share = static_cast<double>(near) / static_cast<double>(e.size());
  *cell = LabFigure::Double(share);
  return share > 1 - limit;
}

/// `errors`: null where they are not there yet.
LabStatus Decide(const ResultPair& pair, const LargestValues& largest, const ResultErrors* errors,
                 StandardRelease release, CheckedOutput* out) {
  if (!CheckCosine(pair, largest, release, out)) return LabStatus::kError;
  const Width width = std::max(pair.device.width(), pair.bench.width());
  out->row[Measure::kMaxAbsolute] = LabFigure::Of(largest.absolute, width);
  if (largest.absolute < RoundTo(width, kSmallError)) return LabStatus::kPass;
  std::optional<ResultErrors> own;
  const ResultErrors& e = errors ? *errors : own.emplace(pair);
  const DType dtype = pair.device.dtype;
  const bool half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  if (half && !CheckShare(e, kHundredthShare, &out->row[Measure::kHundredth])) return LabStatus::kError;
  const bool thousandth = CheckShare(e, kThousandthShare, &out->row[Measure::kThousandth]);
  if (half) return thousandth ? LabStatus::kPass : LabStatus::kWarning;
  const bool ten_thousandth = CheckShare(e, kTenThousandthShare, &out->row[Measure::kTenThousandth]);
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64) return LabStatus::kPass;
  if (!thousandth) return LabStatus::kError;
  return ten_thousandth ? LabStatus::kPass : LabStatus::kWarning;
}

}  // namespace

std::string_view LabStatusText(LabStatus s) {
  switch (s) {
    case LabStatus::kPass: return "pass";
    case LabStatus::kWarning: return "warning";
    case LabStatus::kError: return "error";
    case LabStatus::kSkip: return "SKIP";
    case LabStatus::kNone: break;
  }
  return " ";
}

LabStatus WorseOf(LabStatus a, LabStatus b) {
  for (const LabStatus s : {LabStatus::kError, LabStatus::kWarning}) {
    if (a == s || b == s) return s;
  }
  return LabStatus::kPass;
}

CheckedOutput CheckFloats(std::string_view api, const ResultPair& pair, bool float8_input, StandardRelease release) {
  CheckedOutput out;
  const DType dtype = pair.device.dtype;
  const Standard standard = StandardOf(api, dtype, float8_input, release);
  LargestValues largest;
  if (dtype != DType::kFloat64 && standard == Standard::kBenchmark &&
      MeasureBenchmarkAtOnce(pair, &out.row, &largest)) {
    out.status = Decide(pair, largest, nullptr, release, &out);
    return out;
  }
  const ResultErrors errors(pair);
  if (dtype != DType::kFloat64) MeasureByStandard(standard, errors, &out.row);
  largest = {LargestMagnitude(pair.device.values), LargestMagnitude(pair.bench.values),
             LargestMagnitude(errors.absolute())};
  out.status = Decide(pair, largest, &errors, release, &out);
  return out;
}

CheckedOutput CheckExact(uint64_t differ, uint64_t of) {
  CheckedOutput out;
  out.row[Measure::kErrorRate] = LabFigure::Double(static_cast<double>(differ) / static_cast<double>(of));
  out.status = differ == 0 ? LabStatus::kPass : LabStatus::kError;
  return out;
}

CheckedOutput CheckQuantised(double largest) {
  CheckedOutput out;
  out.row[Measure::kMaxAbsolute] = LabFigure::Whole(largest);
  out.status = largest <= 1 ? LabStatus::kPass : LabStatus::kError;
  return out;
}

bool IsQuantised(std::string_view api) {
  return std::find(kQuantised.begin(), kQuantised.end(), api) != kQuantised.end();
}

}  // namespace msprobe
