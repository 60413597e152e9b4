#include "view/run/step_bins.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace msprobe::view {
namespace {

constexpr size_t kMostCells = 8'000'000;  // 160 MB
constexpr size_t kLeastBins = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

size_t BinsFor(size_t rows) {
  return std::clamp(kMostCells / std::max<size_t>(rows, 1), kLeastBins, StepBins::kMostBins);
}

}  // namespace

void BinCell::Take(double value) {
  const auto v = static_cast<float>(value);
  if (std::isfinite(v)) {
    low = count == 0 ? v : std::min(low, v);
    high = count == 0 ? v : std::max(high, v);
    sum += v;
    ++count;
  } else if (std::isnan(v)) {
    nan = 1;
  } else {
    (v > 0 ? up : down) = 1;
  }
}

void BinCell::Merge(const BinCell& other) {
  if (other.count > 0) {
    low = count == 0 ? other.low : std::min(low, other.low);
    high = count == 0 ? other.high : std::max(high, other.high);
    sum += other.sum;
    count += other.count;
  }
  nan |= other.nan;
  up |= other.up;
  down |= other.down;
}

float CellValue(const BinCell& cell, CellView view) {
  if (cell.nan != 0) return std::numeric_limits<float>::quiet_NaN();
  if (cell.up != 0) return kInfinity;
  if (cell.down != 0) return -kInfinity;
  if (cell.count == 0) return kNoBinValue;
  if (view == CellView::kHighest) return cell.high;
  return view == CellView::kLowest ? cell.low : cell.sum / static_cast<float>(cell.count);
}

void StepBins::Expect(int64_t first_step, int64_t last_step, size_t rows) {
  const auto most = static_cast<int64_t>(BinsFor(rows));
  const auto last_bin = [&] { return FloorDiv(last_step, width()) - FloorDiv(first_step, width()); };
  while (last_bin() >= most) ++level_;
  cells_.reserve(static_cast<size_t>(std::max<int64_t>(last_bin() + 1, 0)) * rows);
}

void StepBins::Take(int64_t step, std::span<const uint32_t> rows, const double* values, size_t all_rows) {
  if (all_rows > rows_) Widen(all_rows);
  int64_t bin = FloorDiv(step, width());
  if (cells_.empty()) base_ = bin;
  while (bin - base_ >= static_cast<int64_t>(BinsFor(rows_)) || bin < base_) {
    if (bin < base_ && base_ - bin + bins() <= static_cast<int64_t>(BinsFor(rows_))) {
      cells_.insert(cells_.begin(), static_cast<size_t>(base_ - bin) * rows_, {});  // an earlier step of a resumed run
      base_ = bin;
      break;
    }
    Halve();
    bin = FloorDiv(step, width());
  }
  const auto at = static_cast<size_t>(bin - base_);
  if (cells_.size() < (at + 1) * rows_) cells_.resize((at + 1) * rows_);
  BinCell* out = &cells_[at * rows_];
  for (size_t i = 0; i < rows.size(); ++i) out[rows[i]].Take(values[i]);
}

const BinCell& StepBins::At(size_t row, int64_t bin) const {
  static const BinCell kEmpty;
  if (bin < base_ || bin >= base_ + bins() || row >= rows_) return kEmpty;
  return cells_[static_cast<size_t>(bin - base_) * rows_ + row];
}

// Series that began later.
void StepBins::Widen(size_t all_rows) {
  if (cells_.empty()) {
    rows_ = all_rows;
    return;
  }
  const auto old_bins = static_cast<size_t>(bins());
  std::vector<BinCell> wider(old_bins * all_rows);
  for (size_t b = 0; b < old_bins; ++b) {
    std::copy_n(cells_.begin() + static_cast<std::ptrdiff_t>(b * rows_), rows_,
                wider.begin() + static_cast<std::ptrdiff_t>(b * all_rows));
  }
  cells_ = std::move(wider);
  rows_ = all_rows;
  while (static_cast<size_t>(bins()) > BinsFor(rows_)) Halve();
}

void StepBins::Halve() {
  const int64_t last = base_ + bins() - 1, base = FloorDiv(base_, 2);
  std::vector<BinCell> half(bins() == 0 ? 0 : static_cast<size_t>(FloorDiv(last, 2) - base + 1) * rows_);
  for (int64_t b = base_; b <= last; ++b) {
    const BinCell* from = &cells_[static_cast<size_t>(b - base_) * rows_];
    BinCell* to = &half[static_cast<size_t>(FloorDiv(b, 2) - base) * rows_];
    for (size_t row = 0; row < rows_; ++row) to[row].Merge(from[row]);
  }
  cells_ = std::move(half);
  base_ = base;
  ++level_;
}

}  // namespace msprobe::view
