// Whether a recording holds all that its run did, from dump_summary.json and from how its dump.json ends. It is asked
// where a dump is opened, so that no command concludes upon a part as if it were the whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace msprobe {

struct Wholeness {
  enum class State : uint8_t {
    kWhole,
    kKilled,      // the run ended inside the step; also after `msprobe recover`
    kRecording,   // the step is still being recorded
    kElsewhere,   // one of the two, on another host
    kIncomplete,  // the recorder says that ops or tensors were not written
    kCut,         // dump.json ends early, or holds fewer ops than were written
    kUnknown,     // dump_summary.json cannot be read
  };
  State state = State::kWhole;
  uint64_t ops = 0;           // that are there
  uint64_t ops_lost = 0;      // known to be lost
  uint64_t tensors_lost = 0;  // of kIncomplete
  bool ops_end = false;       // what is lost stands behind the last op that is there
  std::string why;            // of kIncomplete: the disk was full, a budget; "" if not known
  bool whole() const { return state == State::kWhole; }
  /// Ops that are not there may have been in the run.
  bool LacksOps() const { return !whole() && (state != State::kIncomplete || ops_lost > 0); }
};

/// "killed", "recording", "elsewhere", "incomplete", "cut", "unknown"; "whole".
std::string_view WholenessName(Wholeness::State state);

/// Of the recording in `directory`, whose dump.json holds `ops` and is `truncated`.
Wholeness WholenessOf(const std::string& directory, uint64_t ops, bool truncated);

}  // namespace msprobe
