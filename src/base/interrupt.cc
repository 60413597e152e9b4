#include "base/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "base/message.h"
#include "base/temp_names.h"

namespace msprobe {
namespace {
std::atomic<bool> g_interrupted{false};

void OnSignal(int) {
  if (!g_interrupted.exchange(true, std::memory_order_relaxed)) return;
  RemoveTempFiles();
  _exit(static_cast<int>(Code::kInterrupted));
}

void OnLostPages(int) {
  static std::atomic_flag told;
  while (told.test_and_set()) pause();  // another thread found out first and ends the process
  constexpr char kText[] =
      "[msprobe] error: an input file became shorter while it was read: wait until the run that writes it has ended, "
      "then run the command again\n";
  RemoveTempFiles();
  (void)!write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(static_cast<int>(Code::kBadInput));
}

void Handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}
}  // namespace

void InstallInterruptHandler() {
  for (const int signal : {SIGINT, SIGTERM}) Handle(signal, OnSignal);
  // nohup asks to outlive the terminal.
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler == SIG_DFL) Handle(SIGHUP, OnSignal);
  Handle(SIGBUS, OnLostPages);
  Handle(SIGXFSZ, SIG_IGN);  // a write beyond the limit of the shell is an error like a full disk
  Handle(SIGPIPE, SIG_IGN);  // a reader that left is seen where text is printed; results are still written
}

bool InterruptRequested() { return g_interrupted.load(std::memory_order_relaxed); }
void SetInterruptRequested(bool on) { g_interrupted.store(on, std::memory_order_relaxed); }

Status Interrupted() { return {Code::kInterrupted, Msg("interrupted: nothing was written; run the command again")}; }

}  // namespace msprobe
