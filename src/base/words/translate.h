// What commands print for people, in the language of the locale. Programs and files keep the English of a message;
// where it is printed, its template is looked up here.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/language.h"
#include "base/message.h"

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

/// The entry of a template, or of a line of one, as the sources have it: {:.3f} and {0} count as {}; null without one.
const Translation* EntryOf(std::string_view english);

/// A message in the language. What the user or a file named keeps every byte; what has no entry stays English.
std::string InLanguage(const Message& message, Language language);

/// Each line of `text` in the language; a line, or a part of one, that has no entry stays as it is.
std::string InLanguage(std::string_view text, Language language);

}  // namespace msprobe
