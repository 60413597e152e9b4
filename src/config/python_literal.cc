#include "config/python_literal.h"

#include <cctype>

#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr int kMaxDepth = 100;
constexpr size_t kMaxValues = 1 << 20;

class LiteralReader {
 public:
  LiteralReader(std::string_view text, const std::string& what) : text_(text), what_(what) {}
  size_t at() const { return at_; }

  StatusOr<ConfigValue> Value(int depth) {  // NOLINT(misc-no-recursion): kMaxDepth
    if (depth > kMaxDepth || ++values_ > kMaxValues) return Bad(Msg("is nested or longer than any configuration"));
    Spaces();
    const char c = Peek();
    if (c == '{') return Map(depth);
    if (c == '[' || c == '(') return List(c == '[' ? ']' : ')', depth);
    if (c == '\'' || c == '"') {
      MSP_ASSIGN_OR_RETURN(const std::string text, Text());
      return ConfigValue::Of(text);
    }
    return Word();
  }

  StatusOr<ConfigValue> Arguments() {
    ConfigValue out;
    out.kind = ConfigValue::Kind::kMap;
    while (true) {
      Spaces();
      if (Peek() == ')') {
        ++at_;
        return out;
      }
      const size_t begin = at_;
      while (std::isalnum(static_cast<unsigned char>(Peek())) || Peek() == '_') ++at_;
      if (at_ == begin) return Bad(Msg("is not a list of arguments"));
      const std::string key(text_.substr(begin, at_ - begin));
      Spaces();
      if (Peek() != '=') return Bad(Msg("is not a list of arguments"));
      ++at_;
      MSP_ASSIGN_OR_RETURN(ConfigValue value, Value(1));
      out.members.push_back({key, std::move(value)});
      Spaces();
      if (Peek() == ',')
        ++at_;
      else if (Peek() != ')')
        return Bad(Msg("is not a list of arguments"));
    }
  }

 private:
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  Status Bad(const Message& why) const {
    return BadInput(Msg("{}: what Python printed there {} (byte {} of it)", what_, why, at_));
  }

  StatusOr<ConfigValue> Map(int depth) {  // NOLINT(misc-no-recursion): kMaxDepth
    ConfigValue out;
    out.kind = ConfigValue::Kind::kMap;
    ++at_;
    while (true) {
      Spaces();
      if (Peek() == '}') {
        ++at_;
        return out;
      }
      if (at_ >= text_.size()) return Bad(Msg("has no end"));
      MSP_ASSIGN_OR_RETURN(const ConfigValue key, Value(depth + 1));
      Spaces();
      if (Peek() != ':') return Bad(Msg("is not a dict"));
      ++at_;
      MSP_ASSIGN_OR_RETURN(ConfigValue value, Value(depth + 1));
      out.members.push_back({key.Shown(), std::move(value)});
      Spaces();
      if (Peek() == ',')
        ++at_;
      else if (Peek() != '}')
        return Bad(Msg("is not a dict"));
    }
  }

  StatusOr<ConfigValue> List(char close, int depth) {  // NOLINT(misc-no-recursion): kMaxDepth
    ConfigValue out;
    out.kind = ConfigValue::Kind::kList;
    ++at_;
    while (true) {
      Spaces();
      if (Peek() == close) {
        ++at_;
        return out;
      }
      if (at_ >= text_.size()) return Bad(Msg("has no end"));
      MSP_ASSIGN_OR_RETURN(ConfigValue value, Value(depth + 1));
      out.items.push_back(std::move(value));
      Spaces();
      if (Peek() == ',')
        ++at_;
      else if (Peek() != close)
        return Bad(Msg("is not a list"));
    }
  }

  /// Python puts texts that stand side by side together.
  StatusOr<std::string> Text() {
    std::string out;
    do {
      const char quote = text_[at_++];
      while (at_ < text_.size() && text_[at_] != quote) TakeEscaped(text_, &at_, &out);
      if (at_ >= text_.size()) return Bad(Msg("has a text without an end"));
      ++at_;
      Spaces();
    } while (Peek() == '\'' || Peek() == '"');
    return out;
  }

  /// A number, a name, <Class.NAME: 'x'>, a call: up to the comma or bracket that ends it.
  StatusOr<ConfigValue> Word() {
    const size_t begin = at_;
    int level = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '(' || c == '[' || c == '{' || c == '<') ++level;
      if (level == 0 && (c == ',' || c == ':' || c == '}' || c == ']' || c == ')' || c == '\n')) break;
      if (level > 0 && (c == ')' || c == ']' || c == '}' || c == '>')) --level;
      ++at_;
    }
    std::string_view word = text_.substr(begin, at_ - begin);
    while (!word.empty() && std::isspace(static_cast<unsigned char>(word.back()))) word.remove_suffix(1);
    if (word.empty()) return Bad(Msg("has a value without text"));
    return PythonScalar(word);
  }

  std::string_view text_;
  const std::string& what_;
  size_t at_ = 0, values_ = 0;
};

}  // namespace

StatusOr<ConfigValue> ParsePythonLiteral(std::string_view text, const std::string& what, size_t* end) {
  LiteralReader reader(text, what);
  auto out = reader.Value(0);
  *end = reader.at();
  return out;
}

StatusOr<ConfigValue> ParsePythonArguments(std::string_view text, const std::string& what, size_t* end) {
  LiteralReader reader(text, what);
  auto out = reader.Arguments();
  *end = reader.at();
  return out;
}

}  // namespace msprobe
