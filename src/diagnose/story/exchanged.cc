#include "diagnose/story/exchanged.h"

#include <algorithm>
#include <cctype>

namespace msprobe {
namespace {

bool IsOlder(const StoryOrigin& o) { return o.anatomy && o.anatomy->kind == AnatomyKind::kStale; }

/// Whether each has what the golden run has in the other's place, by the figures of both.
bool AreExchanged(const StoryOrigin& a, const StoryOrigin& b) {
  const bool parameters = a.cause == Cause::kWeight && b.cause == Cause::kWeight && !a.parameter.empty() &&
                          !b.parameter.empty() && a.copies.empty() && b.copies.empty();
  if (!parameters || a.step != b.step || a.ranks != b.ranks) return false;
  if (IsOlder(a) && IsOlder(b) && a.anatomy->source == b.op && b.anatomy->source == a.op) return true;
  const bool read = a.what == b.what && !a.target.empty() && !b.target.empty() && a.what != "shape";
  return read && a.target == b.golden && b.target == a.golden;
}

/// Whether two pairs of parameters are exchanged, by figures of many digits.
bool HasTwoPairs(const std::vector<StoryOrigin>& origins) {
  constexpr size_t kManyDigits = 6;
  const auto tells = [](const StoryOrigin& o) {
    return std::ranges::count_if(o.target, [](unsigned char c) { return std::isdigit(c) != 0; }) >=
           static_cast<std::ptrdiff_t>(kManyDigits);
  };
  size_t exchanged = 0;
  for (const StoryOrigin& a : origins) {
    exchanged +=
        tells(a) && std::ranges::any_of(origins, [&](const StoryOrigin& b) { return &a != &b && AreExchanged(a, b); });
  }
  return exchanged >= 4;
}

}  // namespace

void JoinExchanged(std::vector<StoryOrigin>* origins) {
  // One figure may be alike by chance: the first pair is proved by all, or there are several.
  if (origins->size() < 2 || !(IsOlder(origins->front()) || HasTwoPairs(*origins))) return;
  size_t pairs = 0;
  for (size_t i = 0; i < origins->size(); ++i) {
    StoryOrigin& one = (*origins)[i];
    const auto behind = origins->begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const auto other = std::find_if(behind, origins->end(), [&](const StoryOrigin& o) { return AreExchanged(one, o); });
    if (other == origins->end()) {
      if (i == 0) return;
      continue;
    }
    one.exchanged = other->module.empty() ? other->parameter : other->module + "." + other->parameter;
    origins->erase(other);
    if (pairs++ == 0) continue;
    origins->erase(origins->begin() + static_cast<std::ptrdiff_t>(i--));
  }
  origins->front().exchanges = pairs - 1;
}

}  // namespace msprobe
