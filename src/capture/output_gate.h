// What of a capture is still written, how much has been, and why not more. A full disk closes it for a step, the budget
// for the rest of the run.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace msprobe {

/// Thread-safe. One for a process; the recorder and the tensor files ask it.
class OutputGate {
 public:
  enum class Part : uint8_t { kTensors, kOps };
  enum class Until : uint8_t { kEndOfStep, kEndOfRun };

  /// From now on nothing of `part` is written; without ops there are no tensors either. The reason is one sentence part
  /// for the summary ("the disk is full"); the first one of a step stays.
  void Stop(Part part, Until until, std::string_view reason);
  /// One load: may be asked for each tensor.
  bool open(Part part) const { return (closed_.load(std::memory_order_relaxed) & Bits(part)) == 0; }
  /// What was stopped for the step only is tried again.
  void BeginStep();

  /// `files` whole files of `bytes` together (ops: 0 files) are on disk.
  void AddWritten(Part part, uint64_t bytes, uint64_t files = 0);
  /// Could not be written, or was not because the part is stopped.
  void AddSkipped(Part part, uint64_t count = 1);

  struct Totals {
    uint64_t bytes = 0, files = 0, skipped = 0;
    std::string reason;  // why nothing more is written; empty: it is
  };
  Totals step(Part part) const;
  /// Written since the process began: what a budget is about.
  uint64_t bytes_of_run() const { return run_bytes_.load(std::memory_order_relaxed); }
  uint64_t files_of_run() const { return run_files_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t Index(Part part) { return static_cast<size_t>(part); }
  /// Bits 0, 1: tensors, ops stopped for the step; 2, 3: for the run. No ops means no tensors.
  static constexpr uint8_t Bits(Part part) { return part == Part::kTensors ? 0b1111 : 0b1010; }

  std::atomic<uint8_t> closed_{0};
  std::atomic<uint64_t> run_bytes_{0}, run_files_{0};
  mutable std::mutex mutex_;
  std::array<Totals, 2> step_;
  std::array<std::string, 2> run_reason_;
};

}  // namespace msprobe
