// Phrases of the story in both languages.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "diagnose/story/story.h"

namespace msprobe {

/// One phrase in each language, with the same arguments.
struct Phrase {
  std::string_view en, zh;
};

/// Says phrases in one language.
class Words {
 public:
  explicit Words(Language language) : language_(language) {}
  template <typename... Args>
  std::string operator()(const Phrase& phrase, const Args&... args) const {
    return fmt::format(fmt::runtime(language_ == Language::kChinese ? phrase.zh : phrase.en), args...);
  }
  std::string Join(const std::vector<std::string>& parts) const {
    return fmt::format("{}", fmt::join(parts, language_ == Language::kChinese ? "，" : ", "));
  }
  std::string_view colon() const { return language_ == Language::kChinese ? "：" : ": "; }
  std::string_view stop() const { return language_ == Language::kChinese ? "；" : "; "; }
  bool chinese() const { return language_ == Language::kChinese; }

 private:
  Language language_;
};

}  // namespace msprobe
