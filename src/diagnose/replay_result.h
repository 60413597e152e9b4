// What a replay of an op in float64 says about the two runs. docs/en/compare/replay.md has the rules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/message.h"

namespace msprobe {

class JsonWriter;

enum class ReplayVerdict : uint8_t {
  kNotReplayed,   // `why` says why
  kBothRoundOff,  // rounding explains what either side is away from the truth
  kTargetNearer,  // the golden run's result is more than rounding away, or both are and the target less
  kGoldenNearer,  // the other way round
  kBothFar,       // both are more than rounding away, about as much
};
/// "cannot be replayed", "both within round-off", "target nearer", "golden nearer", "both far".
std::string_view ReplayVerdictText(ReplayVerdict v);

/// One result of one side against the float64 result of the same call with the same side's inputs.
struct ReplayFigures {
  std::string dtype;  // of the result: "bfloat16"
  double error = 0;   // relative; infinite for a difference in kind
  double ulp = 0;     // that, in distances of neighbouring numbers of the dtype
  double limit = 0;   // what rounding explains, likewise
  bool IsRoundOff() const { return ulp <= limit; }
};

struct ReplayedItem {
  std::string item;  // "output.0"
  ReplayFigures target, golden;
  double inputs = -1;  // how far apart the two truths are, relative: what the inputs' difference does; -1: not known
  ReplayVerdict verdict = ReplayVerdict::kNotReplayed;
};

struct ReplayedOp {
  std::string label;        // of the pair: "step0 rank1"; ""
  std::string target_dump;  // of the pair
  std::string name, golden_name;
  ReplayVerdict verdict = ReplayVerdict::kNotReplayed;
  Message why;                      // of kNotReplayed
  std::vector<ReplayedItem> items;  // the one that decides is the first
  std::vector<Message> notes;       // what the dump does not say and the replay assumed
};

/// Judges `items` and puts the one that decides in front. Items with the same name on both sides only.
void JudgeReplay(ReplayedOp* op);

/// "golden nearer (output.0: target 3.1e+04 ulp of bfloat16, golden 0.5 ulp of float32)"
Message ReplayText(const ReplayedOp& op);
void WriteReplay(JsonWriter* json, const ReplayedOp& op);
void WriteReplays(JsonWriter* json, const std::vector<ReplayedOp>& ops);

/// "12 ops: 10 both within round-off, 1 golden nearer, 1 cannot be replayed"
Message ReplayCountsText(const std::vector<ReplayedOp>& ops);

}  // namespace msprobe
