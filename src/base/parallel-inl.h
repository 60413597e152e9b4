#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/interrupt.h"

namespace msprobe {

inline constexpr size_t kGrowEach = 8;  // steps of an ordered loop between two looks at its share of threads

/// `make(i)` with exceptions turned into a Status.
template <typename T>
StatusOr<T> GuardedMake(const std::function<StatusOr<T>(size_t)>& make, size_t i) {
  try {
    return make(i);
  } catch (...) {
    return StatusOfException();
  }
}

template <typename T>
Status GuardedTake(const std::function<Status(size_t, T&&)>& take, size_t i, T&& value) {
  try {
    return take(i, std::move(value));
  } catch (...) {
    return StatusOfException();
  }
}

/// The loop on the calling thread, from *next on, as long as `alone` holds; *next is then where it got to.
template <typename T>
Status ParallelOrderedAlone(size_t n, const std::function<StatusOr<T>(size_t)>& make,
                            const std::function<Status(size_t, T&&)>& take, size_t* next,
                            const std::function<bool()>& alone) {
  for (; *next < n && alone(); ++*next) {
    if (InterruptRequested()) return Interrupted();
    auto made = GuardedMake(make, *next);
    if (!made.ok()) return made.status();
    MSP_RETURN_IF_ERROR(GuardedTake(take, *next, std::move(*made)));
  }
  return OkStatus();
}

template <typename T>
Status ParallelOrderedAlone(size_t n, const std::function<StatusOr<T>(size_t)>& make,
                            const std::function<Status(size_t, T&&)>& take, size_t next = 0) {
  return ParallelOrderedAlone(n, make, take, &next, [] { return true; });
}

template <typename T>
Status ParallelOrdered(size_t n, size_t window, const std::function<StatusOr<T>(size_t)>& make,
                       const std::function<Status(size_t, T&&)>& take, size_t most_threads) {
  size_t first = 0;
  const auto threads = [&] { return std::min({static_cast<size_t>(ThreadCount()), n - first, most_threads}); };
  MSP_RETURN_IF_ERROR(ParallelOrderedAlone<T>(n, make, take, &first, [&] { return threads() == 1; }));
  if (first == n) return OkStatus();
  std::mutex mutex;
  std::condition_variable ready, space;
  size_t alive = std::max(window, threads());  // grows with the threads
  std::vector<std::optional<StatusOr<T>>> slots(std::max(alive, std::min<size_t>(kMostThreads, n - first)));
  size_t next = first;   // next index to make
  size_t taken = first;  // indices below are consumed
  bool stop = false;
  const std::function<void()> worker = [&] {
    for (;;) {
      size_t i;
      {
        std::unique_lock lock(mutex);
        space.wait(lock, [&] { return stop || next >= n || next < taken + alive; });
        if (stop || next >= n) return;
        i = next++;
      }
      StatusOr<T> made = InterruptRequested() ? StatusOr<T>(Interrupted()) : GuardedMake(make, i);
      std::lock_guard lock(mutex);
      slots[i % slots.size()].emplace(std::move(made));
      ready.notify_all();
    }
  };
  std::vector<std::thread> pool;
  pool.reserve(slots.size());
  const auto start = [&](size_t count) {
    for (std::thread& t : StartThreads(count, worker)) pool.push_back(std::move(t));
  };
  start(threads());
  if (pool.empty()) return ParallelOrderedAlone(n, make, take, first);
  // Threads that other tasks of a budget have left.
  const auto grow = [&] {
    const size_t now = threads();
    if (now <= pool.size()) return;
    std::unique_lock lock(mutex);
    alive = std::max(alive, now);
    lock.unlock();
    start(now - pool.size());
  };
  Status status;
  for (size_t i = first; i < n && status.ok(); ++i) {
    std::unique_lock lock(mutex);
    auto& slot = slots[i % slots.size()];
    ready.wait(lock, [&] { return slot.has_value(); });
    StatusOr<T> made = std::move(*slot);
    slot.reset();
    taken = i + 1;
    lock.unlock();
    space.notify_all();
    status = made.ok() ? GuardedTake(take, i, std::move(*made)) : made.status();
    if (i % kGrowEach == 0 && status.ok()) grow();
  }
  {
    std::lock_guard lock(mutex);
    stop = true;
  }
  space.notify_all();
  for (auto& t : pool) t.join();
  return status;
}

}  // namespace msprobe
