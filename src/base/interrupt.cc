#include "base/interrupt.h"

#include <atomic>
#include <csignal>

namespace msprobe {
namespace {
std::atomic<bool> g_interrupted{false};
void OnSignal(int) { g_interrupted.store(true, std::memory_order_relaxed); }
}  // namespace

void InstallInterruptHandler() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  // A second Ctrl-C ends the process even if the work does not look at the flag.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool InterruptRequested() { return g_interrupted.load(std::memory_order_relaxed); }
void SetInterruptRequested(bool on) { g_interrupted.store(on, std::memory_order_relaxed); }

Status Interrupted() { return {Code::kInterrupted, "interrupted: nothing was written; run the command again"}; }

}  // namespace msprobe
