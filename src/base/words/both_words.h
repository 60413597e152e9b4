// A text in both languages, of which each surface shows one: what is said goes to the terminal, the page and the JSON
// alike.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/language.h"
#include "base/words/translate.h"

namespace msprobe {

struct BothWords {
  std::string en, zh;

  const std::string& In(Language language) const { return language == Language::kChinese ? zh : en; }
  bool empty() const { return en.empty(); }
};

/// A message in both.
inline BothWords Both(const Message& message) { return {message.English(), InLanguage(message, Language::kChinese)}; }

/// One template in each language, with the same values; {0}, {1} move them.
template <typename... Values>
BothWords Both(std::string_view en, std::string_view zh, const Values&... values) {
  return {fmt::format(fmt::runtime(en), values...), fmt::format(fmt::runtime(zh), values...)};
}

}  // namespace msprobe
