// The map of names as a file that people read and edit.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "weights/weight_pair.h"

namespace msprobe {

/// What a person wrote, or what was printed and edited.
struct MapFile {
  std::vector<std::pair<std::string, std::string>> pairs;  // labels of A and B
  std::vector<std::string> only_a, only_b;                 // are not to be paired
};
StatusOr<MapFile> ReadMapFile(const std::string& path);
/// YAML that ReadMapFile() takes.
std::string MapText(const NameMap& map);

}  // namespace msprobe
