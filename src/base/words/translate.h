// What commands print for people, in the language of the locale. Programs and files keep the English of a message;
// where it is printed, its template is looked up here.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/language.h"
#include "base/message.h"

namespace msprobe {

/// A line of an English template without its indentation, {} for each field, and its Chinese: {} for the values in
/// their order, or {0}, {1} to move or leave out some.
struct Translation {
  std::string_view english, chinese;
};

/// All of words_*.def.
std::span<const Translation> AllTranslations();

/// A message in the language. What the user or a file named keeps every byte; what has no entry stays English.
std::string InLanguage(const Message& message, Language language);

}  // namespace msprobe
