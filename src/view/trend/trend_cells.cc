#include "view/trend/trend_cells.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace msprobe::view {
namespace {

constexpr double kStoredInfinity = 1e9 + 1;
constexpr double kConsistent = 1.4826;  // a median deviation in standard deviations, of normal values
constexpr double kEqual = 1e-6;         // of the size: what is nearer than that is no deviation
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Median(std::vector<double>* values) {
  std::sort(values->begin(), values->end());
  const size_t middle = values->size() / 2;
  return values->size() % 2 != 0 ? (*values)[middle] : ((*values)[middle - 1] + (*values)[middle]) / 2;
}

// Of each value of a line; of one with NaN or an infinity beside finite ones, infinity for those.
std::vector<double> Deviations(const std::vector<double>& line) {
  std::vector<double> finite, off;
  for (const double v : line) {
    if (v != kNoTrendCell && std::isfinite(v)) finite.push_back(v);
  }
  std::vector<double> out(line.size(), 0);
  if (finite.empty()) return out;
  const double middle = Median(&finite);
  for (const double v : finite) off.push_back(std::abs(v - middle));
  const double least = kEqual * std::max(std::abs(finite.front()), std::abs(finite.back()));
  const double sigma = std::max(kConsistent * Median(&off), least);
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == kNoTrendCell) continue;
    if (!std::isfinite(line[i])) {
      out[i] = kInfinity;
    } else if (const double far = std::abs(line[i] - middle); far > least) {
      out[i] = far / sigma;
    }
  }
  return out;
}

}  // namespace

size_t StatColumn(const std::vector<std::string>& columns, std::string_view stat) {
  const auto at = std::find(columns.begin(), columns.end(), stat);
  return at == columns.end() ? 0 : static_cast<size_t>(at - columns.begin());
}

double TrendCell(const SqliteStatement& row, int at, size_t stat) {
  if (row.IsNull(at)) {
    const auto absent = static_cast<uint64_t>(row.Int(at + 1));
    return (absent >> stat & 1) != 0 ? kNoTrendCell : std::numeric_limits<double>::quiet_NaN();
  }
  if (!row.IsNumber(at)) return kNoTrendCell;
  const double value = row.Real(at);
  return std::abs(value) == kStoredInfinity ? std::copysign(kInfinity, value) : value;
}

std::vector<size_t> OutlierOrder(const std::vector<double>& values, size_t columns, OutlierLine line) {
  const size_t rows = columns == 0 ? 0 : values.size() / columns;
  std::vector<double> scores(rows, 0), own;
  const bool by_row = line == OutlierLine::kRow;
  for (size_t i = 0; i < (by_row ? rows : columns); ++i) {
    own.resize(by_row ? columns : rows);
    for (size_t k = 0; k < own.size(); ++k) own[k] = values[by_row ? i * columns + k : k * columns + i];
    const std::vector<double> far = Deviations(own);
    for (size_t k = 0; k < far.size(); ++k) {
      double& score = scores[by_row ? i : k];
      score = std::max(score, far[k]);
    }
  }
  std::vector<size_t> order(rows);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  return order;
}

}  // namespace msprobe::view
