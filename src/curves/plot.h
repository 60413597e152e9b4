// Curves drawn with characters.
#pragma once

#include <string>
#include <vector>

namespace msprobe {

struct PlotLine {
  std::vector<double> x, y;
  char mark = '*';
};

/// `height` rows of `width` places with a scale at the left and the steps below. Where lines meet the later one is
/// seen. Values that are not finite are left out.
std::string DrawPlot(const std::vector<PlotLine>& lines, size_t width, size_t height);

}  // namespace msprobe
