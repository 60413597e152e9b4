// What ${name#pattern} and its kin make of a value, and patterns of case.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace msprobe {

/// Whether all of the text is like the pattern, in which * stands for anything and ? for one character.
bool IsLike(std::string_view text, std::string_view pattern);

/// A op B of [ ] and [[ ]]; nullopt where it compares numbers and these are none.
std::optional<bool> TestHolds(const std::string& a, const std::string& op, const std::string& b);

/// What follows the name in ${name...}: #, ##, % and %% cut an end off, / and // replace, ^ and , change the case, :1:2
/// is a part; nullopt for anything else.
std::optional<std::string> ChangedBy(std::string_view text, std::string_view operation);

}  // namespace msprobe
