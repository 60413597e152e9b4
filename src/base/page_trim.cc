#include "base/page_trim.h"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>

#include "base/parallel.h"

namespace msprobe {
namespace {

constexpr size_t kMostFilePages = size_t{64} << 20;
constexpr std::chrono::milliseconds kLook{10};

/// Bytes of files that are mapped and in memory; 0 where it cannot be known.
size_t ResidentFileBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (!file) return 0;
  unsigned long size = 0, resident = 0, shared = 0;
  const int read = std::fscanf(file, "%lu %lu %lu", &size, &resident, &shared);
  std::fclose(file);
  return read == 3 ? static_cast<size_t>(shared) * static_cast<size_t>(sysconf(_SC_PAGESIZE)) : 0;
}

class Trimmer {
 public:
  void Watch(const char* data, size_t size) {
    std::lock_guard lock(mutex_);
    maps_[data] = size;
    if (running_) return;
    // Without a thread to spare the pages stay until the kernel wants them.
    for (std::thread& thread : StartThreads(1, [this] { Run(); })) {
      thread.detach();
      running_ = true;
    }
  }

  void Unwatch(const char* data) {
    std::lock_guard lock(mutex_);
    maps_.erase(data);
    if (maps_.empty()) changed_.notify_all();
  }

  void Look() {
    std::lock_guard lock(mutex_);
    if (!maps_.empty()) TrimAll();
  }

 private:
  void TrimAll() const {
    if (ResidentFileBytes() < kMostFilePages) return;
    for (const auto& [data, size] : maps_) (void)madvise(const_cast<char*>(data), size, MADV_DONTNEED);
  }

  void Run() {
    std::unique_lock lock(mutex_);
    while (!maps_.empty()) {
      changed_.wait_for(lock, kLook);
      TrimAll();
    }
    running_ = false;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const char*, size_t> maps_;
  bool running_ = false;
};

/// Never destroyed: its thread may outlive static objects.
Trimmer& TheTrimmer() {
  static Trimmer* const trimmer = new Trimmer;
  return *trimmer;
}

}  // namespace

void WatchMap(const char* data, size_t size) { TheTrimmer().Watch(data, size); }

void TrimMaps() { TheTrimmer().Look(); }

void UnwatchMap(const char* data) { TheTrimmer().Unwatch(data); }

}  // namespace msprobe
