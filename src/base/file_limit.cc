#include "base/file_limit.h"

#include <cerrno>
#include <ctime>

namespace msprobe {
namespace {

sigset_t LimitSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

bool IsPending() {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

}  // namespace

FileLimitGuard::FileLimitGuard() : pending_before_(IsPending()) {
  const sigset_t set = LimitSignal();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
}

FileLimitGuard::~FileLimitGuard() {
  const int kept = errno;
  const sigset_t set = LimitSignal();
  // The kernel sends it to the thread that writes, so what is pending now is from us.
  const timespec at_once{0, 0};
  while (!pending_before_ && IsPending() && (sigtimedwait(&set, nullptr, &at_once) > 0 || errno == EINTR)) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = kept;
}

}  // namespace msprobe
