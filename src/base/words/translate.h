// What commands print for people, in the language of the locale. Errors and summaries are made in English, which
// programs and files keep; where a text is printed it is looked up here by its template.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/language.h"

namespace msprobe {

/// An English text, {} where a value stands, and its Chinese: {} for the values in their order, or {0}, {1} to move or
/// leave out some.
struct Translation {
  std::string_view english, chinese;
};

/// All of words.def.
std::span<const Translation> AllTranslations();

/// The entry that a text is an instance of: of several the one with the most characters of its own; null without one.
const Translation* FindTranslation(std::string_view text);

/// Each line of `text` in the language; a line, or a part of one, that has no entry stays as it is.
std::string InLanguage(std::string_view text, Language language);

}  // namespace msprobe
