// What config_check found, in the page of the HTML report.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/status.h"
#include "checks/checklist.h"
#include "checks/pack_compare.h"
#include "jobs/configuration/setting_differences.h"

namespace msprobe {

/// What stands there of both runs: the one under test, then the reference.
struct ConfigurationSides {
  std::array<std::vector<std::string>, 2> files, frameworks;
};

/// The findings of the checklist, worst first, and all effective values. `files` are the tables beside the page. False,
/// and nothing is written, if this msprobe was built without the page.
StatusOr<bool> WriteChecklistPage(const std::string& path, const ConfigurationSides& sides,
                                  const std::vector<const CheckFinding*>& findings,
                                  const std::vector<SettingDifference>& settings, const Sheet& effective,
                                  const std::vector<Message>& warnings, const std::vector<std::string>& files);

/// The parts of two packs.
StatusOr<bool> WritePackPage(const std::string& path, const ConfigurationSides& sides,
                             const std::vector<PackPart>& parts, const std::vector<Message>& warnings,
                             const std::vector<std::string>& files);

}  // namespace msprobe
