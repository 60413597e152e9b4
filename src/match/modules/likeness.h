// How alike two names are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace msprobe {

inline constexpr size_t kNameLength = 48;  // of a name that is compared letter by letter

/// Share of letters in a longest common subsequence.
inline double Likeness(std::string_view a, std::string_view b) {
  a = a.substr(0, kNameLength), b = b.substr(0, kNameLength);
  if (a.empty() || b.empty()) return 0;
  size_t row[kNameLength + 1] = {};
  for (const char c : a) {
    size_t diagonal = 0;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = b[j - 1] == c ? diagonal + 1 : std::max(row[j], row[j - 1]);
      diagonal = above;
    }
  }
  return 2.0 * static_cast<double>(row[b.size()]) / static_cast<double>(a.size() + b.size());
}

}  // namespace msprobe
