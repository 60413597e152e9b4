#include "base/words/translate.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace msprobe {
namespace {

constexpr Translation kWords[] = {
#define MSP_WORDS(english, chinese) {english, chinese},
#include "base/words/words_alignment.def"
#include "base/words/words_commands.def"
#include "base/words/words_help.def"
#include "base/words/words_inputs.def"
#include "base/words/words_judgements.def"
#include "base/words/words_lab.def"
#include "base/words/words_lowp.def"
#include "base/words/words_messages.def"
#include "base/words/words_parity.def"
#include "base/words/words_parts.def"
#include "base/words/words_rollout.def"
#include "base/words/words_rollout_ops.def"
#include "base/words/words_runs.def"
#include "base/words/words_summaries.def"
#include "base/words/words_weights.def"
#undef MSP_WORDS
};

constexpr std::string_view kValue = "{}";

const Translation* FindEntry(std::string_view key) {
  static const std::unordered_map<std::string_view, const Translation*> all = [] {
    std::unordered_map<std::string_view, const Translation*> out;
    for (const Translation& words : kWords) out.emplace(words.english, &words);
    return out;
  }();
  const auto found = all.find(key);
  return found == all.end() ? nullptr : found->second;
}

/// The Chinese with values in the places of {} or {0}.
std::string Filled(std::string_view chinese, const std::vector<std::string>& values) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < chinese.size(); ++i) {
    const std::string_view rest = chinese.substr(i);
    const bool numbered = rest.size() > 2 && rest[0] == '{' && rest[1] >= '0' && rest[1] <= '9' && rest[2] == '}';
    if (!numbered && !rest.starts_with(kValue)) {
      out += chinese[i];
      continue;
    }
    const size_t value = numbered ? static_cast<size_t>(rest[1] - '0') : next++;
    if (value < values.size()) out += values[value];
    i += numbered ? 2 : 1;
  }
  return out;
}

/// A line of a template: its key in the catalogue, and its arguments.
struct TemplateLine {
  std::string indent, key, english;
  std::vector<std::string> values;

  std::string Chinese() const {
    const Translation* entry = FindEntry(key);
    return indent + (entry ? Filled(entry->chinese, values) : english);
  }
  void AddLiteral(std::string_view text) {
    if (key.empty()) {
      const size_t blanks = std::min(text.find_first_not_of(' '), text.size());
      indent += text.substr(0, blanks);
      text.remove_prefix(blanks);
    }
    key += text;
    english += text;
  }
  void AddValue(std::string value) {
    key += kValue;
    english += value;
    values.push_back(std::move(value));
  }
};

std::string TemplateInChinese(const Message& message) {
  std::string out;
  TemplateLine line;
  auto part = message.parts().begin();
  for (const TemplatePiece& piece : PiecesOf(message.key())) {
    if (piece.field) {
      line.AddValue(InLanguage(*part++, Language::kChinese));
      continue;
    }
    std::string_view text = piece.text;
    for (size_t at; (at = text.find('\n')) != std::string_view::npos; text.remove_prefix(at + 1)) {
      line.AddLiteral(text.substr(0, at));
      out += line.Chinese() + '\n';
      line = {};
    }
    line.AddLiteral(text);
  }
  return out + line.Chinese();
}

}  // namespace

std::span<const Translation> AllTranslations() { return kWords; }

std::string InLanguage(const Message& message, Language language) {
  if (language == Language::kEnglish) return message.English();
  switch (message.kind()) {
    case Message::Kind::kText: break;
    case Message::Kind::kPart:
      if (const Translation* entry = FindEntry(message.English())) return std::string(entry->chinese);
      break;
    case Message::Kind::kTemplate: return TemplateInChinese(message);
    case Message::Kind::kJoined: {
      std::string out;
      for (const Message& part : message.parts()) out += InLanguage(part, language);
      return out;
    }
  }
  return message.English();
}

}  // namespace msprobe
