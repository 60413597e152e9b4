#include "config/shell_values.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "config/shell_lexer.h"
#include "config/shell_patterns.h"

namespace msprobe {
namespace {

constexpr int kMaxDepth = 32;

bool IsNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
/// "1", "2", ..., "@", "*" and "#".
bool IsArgument(std::string_view name) {
  return name == "@" || name == "*" || name == "#" ||
         (!name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; }));
}
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// + - * / % << >> and brackets over whole numbers; names are looked up by `value`.
template <typename Lookup>
class Sum {
 public:
  Sum(std::string_view text, Lookup value) : text_(text), value_(value) {}
  std::optional<int64_t> Read() {
    const std::optional<int64_t> out = Shifts(0);
    Spaces();
    return at_ == text_.size() ? out : std::nullopt;
  }

 private:
  void Spaces() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  }
  char Next() {
    Spaces();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  std::optional<int64_t> Shifts(int depth) {  // NOLINT(misc-no-recursion): kMaxDepth
    std::optional<int64_t> left = Terms(depth);
    for (char op = Next(); left && (op == '<' || op == '>') && text_.substr(at_, 2) == std::string(2, op);
         op = Next()) {
      at_ += 2;
      const std::optional<int64_t> right = Terms(depth);
      if (!right || *right < 0 || *right > 40 || *left < 0 || *left > (int64_t{1} << 20)) return std::nullopt;
      left = op == '<' ? *left << *right : *left >> *right;
    }
    return left;
  }
  std::optional<int64_t> Terms(int depth) {  // NOLINT(misc-no-recursion): kMaxDepth
    std::optional<int64_t> left = Factors(depth);
    for (char op = Next(); left && (op == '+' || op == '-'); op = Next()) {
      ++at_;
      const std::optional<int64_t> right = Factors(depth);
      int64_t out = 0;
      if (!right ||
          (op == '+' ? __builtin_add_overflow(*left, *right, &out) : __builtin_sub_overflow(*left, *right, &out))) {
        return std::nullopt;
      }
      left = out;
    }
    return left;
  }
  std::optional<int64_t> Factors(int depth) {  // NOLINT(misc-no-recursion): kMaxDepth
    std::optional<int64_t> left = Atom(depth);
    for (char op = Next(); left && (op == '*' || op == '/' || op == '%'); op = Next()) {
      ++at_;
      const std::optional<int64_t> right = Atom(depth);
      int64_t out = 0;
      if (!right || (op != '*' && (*right == 0 || *right == -1))) return std::nullopt;
      if (op == '*' && __builtin_mul_overflow(*left, *right, &out)) return std::nullopt;
      left = op == '*' ? out : op == '/' ? *left / *right : *left % *right;
    }
    return left;
  }
  std::optional<int64_t> Atom(int depth) {  // NOLINT(misc-no-recursion): kMaxDepth
    if (depth > kMaxDepth) return std::nullopt;
    const char c = Next();
    if (c == '(') {
      ++at_;
      const std::optional<int64_t> out = Shifts(depth + 1);
      if (Next() != ')') return std::nullopt;
      ++at_;
      return out;
    }
    if (c == '$') ++at_;
    const size_t begin = at_;
    while (at_ < text_.size() && (IsNameChar(text_[at_]) || text_[at_] == '{' || text_[at_] == '}')) ++at_;
    std::string word(text_.substr(begin, at_ - begin));
    std::erase_if(word, [](char x) { return x == '{' || x == '}'; });
    if (word.empty()) return std::nullopt;
    if (!std::isdigit(static_cast<unsigned char>(word[0]))) word = value_(word);
    int64_t out = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
    return error == std::errc() && end == word.data() + word.size() && !word.empty() ? std::optional(out)
                                                                                     : std::nullopt;
  }

  std::string_view text_;
  Lookup value_;
  size_t at_ = 0;
};

}  // namespace

/// The fields of a word as they grow.
struct ShellValues::Part {
  std::vector<ShellField> done;
  ShellField now;
  bool any = false;      // `now` is a field even if it is empty
  bool literal = false;  // `now` holds text of the word itself, whose place it then has
  std::string file;
  int line = 0;

  void End() {
    if (any || !now.text.empty()) done.push_back(std::move(now));
    now = {{}, file, line};
    any = literal = false;
  }
  void Add(std::string_view text) {
    now.text += text;
    literal = true;
  }
};

const std::vector<ShellField>* ShellValues::Find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

void ShellValues::SetArguments(std::optional<std::vector<ShellField>> arguments) {
  std::erase_if(values_, [](const auto& item) { return IsArgument(item.first); });
  if (!arguments) return;
  for (size_t i = 0; i < arguments->size(); ++i) {
    bytes_ += (*arguments)[i].text.size();
    values_[std::to_string(i + 1)] = {(*arguments)[i]};
  }
  values_["#"] = {{std::to_string(arguments->size()), {}, 0}};
  values_["*"] = *arguments;
  values_["@"] = std::move(*arguments);
}

std::optional<std::vector<ShellField>> ShellValues::Arguments() const {
  const std::vector<ShellField>* all = Find("@");
  return all ? std::optional(*all) : std::nullopt;
}

/// Each in a field of its own.
void ShellValues::All(const std::vector<ShellField>& fields, Part* part) {
  bool first = true;
  for (const ShellField& field : fields) {
    bytes_ += field.text.size();
    if (!within_bounds()) return;
    if (!first) part->End();
    if (!first || part->now.text.empty()) part->now = {{}, field.file, field.line};
    part->now.text += field.text;
    part->any = true;
    first = false;
  }
}

std::vector<Setting> ShellValues::Exported() const {
  std::vector<Setting> out;
  for (const std::string& name : exported_) {
    const std::vector<ShellField>* value = Find(name);
    if (!value || value->empty()) continue;
    out.push_back({name, ConfigValue::Of(value->front().text), value->front().file, value->front().line});
  }
  return out;
}

void ShellValues::Variable(const std::string& name, std::string_view whole, bool quoted, Part* part) {
  const std::vector<ShellField>* value = Find(name);
  if (!value) {
    if (name == "@" || name == "*") return;
    part->Add(whole);  // only a run knows it
    return;
  }
  if (name == "@" || name == "*") return All(*value, part);
  if (value->empty()) return;
  const ShellField& first = value->front();
  if (!part->literal && part->now.text.empty()) {
    part->now.file = first.file;
    part->now.line = first.line;
  }
  AddSplit(first.text, quoted, part);
}

/// As it is within quotes, else a field for each of its words.
void ShellValues::AddSplit(const std::string& text, bool quoted, Part* part) {
  bytes_ += text.size();
  if (!within_bounds()) return;  // one word may hold a long value many times
  if (quoted) {
    part->now.text += text;
    return;
  }
  const char* at = text.data();
  for (const char* end = at + text.size();; ++at) {
    const char* start = at;
    while (at != end && (static_cast<unsigned char>(*at) > ' ' || !IsSpace(*at))) ++at;
    part->now.text.append(start, at);
    if (at == end) break;
    const auto [file, line] = std::pair(part->now.file, part->now.line);
    part->End();
    part->now.file = file;
    part->now.line = line;
  }
}

std::string ShellValues::Arithmetic(std::string_view text) {
  const auto lookup = [this](const std::string& name) {
    const std::vector<ShellField>* value = Find(name);
    return value && !value->empty() ? value->front().text : std::string();
  };
  const std::optional<int64_t> sum = Sum(text, lookup).Read();
  return sum ? std::to_string(*sum) : "$((" + std::string(text) + "))";
}

void ShellValues::Braces(std::string_view inner, std::string_view whole, bool quoted,  // NOLINT(misc-no-recursion)
                         Part* part, int depth) {
  size_t end = 0;
  while (end < inner.size() && IsNameChar(inner[end])) ++end;
  if (end == 0 && (StartsWith(inner, "@") || StartsWith(inner, "*") || StartsWith(inner, "#"))) end = 1;
  const std::string name(inner.substr(0, end));
  std::string_view rest = inner.substr(end);
  if (name.empty()) return part->Add(whole);
  const std::vector<ShellField>* value = Find(name);
  if (StartsWith(rest, "[@]") || StartsWith(rest, "[*]")) {
    const std::string_view other = rest.substr(3);
    if (value && (other.empty() || !value->empty())) return All(*value, part);
    if (StartsWith(other, ":-")) return ExpandInto(other.substr(2), quoted, part, depth + 1);
    return part->Add(whole);
  }
  if (StartsWith(rest, "[") && EndsWith(rest, "]")) {
    size_t index = 0;
    const std::string_view digits = rest.substr(1, rest.size() - 2);
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (value && error == std::errc() && stop == digits.data() + digits.size() && index < value->size()) {
      bytes_ += (*value)[index].text.size();
      return within_bounds() ? part->Add((*value)[index].text) : void();
    }
    if (const auto* keyed = Find(name + "[" + Text(digits) + "]"); keyed && !keyed->empty()) {
      return AddSplit(keyed->front().text, quoted, part);
    }
    return part->Add(name == "BASH_SOURCE" ? JoinPath(directory_, "script") : std::string(whole));
  }
  if (name == "@" && value && StartsWith(rest, ":")) {  // those from a number on
    size_t from = 0;
    const auto [stop, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), from);
    if (error != std::errc() || stop != rest.data() + rest.size() || from == 0) return part->Add(whole);
    return All({value->begin() + static_cast<std::ptrdiff_t>(std::min(from - 1, value->size())), value->end()}, part);
  }
  const bool empty_counts = StartsWith(rest, ":");
  if (empty_counts) rest.remove_prefix(1);
  const bool set = value && (!empty_counts || (!value->empty() && !value->front().text.empty()));
  if (rest.empty() && !empty_counts) return Variable(name, whole, quoted, part);
  const char op = rest.empty() ? '\0' : rest[0];
  if (op == '-' || op == '=') {
    if (set) return Variable(name, whole, quoted, part);
    ExpandInto(rest.substr(1), quoted, part, depth + 1);
    if (op == '=') Set(name, {{part->now.text, part->file, part->line}});
    return;
  }
  if (op == '+') {
    if (set) ExpandInto(rest.substr(1), quoted, part, depth + 1);
    return;
  }
  if (op == '?' && set) return Variable(name, whole, quoted, part);
  if (value && !value->empty()) {
    const std::string operation = Text("\"" + (empty_counts ? ":" + std::string(rest) : std::string(rest)) + "\"");
    if (const auto changed = ChangedBy(value->front().text, operation)) return AddSplit(*changed, quoted, part);
  }
  part->Add(whole);
}

size_t ShellValues::Dollar(std::string_view word, size_t at, bool quoted, Part* part,  // NOLINT(misc-no-recursion)
                           int depth) {
  const auto closing = [&](size_t from, char open, char close) {
    int level = 0;
    for (size_t i = from; i < word.size(); ++i) {
      if (word[i] == open) ++level;
      if (word[i] == close && --level == 0) return i;
    }
    return word.size() - 1;
  };
  const char next = at + 1 < word.size() ? word[at + 1] : '\0';
  if (next == '{') {
    const size_t end = closing(at + 1, '{', '}');
    Braces(word.substr(at + 2, end - at - 2), word.substr(at, end + 1 - at), quoted, part, depth);
    return end + 1;
  }
  if (next == '(') {
    const size_t end = closing(at + 1, '(', ')');
    const std::string_view inner = word.substr(at + 2, end > at + 2 ? end - at - 2 : 0);
    if (StartsWith(inner, "(") && EndsWith(inner, ")") && inner.size() >= 2) {
      part->Add(Arithmetic(inner.substr(1, inner.size() - 2)));
    } else if (Contains(inner, "dirname") && (Contains(inner, "$0") || Contains(inner, "BASH_SOURCE"))) {
      part->Add(directory_);
    } else if (const auto output = run_ ? run_(inner) : std::nullopt) {
      AddSplit(*output, quoted, part);
    } else {
      part->Add(word.substr(at, end + 1 - at));
    }
    return end + 1;
  }
  size_t end = at + 1;
  if (next == '@' || next == '*' || next == '#' || next == '?' || std::isdigit(static_cast<unsigned char>(next))) {
    ++end;
  } else {
    while (end < word.size() && IsNameChar(word[end])) ++end;
  }
  if (end == at + 1) {
    part->Add("$");
    return end;
  }
  Variable(std::string(word.substr(at + 1, end - at - 1)), word.substr(at, end - at), quoted, part);
  return end;
}

void ShellValues::ExpandInto(std::string_view word, bool quoted, Part* part, int depth) {  // NOLINT(misc-no-recursion)
  if (depth > kMaxDepth || !within_bounds()) return part->Add(word);
  bytes_ += word.size();
  for (size_t i = 0; i < word.size();) {
    const char c = word[i];
    if (c == '\\' && i + 1 < word.size()) {
      if (word[i + 1] == '\n') {
        // goes on in the next line
      } else if (quoted && std::string_view("\"\\$`").find(word[i + 1]) == std::string_view::npos) {
        part->Add(word.substr(i, 2));
      } else {
        part->Add(word.substr(i + 1, 1));
      }
      i += 2;
    } else if (c == '\'' && !quoted) {
      const size_t end = std::min(word.find('\'', i + 1), word.size());
      part->Add(word.substr(i + 1, end - i - 1));
      part->any = true;
      i = end + 1;
    } else if (c == '"' && !quoted) {
      size_t end = i + 1;
      int braces = 0;
      for (; end < word.size() && (word[end] != '"' || braces > 0); ++end) {
        if (word[end] == '\\')
          ++end;
        else if (word[end] == '{' && word[end - 1] == '$')
          ++braces;
        else if (word[end] == '(' && word[end - 1] == '$')
          ++braces;
        else if ((word[end] == '}' || word[end] == ')') && braces > 0)
          --braces;
      }
      end = std::min(end, word.size());
      const std::string_view inner = word.substr(i + 1, end - i - 1);
      const bool array =
          (EndsWith(inner, "[@]}") && StartsWith(inner, "${")) || inner == "$@" || StartsWith(inner, "${@");
      const size_t before = part->done.size();
      ExpandInto(inner, true, part, depth + 1);
      if (!array || part->done.size() != before) part->any = part->any || !array;
      i = end + 1;
    } else if (c == '$') {
      i = Dollar(word, i, quoted, part, depth);
    } else if (c == '`') {
      const size_t end = std::min(word.find('`', i + 1), word.size() - 1);
      part->Add(word.substr(i, end + 1 - i));
      i = end + 1;
    } else {
      const size_t end = std::min(word.find_first_of("\\'\"$`", i + 1), word.size());
      part->Add(word.substr(i, end - i));
      i = end;
    }
  }
}

std::vector<ShellField> ShellValues::Expand(std::string_view word, const std::string& file, int line) {
  Part part;
  part.file = file;
  part.line = line;
  part.now = {{}, file, line};
  ExpandInto(word, false, &part, 0);
  part.End();
  return std::move(part.done);
}

std::string ShellValues::Text(std::string_view word) {
  std::string out;
  for (const ShellField& field : Expand(word, "", 0)) {
    if (!out.empty()) out += ' ';
    out += field.text;
  }
  return out;
}

bool ShellValues::Assign(std::string_view word, const std::string& file,  // NOLINT(misc-no-recursion): of its elements
                         int line) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  std::string_view name_text = word.substr(0, equals), value = word.substr(equals + 1);
  const bool append = EndsWith(name_text, "+");
  if (append) name_text.remove_suffix(1);
  const std::string_view plain = name_text.substr(0, name_text.find('['));
  if (plain.empty() || std::isdigit(static_cast<unsigned char>(plain[0])) ||
      !std::all_of(plain.begin(), plain.end(), IsNameChar) || (plain != name_text && !EndsWith(name_text, "]"))) {
    return false;
  }
  // An element of an array that names count has a value of its own.
  const std::string name = plain == name_text ? std::string(plain) : Text(name_text);
  std::vector<ShellField> fields;
  const bool array = StartsWith(value, "(") && EndsWith(value, ")");
  if (array) {
    const auto tokens = ShellTokens(value.substr(1, value.size() - 2), file, line);
    if (!tokens.ok()) return true;  // the lexer has seen this text as one word before
    for (const ShellToken& token : *tokens) {
      if (token.kind == ShellToken::Kind::kEndOfLine) continue;
      if (StartsWith(token.text, "[") && Contains(token.text, "]=")) {
        Assign(name + std::string(token.text), file, token.line);
        continue;
      }
      for (ShellField& field : Expand(token.text, file, token.line)) fields.push_back(std::move(field));
    }
  } else {
    std::string text;
    for (const ShellField& field : Expand(value, file, line)) text += (text.empty() ? "" : " ") + field.text;
    fields.push_back({text, file, line});
  }
  std::vector<ShellField>& old = values_[name];
  if (!append) {
    old = std::move(fields);
  } else if (array) {
    for (ShellField& field : fields) old.push_back(std::move(field));
  } else if (old.empty()) {
    old = std::move(fields);
  } else {
    bytes_ += old[0].text.size();
    old[0].text += fields[0].text;
  }
  return true;
}

void ShellValues::SetOfSlurm(const SlurmJob& job, const std::string& file) {
  for (const auto& [name, value] : {std::pair("SLURM_NNODES", job.nodes),
                                    {"SLURM_JOB_NUM_NODES", job.nodes},
                                    {"SLURM_NTASKS_PER_NODE", job.tasks_per_node},
                                    {"SLURM_TASKS_PER_NODE", job.tasks_per_node},
                                    {"SLURM_GPUS_ON_NODE", job.gpus_per_node},
                                    {"SLURM_GPUS_PER_NODE", job.gpus_per_node},
                                    {"SLURM_NTASKS", job.nodes * job.tasks_per_node},
                                    {"SLURM_NPROCS", job.nodes * job.tasks_per_node}}) {
    if (value > 0) Set(name, {{std::to_string(value), file, 0}});
  }
}

}  // namespace msprobe
