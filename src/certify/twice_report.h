// What `certify --twice` says: the first op of each rank that computes something else in a second run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/message.h"
#include "certify/certificate.h"

namespace msprobe {

struct RankTwice {
  std::string rank;
  std::optional<RunDifference> difference;  // of losses, gradients, parameters, buffers and random states
  int64_t steps = 0;                        // compared
  int step = -1;                            // of the op
  std::string kind, op;                     // "" where no recorded op differs
};

struct TwiceReport {
  std::string command, created;
  std::vector<RankTwice> ranks;
  bool Repeats() const;
  Message Verdict() const;
  std::string Json() const;
  std::string Markdown() const;
};

}  // namespace msprobe
