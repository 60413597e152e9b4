// Phrases of the story in both languages.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/words/translate.h"
#include "compare/values/item_view.h"
#include "diagnose/story/story.h"
#include "ops/op_name.h"

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
  std::string InLanguage(const Message& message) const { return msprobe::InLanguage(message, language_); }
  std::string_view colon() const { return language_ == Language::kChinese ? "：" : ": "; }
  std::string_view stop() const { return language_ == Language::kChinese ? "；" : "; "; }
  bool chinese() const { return language_ == Language::kChinese; }

 private:
  Language language_;
};

/// Of parameters: what autograd adds up for them is no op.
inline bool IsGradient(const StoryOrigin& o) { return ParseOpName(o.op).direction == OpDirection::kParameterGrad; }

/// Whether the forward call is that of a layer whose weight is a matrix.
inline bool MultipliesByWeight(const StoryOrigin& o) {
  const bool layer = o.module_class.ends_with("Linear") || o.module_class == "Dense" || o.module_class == "Conv1D";
  return layer && o.op.find("backward") == std::string::npos;
}

/// Whether one shape of "[2, 3]" is a whole part of the other, as that of one rank is.
inline bool IsSplit(const StoryOrigin& o) {
  const auto [less, more] = std::minmax({ElementsOfShape(o.target), ElementsOfShape(o.golden)});
  return less > 0 && std::fmod(more, less) == 0;
}

}  // namespace msprobe
