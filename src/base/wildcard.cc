#include "base/wildcard.h"

#include <cstddef>

namespace msprobe {

bool MatchesWildcard(std::string_view text, std::string_view pattern) {
  size_t at = 0, p = 0, star = std::string_view::npos, from = 0;
  while (at < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = at;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[at])) {
      ++at, ++p;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      at = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace msprobe
