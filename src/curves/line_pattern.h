// A line of a log as its user describes it: "iter {step} | loss {loss} {} lr={lr}".
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "curves/number_text.h"

namespace msprobe {

/// {step}, {loss}, {grad_norm} and {lr} stand for numbers, {} for anything, a blank for blanks. Matching takes time
/// linear in the line for each place where the first words of the pattern are.
class LinePattern {
 public:
  enum class Field : uint8_t { kStep, kLoss, kGradNorm, kLearningRate };
  using Match = std::array<std::optional<NumberText>, 4>;

  /// kUsage for a pattern without {loss} or {grad_norm}, with an unknown name or a brace too few.
  static StatusOr<LinePattern> Parse(std::string_view text);
  std::optional<Match> Find(std::string_view line) const;

 private:
  struct Piece {
    std::string words;           // before the number; blanks are single
    std::optional<Field> field;  // none: anything
  };
  bool MatchAt(std::string_view line, size_t begin, Match* out) const;
  std::vector<Piece> pieces_;
};

}  // namespace msprobe
