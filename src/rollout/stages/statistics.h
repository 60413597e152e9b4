// Figures of two lists of the same length.
#pragma once

#include <vector>

namespace msprobe {

/// Mean of |a - b|.
double MeanDistance(const std::vector<double>& a, const std::vector<double>& b);
/// Root of the mean of (a - b)^2.
double RootMeanSquare(const std::vector<double>& a, const std::vector<double>& b);
/// Pearson's; 0 where one list does not vary.
double Correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace msprobe
