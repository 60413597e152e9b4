// What a person looks at in a tensor, or in two of one shape: how the values are spread, which are the worst, and a
// picture of a slice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tensor/kernels/stats.h"

namespace msprobe {

struct PreviewOptions {
  int64_t slice = 0;  ///< of the picture, when there are more than two dimensions: index over the leading ones, C order
  /// Called with each stretch of a contiguous tensor that is done with, from any thread: for maps of files.
  std::function<void(const void* begin, size_t bytes)> release;
};

inline constexpr int kPreviewBins = 64;  // a difference has one more, with zero in the middle
inline constexpr int kPreviewRows = 64, kPreviewColumns = 96;
inline constexpr int kPreviewWorst = 10;
/// More elements than this are refused.
inline constexpr int64_t kMostPreviewed = int64_t{1} << 32;

/// Finite values in equal bins from `from` to `to`.
struct Histogram {
  double from = 0, to = 0;
  std::vector<int64_t> counts;
};

/// The last two dimensions. Each cell shows the element that is farthest from zero among those it covers; NaN is
/// farther than any number.
struct HeatMap {
  int64_t rows = 0, columns = 0;
  int cell_rows = 0, cell_columns = 0;
  std::vector<double> cells;
};

struct PreviewSide {
  int64_t count = 0, nan = 0, plus_inf = 0, minus_inf = 0;
  double min = 0, max = 0;  ///< of the finite values
  Histogram histogram;      ///< both sides have the same bins
  HeatMap heat;
  int64_t slices = 1;
};

struct PreviewElement {
  int64_t index = 0;  ///< in C order
  double target = 0, golden = 0;
  double distance = 0;  ///< |target - golden|, infinite where only one is finite; of a single tensor |target|
};

/// target - golden; where both are the same NaN or infinity it is zero.
/// The line that fits the target best over the golden side: what is scaled, shifted or in another order shows there.
struct PreviewFit {
  int64_t count = 0;  ///< elements that are finite on both sides, and no limit of a mask
  double slope = 0, offset = 0, correlation = 0;
};
inline constexpr int64_t kPreviewPoints = 600;

struct PreviewDifference {
  int64_t equal = 0, not_finite = 0;  ///< `not_finite`: only one side is, or they are infinite in other ways
  Histogram histogram;
  HeatMap heat;
  std::optional<PreviewFit> fit;                  ///< none where one side is constant
  std::vector<std::pair<double, double>> points;  ///< (golden, target) of at most kPreviewPoints elements
};

struct TensorPreview {
  PreviewSide target;
  std::optional<PreviewSide> golden;
  std::optional<PreviewDifference> difference;  ///< null where the shapes differ
  std::vector<PreviewElement> worst;  ///< farthest first, at most kPreviewWorst; the first of equal ones first
};

/// Goes twice through the elements, first for their range; memory does not depend on how many there are, the result
/// not on the number of threads. Complex elements count by their absolute value. kBadInput for what has no numbers or
/// too many.
StatusOr<TensorPreview> PreviewTensors(const TensorView& target, const TensorView* golden,
                                       const PreviewOptions& options = {});

}  // namespace msprobe
