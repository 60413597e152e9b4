// Patterns of names, as a shell has them.
#pragma once

#include <string_view>

namespace msprobe {

/// Whether all of the text is like the pattern, in which * stands for anything and ? for one character. Takes at most
/// the product of both lengths.
bool MatchesWildcard(std::string_view text, std::string_view pattern);

}  // namespace msprobe
