#include "dump/output_bound.h"

#include <filesystem>

namespace msprobe {

uint64_t FileBytes(const std::string& path) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

std::string BytesText(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit < 4; ++unit) bytes /= 1000;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

Status CheckOutput(uint64_t bytes, uint64_t files, uint64_t limit, const Message& ways) {
  if (limit == 0 || bytes <= limit) return OkStatus();
  return UsageError(
      Msg("this would write about {} in {} files, more than the {} of --out-limit, and nothing was written: {}",
          BytesText(static_cast<double>(bytes)), files, BytesText(static_cast<double>(limit)), ways));
}

}  // namespace msprobe
