// What is found of a step: tensors that are not equal, and all that were compared.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/message.h"
#include "parity/cause.h"
#include "parity/record.h"

namespace msprobe {

/// What a step computes, in its order. Names are those of the records.
inline constexpr std::array<std::string_view, 9> kParityPhases{"parameter", "input", "forward", "loss",   "backward",
                                                               "gradient",  "norm",  "clipped", "updated"};
/// "result of the module", "gradient of the parameter": for people.
Message PhaseWords(std::string_view phase);

struct ParityFinding {
  int step = 0;
  std::string phase, name;
  ParityCause cause;
  double error = 0, bound = 0;  // relative to the norm of the whole
  bool law = false;             // within the run of the ranks alone
  bool apart = false;           // does not follow from the findings before it
  Message About() const;        // phase and name
  Message Sentence() const;
};

struct ParityRow {
  int step = 0;
  std::string phase, name, mapping;
  PartsKind kind = PartsKind::kNotCompared;
  double error = 0, bound = 0;
};

struct ParityResult {
  std::vector<ParityFinding> findings;                           // the first one is the answer
  std::optional<Message> cannot_say;                             // weights or batches that are not the same
  std::vector<ParityRow> rows;                                   // what was compared, and how
  std::map<std::string, std::vector<std::string>> not_compared;  // why, and what
  std::vector<Message> notes;
  size_t inherited = 0;  // differs behind the first
  struct Laws {
    size_t replicas = 0, shards = 0, dropouts = 0, unknown = 0;
  } laws;  // what was looked at; tensors of which nothing says whether they are replicas
};

/// Adds what the recorder of each rank noted.
void TakeNotes(const ParityRun& run, ParityResult* result);

}  // namespace msprobe
