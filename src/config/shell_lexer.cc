#include "config/shell_lexer.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr int kMaxNesting = 64;

bool NameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class ShellLexer {
 public:
  ShellLexer(std::string_view text, const std::string& path, int line) : text_(text), path_(path), line_(line) {}

  StatusOr<std::vector<ShellToken>> Read() {
    while (at_ < text_.size()) {
      if (out_.size() >= kMaxShellTokens) {
        return BadInput(Msg("{} has more than {} words: it is not a launch script", path_, kMaxShellTokens));
      }
      MSP_RETURN_IF_ERROR(Next());
    }
    Add(ShellToken::Kind::kEndOfLine, at_, line_);
    return std::move(out_);
  }

 private:
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void Add(ShellToken::Kind kind, size_t begin, int line) {
    out_.push_back({kind, text_.substr(begin, at_ - begin), line});
  }
  Status Open(int line, char what) const {
    return BadInput(Msg("{}, line {}: {} has no end", path_, line, std::string(1, what)));
  }

  Status Next() {
    const char c = Peek();
    const int line = line_;
    const size_t begin = at_;
    if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '\\' && (Peek(1) == '\n' || (Peek(1) == '\r' && Peek(2) == '\n'))) {
      at_ += Peek(1) == '\n' ? 2 : 3;
      ++line_;
    } else if (c == '\n') {
      ++at_;
      Add(ShellToken::Kind::kEndOfLine, begin, line);
      ++line_;
      SkipHereDocuments();
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (std::string_view(";&|()<>").find(c) != std::string_view::npos) {
      ReadOperator();
      Add(ShellToken::Kind::kOperator, begin, line);
      if (out_.back().text == "<<" || out_.back().text == "<<-") ReadHereWord();
    } else {
      MSP_RETURN_IF_ERROR(ReadWord());
      const std::string_view word = text_.substr(begin, at_ - begin);
      const bool digits = std::all_of(word.begin(), word.end(), [](unsigned char x) { return std::isdigit(x); });
      if (digits && (Peek() == '>' || Peek() == '<')) return OkStatus();  // 2>&1: a part of the redirection
      Add(ShellToken::Kind::kWord, begin, line);
    }
    return OkStatus();
  }

  void ReadOperator() {
    for (const std::string_view op : {"<<-", "&>>", "<<<", "&&", "||", ";;", "<<", ">>", "&>", ">&", "<&"}) {
      if (text_.substr(at_, op.size()) == op) {
        at_ += op.size();
        return;
      }
    }
    ++at_;
  }

  void ReadHereWord() {
    while (Peek() == ' ' || Peek() == '\t') ++at_;
    const size_t begin = at_;
    while (at_ < text_.size() && !std::isspace(static_cast<unsigned char>(Peek())) && Peek() != ';') ++at_;
    std::string word;
    for (const char c : text_.substr(begin, at_ - begin)) {
      if (c != '\'' && c != '"' && c != '\\') word += c;
    }
    const bool quoted = word.size() < at_ - begin;
    if (!word.empty()) here_.emplace_back(std::move(word), quoted);
  }

  void SkipHereDocuments() {
    for (const auto& [end, quoted] : here_) {
      const size_t begin = at_;
      const int first = line_;
      size_t last = at_;
      while (at_ < text_.size()) {
        const size_t stop = std::min(text_.find('\n', at_), text_.size());
        std::string_view row = text_.substr(at_, stop - at_);
        at_ = std::min(stop + 1, text_.size());
        ++line_;
        while (StartsWith(row, "\t")) row.remove_prefix(1);
        if (EndsWith(row, "\r")) row.remove_suffix(1);
        if (row == end) break;
        last = at_;
      }
      out_.push_back({ShellToken::Kind::kDocument, text_.substr(begin, last - begin), first, quoted});
    }
    here_.clear();
  }

  Status ReadWord() {
    const size_t begin = at_;
    while (at_ < text_.size()) {
      const char c = Peek();
      if (std::isspace(static_cast<unsigned char>(c))) break;
      if (c == '(' && at_ > begin && text_[at_ - 1] == '=' && IsAssignment(begin)) {
        MSP_RETURN_IF_ERROR(Balanced('(', ')', 0));
        continue;
      }
      if (std::string_view(";&|()<>").find(c) != std::string_view::npos) break;
      MSP_RETURN_IF_ERROR(Piece(0));
    }
    return OkStatus();
  }

  bool IsAssignment(size_t begin) const {
    std::string_view name = text_.substr(begin, at_ - 1 - begin);
    if (EndsWith(name, "+")) name.remove_suffix(1);
    return !name.empty() && std::all_of(name.begin(), name.end(), NameChar);
  }

  /// A quoted part, an expansion, or one character.
  Status Piece(int depth) {  // NOLINT(misc-no-recursion): kMaxNesting
    const char c = Peek();
    const int line = line_;
    if (depth > kMaxNesting) {
      return BadInput(Msg("{}, line {}: expansions are nested too deeply", path_, line_));
    }
    if (c == '\\') {
      if (Peek(1) == '\n') ++line_;
      at_ = std::min(at_ + 2, text_.size());
    } else if (c == '\'' || c == '`') {
      const size_t end = text_.find(c, at_ + 1);
      if (end == std::string_view::npos) return Open(line, c);
      line_ += static_cast<int>(
          std::count(text_.begin() + static_cast<ptrdiff_t>(at_), text_.begin() + static_cast<ptrdiff_t>(end), '\n'));
      at_ = end + 1;
    } else if (c == '"') {
      for (++at_; Peek() != '"' || at_ >= text_.size();) {
        if (at_ >= text_.size()) return Open(line, c);
        if (Peek() == '\'') {
          ++at_;  // has no meaning here
        } else {
          MSP_RETURN_IF_ERROR(Piece(depth + 1));
        }
      }
      ++at_;
    } else if (c == '$' && Peek(1) == '(') {
      ++at_;
      return Balanced('(', ')', depth + 1);
    } else if (c == '$' && Peek(1) == '{') {
      ++at_;
      return Balanced('{', '}', depth + 1);
    } else {
      if (c == '\n') ++line_;
      ++at_;
    }
    return OkStatus();
  }

  /// From an opening bracket to behind its closing one.
  Status Balanced(char open, char close, int depth) {  // NOLINT(misc-no-recursion): kMaxNesting
    const int line = line_;
    int level = 0;
    bool at_word = true;
    while (at_ < text_.size()) {
      const char c = Peek();
      if (c == '#' && at_word && open == '(') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        continue;
      }
      at_word = std::isspace(static_cast<unsigned char>(c)) != 0;
      if (c == open || c == close) {
        level += c == open ? 1 : -1;
        ++at_;
        if (level == 0) return OkStatus();
      } else {
        MSP_RETURN_IF_ERROR(Piece(depth + 1));
      }
    }
    return Open(line, open);
  }

  std::string_view text_;
  const std::string& path_;
  int line_;
  size_t at_ = 0;
  std::vector<ShellToken> out_;
  std::vector<std::pair<std::string, bool>> here_;  // ends of here-documents that begin on the next line; quoted
};

}  // namespace

StatusOr<std::vector<ShellToken>> ShellTokens(std::string_view text, const std::string& path, int first_line) {
  if (text.size() > kMaxShellBytes) {
    return BadInput(Msg("{} has {} bytes, more than the {} MiB that are read of a script", path, text.size(),
                        kMaxShellBytes >> 20));
  }
  return ShellLexer(text, path, first_line).Read();
}

}  // namespace msprobe
