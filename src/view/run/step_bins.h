// The values of many series over all steps in bounded memory: least, greatest and mean of neighbouring steps. When the
// run becomes longer, neighbours are merged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace msprobe::view {

/// Values of one or more series in some steps. NaN and infinities are counted, not summed.
struct BinCell {
  float low = 0, high = 0, sum = 0;
  uint32_t count = 0;  // finite values
  uint8_t nan = 0, up = 0, down = 0;

  bool empty() const { return count == 0 && (nan | up | down) == 0; }
  void Take(double value);
  void Merge(const BinCell& other);
};

/// What one number says of a cell.
enum class CellView : uint8_t { kHighest, kLowest, kMean };

/// NaN and infinities before all else; kNoBinValue for an empty cell.
float CellValue(const BinCell& cell, CellView view);
inline constexpr float kNoBinValue = -3.4028235e38F;

/// Bin `i` holds the steps from i * width() to before (i + 1) * width().
class StepBins {
 public:
  static constexpr size_t kMostBins = 2048;
  /// `interval`: steps between two records.
  explicit StepBins(int64_t interval) : interval_(interval) {}

  /// Before the first value: about these will come. What is known is not merged again and again while the bins fill.
  void Expect(int64_t first_step, int64_t last_step, size_t rows);
  void Take(int64_t step, std::span<const uint32_t> rows, const double* values, size_t all_rows);
  /// width() is interval << level().
  int level() const { return level_; }
  int64_t width() const { return interval_ << level_; }
  int64_t first() const { return base_; }  // bin
  int64_t bins() const { return rows_ == 0 ? 0 : static_cast<int64_t>(cells_.size() / rows_); }
  size_t rows() const { return rows_; }
  /// An empty cell outside of the bins.
  const BinCell& At(size_t row, int64_t bin) const;
  size_t bytes() const { return cells_.size() * sizeof(BinCell); }

 private:
  void Widen(size_t all_rows);
  void Halve();

  int64_t interval_;
  int level_ = 0;
  int64_t base_ = 0;
  size_t rows_ = 0;
  std::vector<BinCell> cells_;  // bin by bin
};

/// The bin of a step, also for negative ones.
constexpr int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }

}  // namespace msprobe::view
