// How alike two texts are, as SequenceMatcher.ratio() of Python's difflib says it.
#pragma once

#include <string_view>

namespace msprobe {

/// Twice the characters of the matching blocks over those of both texts: 0 to 1. Texts that are not UTF-8 are compared
/// by bytes.
double SequenceRatio(std::string_view a, std::string_view b);

}  // namespace msprobe
