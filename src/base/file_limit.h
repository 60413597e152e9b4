// Writing beyond the process's limit on file sizes is an error like a full disk, not the end of the process.
#pragma once

#include <signal.h>

namespace msprobe {

/// While it lives, a write of this thread beyond RLIMIT_FSIZE fails with EFBIG and raises no SIGXFSZ, whose default
/// action is to kill the process. The user's handler and mask are as before afterwards.
class FileLimitGuard {
 public:
  FileLimitGuard();
  ~FileLimitGuard();
  FileLimitGuard(const FileLimitGuard&) = delete;
  FileLimitGuard& operator=(const FileLimitGuard&) = delete;

 private:
  sigset_t before_;
  bool pending_before_ = false;
};

}  // namespace msprobe
