#include "curves/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace msprobe {
namespace {

struct PlotRange {
  double low = INFINITY, high = -INFINITY;
  void Take(double v) {
    if (!std::isfinite(v)) return;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  bool empty() const { return low > high; }
  size_t Place(double v, size_t places) const {
    if (high <= low) return places / 2;
    const double at = (v - low) / (high - low) * static_cast<double>(places - 1);
    return std::min(places - 1, static_cast<size_t>(std::lround(std::max(at, 0.0))));
  }
};

}  // namespace

std::string DrawPlot(const std::vector<PlotLine>& lines, size_t width, size_t height) {
  PlotRange x, y;
  for (const PlotLine& line : lines) {
    for (size_t i = 0; i < line.y.size(); ++i) {
      if (!std::isfinite(line.y[i])) continue;
      x.Take(line.x[i]);
      y.Take(line.y[i]);
    }
  }
  if (y.empty() || width < 2 || height < 2) return "";
  std::vector<std::string> rows(height, std::string(width, ' '));
  for (const PlotLine& line : lines) {
    for (size_t i = 0; i < line.y.size(); ++i) {
      if (std::isfinite(line.y[i]))
        rows[height - 1 - y.Place(line.y[i], height)][x.Place(line.x[i], width)] = line.mark;
    }
  }
  std::string out;
  for (size_t r = 0; r < height; ++r) {
    const double value = y.high - (y.high - y.low) * static_cast<double>(r) / static_cast<double>(height - 1);
    const bool scale = r == 0 || r + 1 == height || r == height / 2;
    std::string row = rows[r];
    row.erase(row.find_last_not_of(' ') + 1);
    out += scale ? fmt::format("{:>12.5g} |{}\n", value, row) : fmt::format("{:>12} |{}\n", "", row);
  }
  const std::string last = fmt::format("{:.0f}", x.high);
  out += fmt::format("{:>12} +{}\n{:>13}{:<{}}{}\n", "", std::string(width, '-'), "", fmt::format("{:.0f}", x.low),
                     width + 1 - std::min(last.size(), width), last);
  return out;
}

}  // namespace msprobe
