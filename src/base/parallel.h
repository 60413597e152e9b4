// Parallel loops with the same output for any thread count.
#pragma once

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "base/status.h"

namespace msprobe {

/// Threads that work on a loop: MSPROBE_THREADS, else the cores this process may use; from 1 to kMostThreads.
inline constexpr int kMostThreads = 256;
int ThreadCount();
void SetThreadCount(int n);

/// Runs fn(i) for i in [0, n), in any order, on up to ThreadCount() threads; the caller's thread takes part. The first
/// error (by index) is returned; after an error or an interrupt no new index is started.
Status ParallelFor(size_t n, const std::function<Status(size_t)>& fn);

/// Ordered pipeline: make(i) runs in parallel, take(i) in index order on the calling thread. At most `window` results
/// are alive at a time, so memory does not grow with n. Both return a Status; the first error by index wins.
template <typename T>
Status ParallelOrdered(size_t n, size_t window, const std::function<StatusOr<T>(size_t)>& make,
                       const std::function<Status(size_t, T&&)>& take);

/// What a thread must not let through (no memory, above all) as a Status, kInternal.
Status StatusOfException() noexcept;

/// Starts up to `count` threads: fewer, perhaps none, when the machine gives no more.
std::vector<std::thread> StartThreads(size_t count, const std::function<void()>& work);

}  // namespace msprobe

#include "base/parallel-inl.h"
