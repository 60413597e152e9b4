// What each stage of `msprobe rollout` answers: a trainer and the engine that it samples from, looked at from one side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/message.h"
#include "base/status.h"

namespace msprobe {

/// In the order in which causes lead.
enum class RolloutStage : uint8_t {
#define MSP_ROLLOUT_STAGE(id, name, words) id,
#include "rollout/stages.def"
#undef MSP_ROLLOUT_STAGE
};
/// "token", "round_off": for programs.
std::string_view NameOf(RolloutStage stage);
/// For people.
Message WordsOf(RolloutStage stage);

enum class RolloutVerdict : uint8_t {
  kNotSeen,     ///< nothing that was given shows it
  kAgrees,      ///< equal, as far as it was seen
  kRoundOff,    ///< apart by no more than rounding of the types in use
  kLegitimate,  ///< apart because somebody asked for it: a quantised engine, allowed lag
  kUnsure,      ///< apart, and what was given does not say whether that is a fault
  kCause,
};
/// "not_seen", "agrees", ...: for programs.
std::string_view NameOf(RolloutVerdict verdict);
Message WordsOf(RolloutVerdict verdict);

struct RolloutPlace {
  std::string request;    // as the records or the engine call it; "" where it is of no request
  int64_t position = -1;  // in the whole sequence, from 0; -1 where it is of no token
  std::string module;     // "layers.0 attention"
  std::string parameter;  // "model.layers.0.self_attn.q_proj.weight"
  bool empty() const { return request.empty() && position < 0 && module.empty() && parameter.empty(); }
};

struct RolloutStageResult {
  RolloutStage stage = RolloutStage::kToken;
  RolloutVerdict verdict = RolloutVerdict::kNotSeen;
  std::string kind;             // for programs: "stale", "exchanged_halves", "temperature"; "" without a cause
  Message seen;                 // what was looked at: "weights of both sides, 51 tensors"
  Message sentence;             // what it says, without the stage's name: "bit-equal (51)"
  RolloutPlace place;           // of the cause
  std::optional<double> share;  // of the gap that it explains, 0 to 1
  std::vector<Message> evidence;
  std::vector<std::pair<std::string, double>> figures;  // for programs
  std::vector<Message> also;      // further causes of this stage, and what is legitimate beside a cause
  std::vector<Message> not_seen;  // what of the stage was not looked at
  Message next_run;               // the cheapest run that would show it
};

}  // namespace msprobe
