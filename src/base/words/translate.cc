#include "base/words/translate.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/text.h"

namespace msprobe {
namespace {

constexpr Translation kWords[] = {
#define MSP_WORDS(english, chinese) {english, chinese},
#include "base/words/words_alignment.def"
#include "base/words/words_commands.def"
#include "base/words/words_inputs.def"
#include "base/words/words_lab.def"
#include "base/words/words_parts.def"
#include "base/words/words_runs.def"
#include "base/words/words_summaries.def"
#undef MSP_WORDS
};

constexpr int kMostDepth = 4;            // of values that are texts with values
constexpr size_t kLongestPieces = 4096;  // of a text that is looked at piece by piece
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

struct Template {
  const Translation* words;
  std::vector<std::string_view> literals;  // what stands around the values, one more than there are
  size_t own = 0;                          // characters of them
};

Template Parse(const Translation& words) {
  Template out{&words, {}, 0};
  std::string_view rest = words.english;
  for (size_t at; (at = rest.find(kValue)) != std::string_view::npos; rest.remove_prefix(at + kValue.size())) {
    out.literals.push_back(rest.substr(0, at));
  }
  out.literals.push_back(rest);
  for (const std::string_view literal : out.literals) out.own += literal.size();
  return out;
}

/// Those with the most characters of their own first.
const std::vector<Template>& Templates() {
  static const std::vector<Template> all = [] {
    std::vector<Template> out;
    for (const Translation& words : kWords) out.push_back(Parse(words));
    std::stable_sort(out.begin(), out.end(), [](const Template& a, const Template& b) { return a.own > b.own; });
    return out;
  }();
  return all;
}

bool Match(const Template& t, std::string_view text, std::vector<std::string_view>* values) {
  const std::string_view first = t.literals.front(), last = t.literals.back();
  if (t.literals.size() == 1) return text == first;
  if (text.size() < t.own || !text.starts_with(first) || !text.ends_with(last)) return false;
  values->clear();
  text.remove_prefix(first.size());
  text.remove_suffix(last.size());
  for (size_t i = 1; i + 1 < t.literals.size(); ++i) {
    const size_t at = text.find(t.literals[i]);
    if (at == std::string_view::npos) return false;
    values->push_back(text.substr(0, at));
    text.remove_prefix(at + t.literals[i].size());
  }
  values->push_back(text);
  // Columns of a table are not the values of a sentence.
  return std::none_of(values->begin(), values->end(), [](std::string_view v) { return Contains(v, "  "); });
}

const Template* Find(std::string_view text, std::vector<std::string_view>* values) {
  for (const Template& t : Templates()) {
    if (t.own <= text.size() && Match(t, text, values)) return &t;
  }
  return nullptr;
}

std::string Translated(std::string_view text, int depth);

/// The Chinese with values in the places of {} or {0}.
std::string Put(std::string_view chinese, std::span<const std::string> values) {
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

/// The values of an unconverted text, which are texts themselves where they have an entry.
std::string Filled(std::string_view chinese, const std::vector<std::string_view>& values, int depth) {
  std::vector<std::string> shown;
  for (const std::string_view value : values) shown.push_back(Translated(value, depth - 1));
  return Put(chinese, shown);
}

struct Separator {
  std::string_view english, chinese;
};
constexpr Separator kSeparators[] = {{": ", "："}, {"; ", "；"}, {", ", "，"}};

/// A text without an entry may be made of some that have one: "PATH: why it cannot be used".
std::string ByPieces(std::string_view text, int depth) {
  for (const Separator& s : kSeparators) {
    const size_t at = text.find(s.english);
    if (at == std::string_view::npos) continue;
    const std::string_view left = text.substr(0, at), right = text.substr(at + s.english.size());
    const std::string before = Translated(left, depth - 1), behind = Translated(right, depth);
    if (before != left || behind != right) return before + std::string(s.chinese) + behind;
  }
  return std::string(text);
}

std::string Translated(std::string_view text, int depth) {
  if (depth < 0 || text.empty()) return std::string(text);
  std::vector<std::string_view> values;
  if (const Template* found = Find(text, &values)) return Filled(found->words->chinese, values, depth);
  // What has the marks of Chinese was told in it.
  if (text.size() > kLongestPieces || Contains(text, "：")) return std::string(text);
  return ByPieces(text, depth);
}

/// A line of a template: its key in the catalogue, and its arguments.
struct TemplateLine {
  size_t indent = 0;
  std::string key, english;
  std::vector<std::string> values;

  std::string Chinese() const {
    const Translation* entry = key.empty() ? nullptr : FindEntry(key);
    return std::string(indent, ' ') + (entry ? Put(entry->chinese, values) : english);
  }
};

void AddLiteral(std::string_view text, TemplateLine* line) {
  if (line->key.empty()) {
    const size_t indent = std::min(text.find_first_not_of(' '), text.size());
    line->indent += indent;
    text.remove_prefix(indent);
  }
  line->key += text;
  line->english += text;
}

std::string TemplateInChinese(const Message& message) {
  std::string out;
  TemplateLine line;
  auto part = message.parts().begin();
  for (const TemplatePiece& piece : PiecesOf(message.key())) {
    if (piece.field) {
      line.key += kValue;
      line.values.push_back(InLanguage(*part++, Language::kChinese));
      line.english += line.values.back();
      continue;
    }
    std::string_view text = piece.text;
    for (size_t at; (at = text.find('\n')) != std::string_view::npos; text.remove_prefix(at + 1)) {
      AddLiteral(text.substr(0, at), &line);
      out += line.Chinese() + '\n';
      line = {};
    }
    AddLiteral(text, &line);
  }
  return out + line.Chinese();
}

}  // namespace

std::span<const Translation> AllTranslations() { return kWords; }

const Translation* FindTranslation(std::string_view text) {
  std::vector<std::string_view> values;
  const Template* found = Find(text, &values);
  return found ? found->words : nullptr;
}

const Translation* EntryOf(std::string_view english) {
  std::string key;
  for (const TemplatePiece& piece : PiecesOf(english)) key += piece.field ? kValue : piece.text;
  return FindEntry(key);
}

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

std::string InLanguage(std::string_view text, Language language) {
  if (language == Language::kEnglish) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    out.append(line.substr(0, indent));
    out += Translated(line.substr(indent), kMostDepth);
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace msprobe
