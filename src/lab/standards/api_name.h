// The parts of "Torch.linalg.inv.0.forward.output.0", a row of a details file.
#pragma once

#include <string>
#include <string_view>

namespace msprobe {

struct OutputName {
  std::string full;  // "Torch.linalg.inv.0"
  std::string api;   // "linalg.inv"
  std::string_view direction;
  bool valid() const { return !full.empty(); }
};

/// Of a name with six or seven parts; all others are not valid.
OutputName ParseOutputName(std::string_view name);
/// "inv" or "linalg.inv" of "Torch.inv.0" or "Torch.linalg.inv.0"; "" of any other.
std::string ApiOfFullName(std::string_view full);

}  // namespace msprobe
