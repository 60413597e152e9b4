// What `msprobe config_check` does with packs: collect one, compare two.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "checks/pack_compare.h"

namespace msprobe {

struct PackReport {
  std::string path;
  std::vector<std::string> parts;  // env, pip, hyperparameters
  std::vector<Message> warnings;
};

/// Packs this environment, and the settings of scripts, yaml and json files and logs. Secrets stay out of it.
StatusOr<PackReport> CollectPack(const std::vector<std::string>& files, const std::string& output);

struct PackComparison {
  std::string path;  // of result.xlsx
  std::string page;  // of result.html; "" if this msprobe was built without its pages
  std::vector<PackPart> parts;
  std::vector<Message> warnings;
};

/// Unpacks both into output/bench and output/cmp and writes output/result.xlsx and output/result.html, `older` with the
/// summary of 8.x.
StatusOr<PackComparison> ComparePackFiles(const std::string& bench, const std::string& cmp, const std::string& output,
                                          bool older);

}  // namespace msprobe
