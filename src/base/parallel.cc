#include "base/parallel.h"

#include <sched.h>

#include <atomic>
#include <cstdlib>

namespace msprobe {
namespace {
std::atomic<int> g_threads{0};

int DefaultThreads() {
  if (const char* env = std::getenv("MSPROBE_THREADS")) {
    const int n = std::atoi(env);
    if (n > 0) return n;
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    const int n = CPU_COUNT(&set);
    if (n > 0) return n;
  }
  return 1;
}
}  // namespace

int ThreadCount() {
  const int n = g_threads.load(std::memory_order_relaxed);
  return n > 0 ? n : DefaultThreads();
}
void SetThreadCount(int n) { g_threads.store(n, std::memory_order_relaxed); }

Status ParallelFor(size_t n, const std::function<Status(size_t)>& fn) {
  const size_t threads = std::min<size_t>(static_cast<size_t>(ThreadCount()), n);
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  Status first;
  size_t first_index = n;
  auto work = [&] {
    while (!stop.load(std::memory_order_relaxed)) {
      const size_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= n) return;
      Status s = InterruptRequested() ? Interrupted() : fn(i);
      if (s.ok()) continue;
      stop.store(true, std::memory_order_relaxed);
      std::lock_guard lock(mutex);
      if (i < first_index) {
        first_index = i;
        first = std::move(s);
      }
    }
  };
  std::vector<std::thread> pool;
  for (size_t k = 1; k < threads; ++k) pool.emplace_back(work);
  work();
  for (auto& t : pool) t.join();
  return first;
}

}  // namespace msprobe
