// Tasks that decide after an op ran whether it is kept: overflow_check, difference dump, exception_dump.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "base/status.h"
#include "capture/golden_index.h"
#include "capture/op_checksums.h"
#include "capture/record.h"

namespace msprobe {

enum class TriggerKind : uint8_t {
  kNone,        ///< every op is kept
  kOverflow,    ///< an output holds NaN or an infinity
  kDifference,  ///< the inputs are those of the golden dump, an output is not
  kException,   ///< kept back until something raises
};

struct TriggerConfig {
  TriggerKind kind = TriggerKind::kNone;
  int64_t limit = 1;         // so many ops are kept, then nothing more is recorded; -1: no limit
  std::string bench_path{};  // kDifference
  size_t last_ops = 0;       // kException: ops before the one that raised that are kept, too
};

/// Calls may come from any thread.
class Trigger {
 public:
  /// Forgets what has been counted.
  void Configure(TriggerConfig config);
  const TriggerConfig& config() const { return config_; }
  TriggerKind kind() const { return config_.kind; }
  bool active() const { return config_.kind != TriggerKind::kNone; }
  /// Something must be known of the outputs though they are not to be recorded.
  bool needs_outputs() const { return kind() == TriggerKind::kOverflow || kind() == TriggerKind::kDifference; }
  bool needs_inputs() const { return kind() == TriggerKind::kDifference; }

  /// Reads the golden dump of this step. On an error nothing of the step is kept.
  Status BeginStep(int step, int rank);
  /// Whether the finished op is kept, and counts it. Deferred values have been filled in. Once the limit is reached:
  /// no.
  bool Keep(const Record& op);
  /// The limit has been reached: nothing will be kept any more.
  bool exhausted() const { return exhausted_; }
  uint64_t kept() const { return kept_; }
  /// Ops of this step that the golden dump does not have.
  uint64_t not_in_golden() const { return not_in_golden_; }

 private:
  bool Differs(const Record& op);
  TriggerConfig config_;
  std::mutex mutex_;
  std::optional<GoldenIndex> golden_;
  OpChecksums sums_;
  uint64_t kept_ = 0;
  std::atomic<uint64_t> not_in_golden_{0};
  std::atomic<bool> exhausted_{false};
};

/// A tensor of the outputs has a NaN or an infinity as Max or Min. In backward entries outputs are the gradients of the
/// op's inputs; of gradients of parameters, all.
bool OutputOverflows(const Record& op);

/// Take a side out of a record, with its keys; parameters count as output.
void DropInputs(Record* op);
void DropOutputs(Record* op);

}  // namespace msprobe
