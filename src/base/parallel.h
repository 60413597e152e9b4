// Parallel loops with the same output for any thread count.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "base/status.h"

namespace msprobe {

/// Threads that work on a loop: MSPROBE_THREADS, else the cores this process may use; from 1 to kMostThreads. Inside a
/// task of a ThreadBudget, the task's share of them.
inline constexpr int kMostThreads = 256;
int ThreadCount();
void SetThreadCount(int n);

/// Divides the threads of the caller among tasks that run side by side: loops within a task use its share, and when
/// fewer tasks are left than threads, the others have more, also in ordered loops that run already.
class ThreadBudget {
 public:
  /// At most `side_by_side` of the `tasks` run at a time.
  ThreadBudget(size_t tasks, size_t side_by_side);
  ThreadBudget(const ThreadBudget&) = delete;
  ThreadBudget& operator=(const ThreadBudget&) = delete;

  /// Made on the thread of a task, for as long as the task lasts.
  class Task {
   public:
    explicit Task(ThreadBudget* budget);
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    ~Task();

   private:
    ThreadBudget* budget_;
    const std::atomic<int>* before_;
  };

 private:
  void Divide();
  const int threads_;
  const size_t side_by_side_;
  std::atomic<size_t> left_;  // tasks that have not ended
  std::atomic<int> share_{1};
};

/// Runs fn(i) for i in [0, n), in any order, on up to ThreadCount() threads; the caller's thread takes part. The first
/// error (by index) is returned; after an error or an interrupt no new index is started.
Status ParallelFor(size_t n, const std::function<Status(size_t)>& fn);

/// Ordered pipeline: make(i) runs in parallel, take(i) in index order on the calling thread. At most `window` results
/// are alive at a time, so memory does not grow with n. Both return a Status; the first error by index wins.
template <typename T>
Status ParallelOrdered(size_t n, size_t window, const std::function<StatusOr<T>(size_t)>& make,
                       const std::function<Status(size_t, T&&)>& take, size_t most_threads = kMostThreads);

/// What a thread must not let through (no memory, above all) as a Status, kInternal.
Status StatusOfException() noexcept;
/// kInternal. It is made beforehand, so it needs no memory.
Status OutOfMemory() noexcept;

/// Starts up to `count` threads with the caller's share: fewer, perhaps none, when the machine gives no more.
std::vector<std::thread> StartThreads(size_t count, const std::function<void()>& work);

}  // namespace msprobe

#include "base/parallel-inl.h"
