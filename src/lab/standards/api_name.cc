#include "lab/standards/api_name.h"

#include <vector>

#include "base/text.h"

namespace msprobe {

std::string ApiOfFullName(std::string_view full) {
  const std::vector<std::string_view> parts = Split(full, '.');
  if (parts.size() == 3) return std::string(parts[1]);
  return parts.size() == 4 ? std::string(parts[1]) + "." + std::string(parts[2]) : std::string();
}

OutputName ParseOutputName(std::string_view name) {
  const std::vector<std::string_view> parts = Split(name, '.');
  OutputName out;
  if (parts.size() != 6 && parts.size() != 7) return out;
  const std::string_view direction = parts[parts.size() - 3];
  out.full = name.substr(0, static_cast<size_t>(direction.data() - name.data()) - 1);
  out.api = ApiOfFullName(out.full);
  out.direction = direction;
  return out;
}

}  // namespace msprobe
