#include "config/python_expression.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>

#include "base/text.h"

namespace msprobe {
using namespace python;
namespace {

constexpr int kDeepestExpression = 60;
constexpr size_t kMaxParts = 1 << 16;

bool NameLetter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class ExpressionReader {
 public:
  ExpressionReader(std::string_view text, const PythonNames& names) : text_(text), names_(names) {}

  ConfigValue Read() {
    ConfigValue out = Choice(0);
    Spaces();
    if (failed_ || at_ < text_.size()) {
      if (!failed_ && Peek() == ',') return Tuple(std::move(out));
      return Open(text_);
    }
    return out;
  }

 private:
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void Spaces() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '\\' || std::isspace(static_cast<unsigned char>(c))) {
        ++at_;
      } else {
        return;
      }
    }
  }
  bool Take(std::string_view sign) {
    Spaces();
    if (!StartsWith(text_.substr(at_), sign)) return false;
    at_ += sign.size();
    return true;
  }
  bool TakeWord(std::string_view word) {
    Spaces();
    if (!StartsWith(text_.substr(at_), word) || NameLetter(Peek(word.size()))) return false;
    at_ += word.size();
    return true;
  }
  ConfigValue Fail() {
    failed_ = true;
    return {};
  }

  /// a, b without brackets.
  ConfigValue Tuple(ConfigValue first) {
    std::vector<ConfigValue> items{std::move(first)};
    while (Take(",")) {
      Spaces();
      if (at_ >= text_.size()) break;
      items.push_back(Choice(0));
      if (failed_) return Open(text_);
    }
    Spaces();
    return at_ < text_.size() ? Open(text_) : ListOf(std::move(items));
  }

  ConfigValue Choice(int depth) {  // NOLINT(misc-no-recursion): kDeepestExpression
    if (depth > kDeepestExpression || ++parts_ > kMaxParts) return Fail();
    const size_t begin = at_;
    if (TakeWord("lambda")) {
      if (Take(":")) return Choice(depth + 1);  // of a field: what it makes
      while (at_ < text_.size() && Peek() != ':') ++at_;
      ++at_;
      Choice(depth + 1);
      return Open("lambda");
    }
    ConfigValue value = Either(depth + 1);
    if (failed_ || !TakeWord("if")) return value;
    const ConfigValue condition = Either(depth + 1);
    if (failed_ || !TakeWord("else")) return Fail();
    ConfigValue other = Choice(depth + 1);
    const auto holds = Truthy(condition);
    if (!holds) return value == other ? value : Open(text_.substr(begin, at_ - begin));
    return *holds ? value : other;
  }

  ConfigValue Either(int depth) {  // NOLINT(misc-no-recursion): kDeepestExpression
    ConfigValue value = Both(depth);
    while (!failed_ && TakeWord("or")) {
      ConfigValue other = Both(depth);
      const auto holds = Truthy(value);
      if (!holds) value = Open("or");
      if (holds && !*holds) value = std::move(other);
    }
    return value;
  }

  ConfigValue Both(int depth) {  // NOLINT(misc-no-recursion): kDeepestExpression
    ConfigValue value = Compared(depth);
    while (!failed_ && TakeWord("and")) {
      ConfigValue other = Compared(depth);
      const auto holds = Truthy(value);
      if (!holds) value = Open("and");
      if (holds && *holds) value = std::move(other);
    }
    return value;
  }

  ConfigValue Compared(int depth) {  // NOLINT(misc-no-recursion): kDeepestExpression
    if (TakeWord("not")) {
      if (depth > kDeepestExpression) return Fail();
      const auto holds = Truthy(Compared(depth + 1));
      return holds ? ConfigValue::Of(!*holds) : Open("not");
    }
    const ConfigValue left = Sum(depth);
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">", "is not", "is", "not in", "in"}) {
      const bool word = std::isalpha(static_cast<unsigned char>(sign[0]));
      if (failed_ || !(word ? TakeWord(sign) : Take(sign))) continue;
      const ConfigValue right = Sum(depth);
      if (failed_ || IsOpenValue(left) || IsOpenValue(right)) return Open("comparison");
      const auto a = NumberOf(left), b = NumberOf(right);
      if (sign == "==" || sign == "is") return ConfigValue::Of(left == right);
      if (sign == "!=" || sign == "is not") return ConfigValue::Of(!(left == right));
      if (sign == "in" || sign == "not in") {
        if (!right.IsList()) return Open("comparison");
        const bool there = std::find(right.items.begin(), right.items.end(), left) != right.items.end();
        return ConfigValue::Of(there == (sign == "in"));
      }
      if (!a || !b) return Open("comparison");
      return ConfigValue::Of(sign == "<" ? *a < *b : sign == ">" ? *a > *b : sign == "<=" ? *a <= *b : *a >= *b);
    }
    return left;
  }

  ConfigValue Sum(int depth) {  // NOLINT(misc-no-recursion): kDeepestExpression
    ConfigValue left = Product(depth);
    while (!failed_) {
      const bool plus = Take("+");
      if (!plus && !Take("-")) return left;
      const ConfigValue right = Product(depth);
      const auto a = NumberOf(left), b = NumberOf(right);
      const bool open = IsOpenText(left) || IsOpenText(right);
      if (a && b) {
        left = Numeric(plus ? *a + *b : *a - *b, Whole(left) && Whole(right));
      } else if (plus && !open && left.IsText() && right.IsText()) {
        left = ConfigValue::Of(left.text + right.text);
      } else if (plus && left.IsList() && right.IsList()) {
        left.items.insert(left.items.end(), right.items.begin(), right.items.end());
      } else {
        left = Open("sum");
      }
    }
    return left;
  }

  ConfigValue Product(int depth) {  // NOLINT(misc-no-recursion): kDeepestExpression
    ConfigValue left = Unary(depth);
    while (!failed_) {
      Spaces();
      std::string_view sign;
      for (const std::string_view one : {"//", "*", "/", "%"}) {
        if (sign.empty() && StartsWith(text_.substr(at_), one) && !StartsWith(text_.substr(at_), "**")) sign = one;
      }
      if (sign.empty()) return left;
      at_ += sign.size();
      const ConfigValue right = Unary(depth);
      const auto a = NumberOf(left), b = NumberOf(right);
      const bool whole = Whole(left) && Whole(right);
      if (!a || !b) {
        left = sign == "*" && left.IsList() && Whole(right) ? Repeated(left, right.integer) : Open("product");
      } else if (sign == "*") {
        left = Numeric(*a * *b, whole);
      } else if (*b == 0) {
        left = Open("product");
      } else if (sign == "/") {
        left = ConfigValue::Of(*a / *b);
      } else {
        const double quotient = std::floor(*a / *b);
        left = Numeric(sign == "%" ? *a - quotient * *b : quotient, whole);
      }
    }
    return left;
  }

  ConfigValue Unary(int depth) {  // NOLINT(misc-no-recursion): kDeepestExpression
    if (depth > kDeepestExpression) return Fail();
    Spaces();
    if (Peek() == '-' || Peek() == '+') {
      const bool minus = text_[at_++] == '-';
      const ConfigValue value = Unary(depth + 1);
      const auto number = NumberOf(value);
      return !number ? Open("sign") : Numeric(minus ? -*number : *number, Whole(value));
    }
    const ConfigValue base = Postfix(depth);
    if (failed_ || !Take("**")) return base;
    const ConfigValue exponent = Unary(depth + 1);
    const auto a = NumberOf(base), b = NumberOf(exponent);
    return a && b ? Numeric(std::pow(*a, *b), Whole(base) && Whole(exponent) && *b >= 0) : Open("power");
  }

  ConfigValue Postfix(int depth) {  // NOLINT(misc-no-recursion): kDeepestExpression
    ConfigValue value = Atom(depth);
    while (!failed_) {
      Spaces();
      if (Peek() == '[') {
        ++at_;
        const size_t begin = at_;
        ConfigValue index = Choice(depth + 1);
        if (failed_ || !Take("]")) {
          failed_ = false;
          at_ = begin;
          if (!SkipBrackets(']')) return Fail();
          value = Open("slice");
          continue;
        }
        value = Item(value, index);
      } else if (Peek() == '(') {
        ++at_;
        Arguments(depth);
        value = Open("call");
      } else if (Peek() == '.' && NameLetter(Peek(1))) {
        ++at_;
        const std::string name = TakeName();
        const ConfigValue* member = value.IsMap() ? MemberOf(value, name) : nullptr;
        value = member ? ConfigValue(*member) : Open(name);
      } else {
        return value;
      }
    }
    return value;
  }

  /// Up to the bracket that closes what is open, which is taken.
  bool SkipBrackets(char close) {
    int level = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (level == 0 && c == close) {
        ++at_;
        return true;
      }
      if (c == '(' || c == '[' || c == '{') ++level;
      if (c == ')' || c == ']' || c == '}') --level;
      if (c == '"' || c == '\'') {
        const size_t end = text_.find(c, at_ + 1);
        if (end == std::string_view::npos) return false;
        at_ = end;
      }
    }
    return false;
  }

  std::string TakeName() {
    const size_t begin = at_;
    while (NameLetter(Peek())) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  ConfigValue Atom(int depth) {  // NOLINT(misc-no-recursion): kDeepestExpression
    Spaces();
    const char c = Peek();
    if (c == '(' || c == '[') return Listed(c == '(' ? ')' : ']', depth);
    if (c == '{') return Braced(depth);
    if (c == '"' || c == '\'') return Texts(false);
    if (std::isdigit(static_cast<unsigned char>(c)) ||
        (c == '.' && std::isdigit(static_cast<unsigned char>(Peek(1))))) {
      return Number();
    }
    if (!NameLetter(c)) return Fail();
    const size_t begin = at_;
    std::string name = TakeName();
    if (Peek() == '"' || Peek() == '\'') {  // r"", f"", b""
      const bool formatted = name.size() <= 2 && name.find_first_of("fF") != std::string::npos;
      return name.size() <= 2 ? Texts(formatted) : Fail();
    }
    while (Peek() == '.' && NameLetter(Peek(1))) {
      ++at_;
      name += "." + TakeName();
    }
    if (name == "True" || name == "False") return ConfigValue::Of(name == "True");
    if (name == "None") return {};
    Spaces();
    if (Peek() == '(') {
      ++at_;
      return Call(name, begin, depth);
    }
    return Named(name);
  }

  /// A copy of what a name has; what names that are made of names would grow to is bounded.
  ConfigValue Copied(const ConfigValue& known) {
    const size_t size = SizeOf(known);
    if (size > kMaxParts || (parts_ += size) > kMaxParts) return Fail();
    return known;
  }

  ConfigValue Named(const std::string& name) {
    if (const ConfigValue* known = names_(name)) return Copied(*known);
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      const ConfigValue* value = names_(name.substr(0, dot));
      if (!value || !value->IsMap()) continue;
      for (std::string_view part : Split(std::string_view(name).substr(dot + 1), '.')) {
        value = value && value->IsMap() ? MemberOf(*value, part) : nullptr;
      }
      if (value) return Copied(*value);
    }
    return IsConstant(name) ? ConfigValue::Of(name) : Open(name);
  }

  ConfigValue Number() {
    const size_t begin = at_;
    if (Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X')) {
      at_ += 2;
      int64_t value = 0;
      while (std::isxdigit(static_cast<unsigned char>(Peek())) && value < (int64_t{1} << 58)) {
        const char c = text_[at_++];
        value = value * 16 + (std::isdigit(static_cast<unsigned char>(c)) ? c - '0' : (c | 32) - 'a' + 10);
      }
      return ConfigValue::Of(value);
    }
    while (std::isalnum(static_cast<unsigned char>(Peek())) || Peek() == '.' || Peek() == '_' ||
           ((Peek() == '-' || Peek() == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E'))) {
      ++at_;
    }
    std::string word(text_.substr(begin, at_ - begin));
    std::erase(word, '_');
    const ConfigValue value = PythonScalar(word);
    return value.IsText() ? Fail() : value;
  }

  ConfigValue Texts(bool formatted) {
    std::string out;
    bool open = false;
    while (true) {
      const char quote = Peek();
      const bool block = Peek(1) == quote && Peek(2) == quote;
      at_ += block ? 3 : 1;
      while (at_ < text_.size() && !(text_[at_] == quote && (!block || (Peek(1) == quote && Peek(2) == quote)))) {
        if (text_[at_] == '{' && formatted) open = true;
        TakeEscaped(text_, &at_, &out);
      }
      if (at_ >= text_.size()) return Fail();
      at_ += block ? 3 : 1;
      Spaces();
      formatted = false;
      if (Peek() == 'f' && (Peek(1) == '"' || Peek(1) == '\'')) {
        formatted = true;
        ++at_;
      }
      if (Peek() != '"' && Peek() != '\'') break;
    }
    return open ? Open(out) : ConfigValue::Of(out);
  }

  /// (a), (a, b), [a, b].
  ConfigValue Listed(char close, int depth) {  // NOLINT(misc-no-recursion): kDeepestExpression
    const size_t begin = ++at_;
    std::vector<ConfigValue> items;
    bool comma = false;
    while (!Take(std::string_view(&close, 1))) {
      Spaces();
      if (Peek() == '*') ++at_;
      ConfigValue item = Choice(depth + 1);
      Spaces();
      if (failed_ || (Peek() != ',' && Peek() != close)) {  // a comprehension
        failed_ = false;
        at_ = begin;
        return SkipBrackets(close) ? Open("list") : Fail();
      }
      items.push_back(std::move(item));
      if (Take(",")) comma = true;
    }
    if (close == ')' && items.size() == 1 && !comma) return items[0];
    return ListOf(std::move(items));
  }

  ConfigValue Braced(int depth) {  // NOLINT(misc-no-recursion): kDeepestExpression
    const size_t begin = ++at_;
    ConfigValue out;
    out.kind = ConfigValue::Kind::kMap;
    while (!Take("}")) {
      if (Take("**")) {
        const ConfigValue more = Choice(depth + 1);
        for (const ConfigMember& member : more.members) out.members.push_back(member);
      } else {
        const ConfigValue key = Choice(depth + 1);
        if (failed_ || !Take(":")) return Leave(begin, '}');
        ConfigValue value = Choice(depth + 1);
        out.members.push_back({key.Shown(), std::move(value)});
      }
      Spaces();
      if (failed_ || (Peek() != ',' && Peek() != '}')) return Leave(begin, '}');
      Take(",");
    }
    return out;
  }

  ConfigValue Leave(size_t begin, char close) {
    failed_ = false;
    at_ = begin;
    return SkipBrackets(close) ? Open("{}") : Fail();
  }

  /// Behind its bracket; a map of the arguments.
  ConfigValue Arguments(int depth) {  // NOLINT(misc-no-recursion): kDeepestExpression
    const size_t begin = at_;
    ConfigValue out;
    out.kind = ConfigValue::Kind::kMap;
    int64_t place = 0;
    while (!Take(")")) {
      Spaces();
      const size_t before = at_;
      std::string name = NameLetter(Peek()) && !std::isdigit(static_cast<unsigned char>(Peek())) ? TakeName() : "";
      Spaces();
      const bool named = !name.empty() && Peek() == '=' && Peek(1) != '=';
      if (named) {
        ++at_;
      } else {
        at_ = before;
        if (Take("**")) {
          const ConfigValue more = Choice(depth + 1);
          for (const ConfigMember& member : more.members) {
            if (member.first != kPythonCall) out.members.push_back(member);
          }
          Spaces();
          if (failed_ || (Peek() != ',' && Peek() != ')')) return Leave(begin, ')');
          Take(",");
          continue;
        }
        Take("*");
        name = std::to_string(place++);
      }
      ConfigValue value = Choice(depth + 1);
      Spaces();
      if (failed_ || (Peek() != ',' && Peek() != ')')) return Leave(begin, ')');
      out.members.push_back({std::move(name), std::move(value)});
      Take(",");
    }
    return out;
  }

  ConfigValue Call(const std::string& name, size_t begin, int depth) {  // NOLINT(misc-no-recursion): kDeepestExpression
    ConfigValue given = Arguments(depth);
    if (failed_ || !given.IsMap()) return failed_ ? Fail() : Open(text_.substr(begin, at_ - begin));
    return python::Called(name, std::move(given));
  }

  std::string_view text_;
  const PythonNames& names_;
  size_t at_ = 0, parts_ = 0;
  bool failed_ = false;
};

}  // namespace

ConfigValue PythonValue(std::string_view text, const PythonNames& names) {
  return ExpressionReader(text, names).Read();
}

}  // namespace msprobe
