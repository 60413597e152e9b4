// The proof that a capture changed nothing: digests of runs without and with it, compared bit by bit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/message.h"
#include "base/status.h"
#include "json/value.h"
#include "judgement/judgement.h"

namespace msprobe {

/// Where two runs part ways first.
struct RunDifference {
  int64_t step = 0;
  std::string what;  // "loss", "gradient", "parameter", "buffer", "random state", "number of steps"
  std::string name;  // of the parameter, of the generator, number of the loss
  std::string left, right;
};

/// What msprobe's digests (python/msprobe/_attach/digests.py) of two runs of one rank say.
struct DigestOptions {
  int64_t left_from = 0;  // step of `left` that is the first of `right`; differences are told in steps of `left`
  bool random = true;     // compare the states of random generators, too
};
std::optional<RunDifference> CompareDigests(const JsonValue& left, const JsonValue& right,
                                            const DigestOptions& options = {});

struct RankCertificate {
  std::string rank;
  std::optional<RunDifference> between_bare, with_capture;
  struct Step {
    uint64_t losses = 0, gradients = 0, parameters = 0, buffers = 0, random = 0;  // compared
    std::string loss;                                                             // the last one's value, "" without
  };
  std::vector<Step> steps;
  struct Memory {
    std::string where;  // host, cuda, npu
    int64_t bare = 0, captured = 0;
  };
  std::vector<Memory> peak;
};

struct Certificate {
  std::string command, config, dump_path, python, torch, devices, created;
  std::vector<RankCertificate> ranks;
  bool deterministic() const;
  bool certified() const;
  /// One sentence.
  Message Verdict() const;
  std::vector<Judgement> Judgements() const;
  /// `files`: path below the dump and CRC-32 of what is certified.
  std::string Json(const std::vector<std::pair<std::string, uint32_t>>& files) const;
  std::string Markdown() const;
};

/// Counts what was compared, and the peaks of memory.
RankCertificate DescribeRank(const std::string& rank, const JsonValue& bare, const JsonValue& captured);

}  // namespace msprobe
