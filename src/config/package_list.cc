#include "config/package_list.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace msprobe {
namespace {

bool IsName(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  });
}

std::string_view WithoutBlanks(std::string_view line) {
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.remove_suffix(1);
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front()))) line.remove_prefix(1);
  return line;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> ReadPackageList(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> out;
  size_t others = 0;
  bool table = false;  // pip list: "Package Version", a rule, and columns
  for (std::string_view line : Split(text, '\n')) {
    line = WithoutBlanks(line);
    if (line.empty() || StartsWith(line, "#") || StartsWith(line, "-")) continue;
    if (StartsWith(line, "Package ") && Contains(line, "Version")) {
      table = true;
      continue;
    }
    const size_t equals = line.find("=="), blank = line.find(' ');
    const size_t end = table ? blank : equals;
    const std::string_view name = line.substr(0, end);
    const bool found = end != std::string_view::npos && IsName(name);
    if (!found) {
      others += !Contains(line, " @ ");  // installed from a file or a repository: no version
      continue;
    }
    std::string_view version = WithoutBlanks(line.substr(table ? end : end + 2));
    version = version.substr(0, version.find_first_of(" ;"));
    if (!version.empty()) out.emplace_back(name, version);
  }
  if (others > out.size()) out.clear();
  return out;
}

}  // namespace msprobe
