#include "capture/output_gate.h"

#include <new>

namespace msprobe {

void OutputGate::Stop(Part part, Until until, std::string_view reason) {
  const size_t i = Index(part);
  const bool run = until == Until::kEndOfRun;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto set = [&](std::string* text) {
    if (!text->empty()) return;
    try {
      *text = reason;
    } catch (const std::bad_alloc&) {
      *text = "out of memory";  // short enough to need none
    }
  };
  set(&step_[i].reason);
  if (run) set(&run_reason_[i]);
  closed_.fetch_or(static_cast<uint8_t>((run ? 4u : 1u) << i), std::memory_order_relaxed);
}

void OutputGate::BeginStep() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < step_.size(); ++i) {
    step_[i] = Totals();
    step_[i].reason = run_reason_[i];
  }
  closed_.fetch_and(0b1100, std::memory_order_relaxed);
}

void OutputGate::AddWritten(Part part, uint64_t bytes, uint64_t files) {
  run_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  run_files_.fetch_add(files, std::memory_order_relaxed);
  std::lock_guard<std::mutex> lock(mutex_);
  step_[Index(part)].bytes += bytes;
  step_[Index(part)].files += files;
}

void OutputGate::AddSkipped(Part part, uint64_t count) {
  std::lock_guard<std::mutex> lock(mutex_);
  step_[Index(part)].skipped += count;
}

OutputGate::Totals OutputGate::step(Part part) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return step_[Index(part)];
}

}  // namespace msprobe
