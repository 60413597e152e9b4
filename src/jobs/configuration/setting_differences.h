// Settings of two runs that differ and that no rule of the checklist knows.
#pragma once

#include <string>
#include <vector>

#include "checks/effective.h"

namespace msprobe {

struct SettingDifference {
  std::string key;                                           // "env NAME" for a variable that a script exports
  std::string target, golden, target_origin, golden_origin;  // "" for one that a side does not set
  bool incidental = false;                                   // of paths, logs, intervals: no training computes with it
  bool alone = false;  // of an own program at one side, where what the other takes for it is not known
};

/// Settings that both name and those that one leaves out where the other side is read by the same stack; without what
/// is secret, what is the same written otherwise, and what a quantity is read from.
std::vector<SettingDifference> DifferentSettings(const EffectiveRun& target, const EffectiveRun& golden);

/// Names and values of the settings that stand alone, for each side; "" without any.
struct AloneSettings {
  std::string target, golden;
  bool Any() const { return !target.empty() || !golden.empty(); }
};
AloneSettings AloneOf(const std::vector<SettingDifference>& settings);

}  // namespace msprobe
