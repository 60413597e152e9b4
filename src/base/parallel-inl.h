#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/interrupt.h"

namespace msprobe {

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

template <typename T>
Status ParallelOrderedAlone(size_t n, const std::function<StatusOr<T>(size_t)>& make,
                            const std::function<Status(size_t, T&&)>& take) {
  for (size_t i = 0; i < n; ++i) {
    if (InterruptRequested()) return Interrupted();
    auto made = GuardedMake(make, i);
    if (!made.ok()) return made.status();
    MSP_RETURN_IF_ERROR(GuardedTake(take, i, std::move(*made)));
  }
  return OkStatus();
}

template <typename T>
Status ParallelOrdered(size_t n, size_t window, const std::function<StatusOr<T>(size_t)>& make,
                       const std::function<Status(size_t, T&&)>& take) {
  const size_t threads = std::min<size_t>(static_cast<size_t>(ThreadCount()), n);
  if (threads <= 1) return ParallelOrderedAlone(n, make, take);
  window = std::max(window, threads);
  std::mutex mutex;
  std::condition_variable ready, space;
  std::vector<std::optional<StatusOr<T>>> slots(window);
  size_t next = 0;   // next index to make
  size_t taken = 0;  // indices below are consumed
  bool stop = false;
  auto worker = [&] {
    for (;;) {
      size_t i;
      {
        std::unique_lock lock(mutex);
        space.wait(lock, [&] { return stop || next >= n || next < taken + window; });
        if (stop || next >= n) return;
        i = next++;
      }
      StatusOr<T> made = InterruptRequested() ? StatusOr<T>(Interrupted()) : GuardedMake(make, i);
      std::lock_guard lock(mutex);
      slots[i % window].emplace(std::move(made));
      ready.notify_all();
    }
  };
  std::vector<std::thread> pool = StartThreads(threads, worker);
  if (pool.empty()) return ParallelOrderedAlone(n, make, take);
  Status status;
  for (size_t i = 0; i < n && status.ok(); ++i) {
    std::unique_lock lock(mutex);
    auto& slot = slots[i % window];
    ready.wait(lock, [&] { return slot.has_value(); });
    StatusOr<T> made = std::move(*slot);
    slot.reset();
    taken = i + 1;
    lock.unlock();
    space.notify_all();
    status = made.ok() ? GuardedTake(take, i, std::move(*made)) : made.status();
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
