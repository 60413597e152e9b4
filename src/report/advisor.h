// What to look at first: a word of advice for the first row of a table that did not pass.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace msprobe {

class JsonWriter;

enum class AdviceKind : uint8_t {
  kNone,  // every row passed
  kForwardInput,
  kForwardOutput,
  kBackwardInput,
  kBackwardOutput,
  kBatchNorm,
  kDeterministic,  // an op with a faster algorithm whose result varies from run to run
};

struct Advice {
  AdviceKind kind = AdviceKind::kNone;
  std::string_view op;
  uint64_t row = 0;  // of the table as a spreadsheet counts: the header is 1
  bool found() const { return kind != AdviceKind::kNone; }
};

/// For the row `row`, an input or a result of `op`, which did not pass.
Advice Advise(std::string_view op, bool result, uint64_t row);

/// {"kind": "forward_output", "op": .., "row": ..}; the texts for people are the page's.
void WriteAdvice(JsonWriter* json, const Advice& advice);

/// The three lines of the older command form's advisor file: Line, Suspect Nodes, Expert Advice.
std::string AdvisorText(const Advice& advice);

/// Writes AdvisorText; the path may get a number when the file exists.
StatusOr<std::string> WriteAdvisor(const std::string& path, const Advice& advice);

}  // namespace msprobe
