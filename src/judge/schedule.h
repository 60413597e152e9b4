// How fast a schedule turns: whether it explains that updates became smaller or larger.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace msprobe {

/// Follows the logarithm of the learning rate, or where none is known that of what all updates have in common.
class Schedule {
 public:
  explicit Schedule(bool is_rate) : is_rate_(is_rate) {}
  void Add(double logarithm);
  /// Whether it moved by the better part of `change`, a difference of logarithms, over the last steps. A rate that is
  /// known explains each fall; a rise, and what updates do without a known rate, has to be gradual.
  bool Explains(double change) const;

 private:
  std::vector<double> last_;  // the newest at the end
  bool is_rate_;
  double highest_ = 0;
  /// How far the last jump went, where a rate that had fallen went back to where it was: each cycle of a schedule with
  /// restarts begins so.
  std::optional<double> restart_;
};

}  // namespace msprobe
