#include "dump/links.h"

#include <sys/stat.h>

#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace msprobe {
namespace {

/// "step0", "rank12"; "rank" alone, too.
bool IsPart(std::string_view name, std::string_view prefix) {
  return StartsWith(name, prefix) && (name.size() == prefix.size() || IsDigits(name.substr(prefix.size())));
}

Status Check(const std::string& directory, bool steps) {
  if (const std::string file = JoinPath(directory, "dump.json"); IsBrokenLink(file)) return Missing(file, "");
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    const bool step = steps && IsPart(name, "step"), rank = IsPart(name, "rank") || IsPart(name, "proc");
    if (!step && !rank) continue;
    const std::string path = JoinPath(directory, name);
    if (IsBrokenLink(path)) return Missing(path, "");
    const std::string file = JoinPath(path, "dump.json");
    if (rank && IsBrokenLink(file)) return Missing(file, "");
    if (step && IsDirectory(path)) MSP_RETURN_IF_ERROR(Check(path, false));
  }
  return OkStatus();
}

}  // namespace

bool IsBrokenLink(const std::string& path) {
  struct stat st {};
  return !PathExists(path) && lstat(path.c_str(), &st) == 0 && S_ISLNK(st.st_mode);
}

Status CheckDumpLinks(const std::string& directory) { return Check(directory, true); }

}  // namespace msprobe
