// What `msprobe parity` answers, on one page and as JSON.
#pragma once

#include <string>
#include <vector>

#include "base/message.h"
#include "judgement/judgement.h"
#include "parity/judge.h"

namespace msprobe {

struct ParityCertificate {
  std::string command, reference_command, created, python, torch, engine;
  bool laws_only = false;
  size_t ranks = 0, steps = 0;
  std::string axes;     // "tp [0, 1] [2, 3]; dp [0, 2] [1, 3]"
  std::string weights;  // "own", "given": of the reference
  ParityResult result;

  void Describe(const ParityRuns& runs);
  bool equal() const;
  Message Verdict() const;
  std::vector<Judgement> Judgements() const;
  /// What a terminal shows.
  Message Text() const;
  std::string Json() const;
  std::string Markdown() const;
};

}  // namespace msprobe
