#include "curves/line_pattern.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr std::array<std::pair<std::string_view, LinePattern::Field>, 5> kFields{
    {{"step", LinePattern::Field::kStep},
     {"loss", LinePattern::Field::kLoss},
     {"grad_norm", LinePattern::Field::kGradNorm},
     {"lr", LinePattern::Field::kLearningRate},
     {"learning_rate", LinePattern::Field::kLearningRate}}};

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

std::string SingleBlanks(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (IsBlank(c) && !out.empty() && out.back() == ' ') continue;
    out += IsBlank(c) ? ' ' : c;
  }
  return out;
}

/// Where the line goes on behind `words`, of which a blank stands for any number of them; npos when it differs.
size_t MatchWords(std::string_view line, size_t at, std::string_view words) {
  for (const char c : words) {
    if (c == ' ') {
      if (at < line.size() && !IsBlank(line[at])) return std::string_view::npos;
      while (at < line.size() && IsBlank(line[at])) ++at;
      continue;
    }
    if (at >= line.size() || line[at] != c) return std::string_view::npos;
    ++at;
  }
  return at;
}

}  // namespace

StatusOr<LinePattern> LinePattern::Parse(std::string_view text) {
  LinePattern out;
  bool has_value = false;
  size_t at = 0;
  while (at < text.size()) {
    const size_t open = text.find('{', at);
    Piece piece{SingleBlanks(text.substr(at, open - at)), std::nullopt};
    if (open == std::string_view::npos) {
      out.pieces_.push_back(std::move(piece));
      break;
    }
    const size_t close = text.find('}', open);
    if (close == std::string_view::npos) {
      return UsageError(Msg("--pattern: '{}' has a brace that does not close", OneLine(text)));
    }
    const std::string_view name = text.substr(open + 1, close - open - 1);
    for (const auto& [known, field] : kFields) {
      if (name == known) piece.field = field;
    }
    if (!piece.field && !name.empty()) {
      return UsageError(
          Msg("--pattern: {{{}}} is none of {{step}}, {{loss}}, {{grad_norm}}, {{lr}} and {{}}", OneLine(name)));
    }
    has_value = has_value || piece.field == Field::kLoss || piece.field == Field::kGradNorm;
    out.pieces_.push_back(std::move(piece));
    at = close + 1;
  }
  if (!has_value) {
    return UsageError(
        Msg("--pattern: '{}' has neither {{loss}} nor {{grad_norm}}: such as 'step {{step}} loss {{loss}}'",
            OneLine(text)));
  }
  return out;
}

bool LinePattern::MatchAt(std::string_view line, size_t begin, Match* out) const {
  size_t at = begin;
  bool anywhere = false;  // after {}
  for (const Piece& piece : pieces_) {
    size_t next = MatchWords(line, at, piece.words);
    if (anywhere) {
      for (size_t i = at; next == std::string_view::npos && i < line.size(); ++i)
        next = MatchWords(line, i, piece.words);
    }
    if (next == std::string_view::npos) return false;
    at = next;
    anywhere = !piece.field.has_value();
    if (anywhere) continue;
    at += SkipToValue(line.substr(at));
    const auto number = ReadNumberText(line.substr(at));
    if (!number) return false;
    (*out)[static_cast<size_t>(*piece.field)] = number;
    at += number->size;
  }
  return true;
}

std::optional<LinePattern::Match> LinePattern::Find(std::string_view line) const {
  if (pieces_.empty()) return std::nullopt;
  const std::string& words = pieces_[0].words;
  const char first = words.empty() || words[0] == ' ' ? '\0' : words[0];
  for (size_t begin = 0; begin < line.size(); ++begin) {
    if (first != '\0') {
      begin = line.find(first, begin);
      if (begin == std::string_view::npos) break;
    }
    Match match;
    if (MatchAt(line, begin, &match)) return match;
  }
  return std::nullopt;
}

}  // namespace msprobe
