// How the monitors of a run are doing, by the heartbeat file that each rank renews.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/message.h"
#include "base/status.h"

namespace msprobe {

/// How a rank is doing, the worst last.
enum class RankHealth : uint8_t { kEnded, kRunning, kBehind, kHung, kFailed, kKilled };
/// "ended", "running", ...: for programs.
std::string_view NameOf(RankHealth health);

struct RankStatus {
  std::string directory, host, state;  // state: running, ended, failed
  std::string command;                 // that trains, as it is typed; empty: not known
  int64_t rank = 0, pid = 0, step = -1, interval = 1;
  uint64_t requested = 0, reported = 0;  // series
  double started = 0, beat = 0;          // seconds since 1970
  double seconds_per_step = 0;
  std::vector<std::string> laws;    // laws of a training step that broke, a line each
  std::vector<std::string> silent;  // series without a value, and why
  std::vector<Message> findings;    // what is wrong with this rank
  RankHealth health = RankHealth::kRunning;
};

struct RunStatus {
  std::vector<RankStatus> ranks;  // by rank, of each the newest directory
  int64_t step = -1;              // the farthest rank's
  size_t findings() const;
};

/// Reads "heartbeat.json" of `directory` and of the directories in it. kBadInput when there is none.
/// `now`: seconds since 1970.
StatusOr<RunStatus> ReadRunStatus(const std::string& directory, double now);

Message RunStatusText(const RunStatus& run, double now);
std::string RunStatusJson(const RunStatus& run, double now);

}  // namespace msprobe
