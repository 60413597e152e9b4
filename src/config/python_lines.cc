#include "config/python_lines.h"

#include <cctype>

#include "base/text.h"

namespace msprobe {
namespace {

/// Behind the text that begins at `at`.
size_t EndOfText(std::string_view text, size_t at) {
  const char quote = text[at];
  const std::string block(3, quote);
  const bool threefold = StartsWith(text.substr(at), block);
  at += threefold ? 3 : 1;
  while (at < text.size()) {
    if (text[at] == '\\') {
      at += 2;
    } else if (threefold ? StartsWith(text.substr(at), block) : text[at] == quote) {
      return at + (threefold ? 3 : 1);
    } else if (!threefold && text[at] == '\n') {
      return at;
    } else {
      ++at;
    }
  }
  return text.size();
}

bool Opens(char c) { return c == '(' || c == '[' || c == '{'; }
bool Closes(char c) { return c == ')' || c == ']' || c == '}'; }

}  // namespace

std::vector<PythonLine> PythonLines(std::string_view text) {
  std::vector<PythonLine> out;
  size_t at = 0;
  int number = 1;
  while (at < text.size()) {
    PythonLine line;
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) line.indent += text[at++] == '\t' ? 8 : 1;
    line.line = number;
    int level = 0;
    while (at < text.size()) {
      const char c = text[at];
      if (c == '#') {
        while (at < text.size() && text[at] != '\n') ++at;
        continue;
      }
      if (c == '"' || c == '\'') {
        const size_t end = EndOfText(text, at);
        for (const char part : text.substr(at, end - at)) number += part == '\n';
        line.text += text.substr(at, end - at);
        at = end;
        continue;
      }
      if (c == '\\' && at + 1 < text.size() && text[at + 1] == '\n') {
        ++number;
        at += 2;
        line.text += ' ';
        continue;
      }
      if (c == '\n') {
        ++number;
        ++at;
        if (level <= 0) break;
        line.text += ' ';
        continue;
      }
      if (c == ';' && level <= 0) {
        ++at;
        break;
      }
      level += Opens(c) ? 1 : Closes(c) ? -1 : 0;
      line.text += c;
      ++at;
    }
    line.text = std::string(Trimmed(line.text));
    if (!line.text.empty()) out.push_back(std::move(line));
  }
  return out;
}

std::vector<std::string_view> PythonArguments(std::string_view text) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  int level = 0;
  const auto take = [&](size_t end) {
    const std::string_view part = Trimmed(text.substr(begin, end - begin));
    if (!part.empty()) out.push_back(part);
  };
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = EndOfText(text, at);
      continue;
    }
    if (Closes(c) && level-- == 0) {
      take(at);
      return out;
    }
    if (Opens(c)) ++level;
    if (c == ',' && level == 0) {
      take(at);
      begin = at + 1;
    }
    ++at;
  }
  take(text.size());
  return out;
}

size_t AssignmentOf(std::string_view text) {
  int level = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = EndOfText(text, at);
      continue;
    }
    level += Opens(c) ? 1 : Closes(c) ? -1 : 0;
    if (c == '=' && level == 0) {
      const char before = at > 0 ? text[at - 1] : ' ', after = at + 1 < text.size() ? text[at + 1] : ' ';
      if (after == '=' || before == '=' || before == '!' || before == '<' || before == '>' || before == '+' ||
          before == '-' || before == '*' || before == '/' || before == '|' || before == ':') {
        return std::string_view::npos;
      }
      return at;
    }
    ++at;
  }
  return std::string_view::npos;
}

}  // namespace msprobe
