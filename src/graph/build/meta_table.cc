#include "graph/build/meta_table.h"

#include <filesystem>
#include <string_view>
#include <system_error>

namespace msprobe {
namespace {

constexpr std::string_view kTablesFormat = "1";  // grows when a table loses a column or gives it another meaning

/// As the user gave it where there is no working directory to start from.
std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::string whole = std::filesystem::absolute(path, error).lexically_normal().string();
  if (error) return path;
  return whole.size() > 1 && whole.ends_with('/') ? whole.substr(0, whole.size() - 1) : whole;
}

}  // namespace

Status WriteMeta(const std::string& target, const std::string& golden, VisDb* db) {
  MSP_ASSIGN_OR_RETURN(SideTable * meta, db->MakeTable("meta", "key TEXT PRIMARY KEY, value TEXT"));
  const auto add = [meta](std::string_view key, std::string_view value) { return meta->Text(key).Text(value).Add(); };
  MSP_RETURN_IF_ERROR(add("format", kTablesFormat));
  MSP_RETURN_IF_ERROR(add("tool", "msprobe " MSPROBE_VERSION));
  MSP_RETURN_IF_ERROR(add("target", Absolute(target)));
  return golden.empty() ? OkStatus() : add("golden", Absolute(golden));
}

}  // namespace msprobe
