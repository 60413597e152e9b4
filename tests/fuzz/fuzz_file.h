// What the fuzz targets share: the input as a file of its own, and checks that stop the run.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/status.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace msprobe::fuzz {

/// The input in a file without a name on disk.
class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, size_t size) : fd_(memfd_create("input", MFD_CLOEXEC)) {
    if (fd_ < 0 || write(fd_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

inline void Check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// A refusal is one line of text that blames the input.
inline void CheckRefusal(const Status& status) {
  Check(status.code() == Code::kBadInput, "a refused input is bad input");
  Check(!status.message().empty(), "a refusal says why");
}

}  // namespace msprobe::fuzz
