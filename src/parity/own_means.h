// Numbers that each rank makes of its own rows, such as a loss within the model: their mean is that of all rows.
#pragma once

#include <map>
#include <string>

#include "parity/part_compare.h"

namespace msprobe {

class OwnMeans {
 public:
  explicit OwnMeans(int step) : step_(step) {}

  /// Whether a result that differs is one; then it is equal, and known by its name.
  bool Take(const std::string& name, const RankParts& parts, const WholeValues& whole, PartsComparison* found);
  bool Has(const std::string& name) const { return shares_.contains(name); }

  /// By what factor gradients on each rank differ from the whole's behind the gradient of such a number.
  void Learn(const std::string& name, const RankParts& parts, const WholeValues& whole,
             std::map<std::string, double>* scales) const;

 private:
  int step_;
  std::map<std::string, double> shares_;  // how many equal ones make the mean; 0: they are not equal
};

/// Means over what each rank has lie around the mean over all.
bool LiesAmong(const RankParts& parts, const WholeValues& whole);

}  // namespace msprobe
