// What ${name#pattern} and its kin make of a value, and what tests say.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace msprobe {

/// A op B of [ ] and [[ ]]; nullopt where it compares numbers and these are none.
std::optional<bool> TestHolds(const std::string& a, const std::string& op, const std::string& b);

/// What follows the name in ${name...}: #, ##, % and %% cut an end off, / and // replace, ^ and , change the case, :1:2
/// is a part; nullopt for anything else.
std::optional<std::string> ChangedBy(std::string_view text, std::string_view operation);

}  // namespace msprobe
