// What a step was excused for is excused in what the next one begins with.
#pragma once

#include <map>
#include <string>

#include "parity/part_compare.h"

namespace msprobe {

/// How far parameters that were judged equal after a step are from those of the reference.
class CarriedDoubt {
 public:
  /// A parameter after the step; `mapping` says what of the whole each part is.
  void Keep(const std::string& name, const RankParts& after, const WholeValues& whole, const RankMapping& mapping);
  /// The next step begins: what was kept counts for its parameters.
  void Next();
  /// A parameter before the step may be as far away as it was after the step before.
  void Allow(const std::string& name, const RankParts& before, PartsComparison* found) const;
  /// How many times farther the parameters are than one more rounding has moved those of the reference; at least 1.
  double stretch() const;

 private:
  struct Distances {
    std::map<std::string, std::map<int, double>> of;  // parameter, rank
    double squares = 0, rounded = 0;                  // of all parameters
  };
  Distances now_, next_;
};

}  // namespace msprobe
