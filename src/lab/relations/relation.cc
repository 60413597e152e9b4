#include "lab/relations/relation.h"

#include <algorithm>

namespace msprobe {

std::optional<size_t> FindRelation(std::string_view name) {
  const auto alike = [](char a, char b) { return a == b || (b == ' ' && (a == '_' || a == '-')); };
  for (size_t i = 0; i < kRelations.size(); ++i) {
    const std::string_view known = kRelations[i].name;
    if (std::equal(name.begin(), name.end(), known.begin(), known.end(), alike)) return i;
  }
  return std::nullopt;
}

}  // namespace msprobe
