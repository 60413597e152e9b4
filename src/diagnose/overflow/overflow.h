// Which op is the first to give NaN or an infinity, on which rank, and what became of it.
#pragma once

#include <string>
#include <vector>

#include "base/message.h"
#include "diagnose/overflow/overflow_finding.h"
#include "dump/gaps.h"
#include "dump/rank_choice.h"
#include "judgement/judgement.h"

namespace msprobe {

struct OverflowReport {
  std::string input, step;                  // "step3"; "" for a single file
  size_t steps = 0, ranks = 0;              // looked at
  std::vector<OverflowFinding> first;       // to name; empty when nothing was found
  std::vector<OverflowFinding> absorbed;    // others, that left nothing behind; the first few
  size_t masks = 0;                         // sources of -inf that are there on purpose
  std::vector<OverflowFinding::Near> near;  // when nothing was found: the nearest to overflow
  enum class Phase : uint8_t { kBefore, kDuring, kAfter } phase = Phase::kBefore;  // of communication
  std::string nodes;  // the text of the result file; "" when nothing was found
  std::vector<Message> warnings;
  std::vector<RecordingGap> gaps;  // of all recordings below the path
  uint64_t left_out = 0;           // ranks that cannot be read
  std::string first_left_out;
};

/// Looks through a dump.json, a rank, a step, or the steps of a dump up to the first that goes wrong. All ranks of a
/// step are open at once: about 60 bytes an op and 200 for each op that has a finding.
StatusOr<OverflowReport> FindOverflow(const std::string& path, const RankChoice& ranks = {});

/// {"rank_0": [{"op_name": ..., "data_info": ..., "construct_info": ..., "stack_info": ...}]}
Status WriteOverflowNodes(const std::string& directory, const std::string& nodes, std::string* path);

/// `told` is the report's answer in short, `file` where the nodes were written. `earlier_form`: with the lines of the
/// older tool's search, for scripts that call it in its own form and look for them.
Message OverflowText(const OverflowReport& report, const std::string& told, const std::string& file,
                     bool earlier_form = false);
/// `verdict` is JSON.
std::string OverflowJson(const OverflowReport& report, const std::string& verdict, const Conclusion& conclusion,
                         const std::string& file);

}  // namespace msprobe
