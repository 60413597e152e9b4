#include "base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

#include "base/message.h"

namespace msprobe {
namespace {
std::atomic<int> g_threads{0};
thread_local const std::atomic<int>* t_share = nullptr;  // of the task that this thread works for

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

Status Guarded(const std::function<Status(size_t)>& fn, size_t i) {
  try {
    return fn(i);
  } catch (...) {
    return StatusOfException();
  }
}
}  // namespace

int ThreadCount() {
  if (t_share) return std::clamp(t_share->load(std::memory_order_relaxed), 1, kMostThreads);
  const int n = g_threads.load(std::memory_order_relaxed);
  return std::clamp(n > 0 ? n : DefaultThreads(), 1, kMostThreads);
}
void SetThreadCount(int n) { g_threads.store(n, std::memory_order_relaxed); }

ThreadBudget::ThreadBudget(size_t tasks, size_t side_by_side)
    : threads_(ThreadCount()), side_by_side_(std::max<size_t>(side_by_side, 1)), left_(tasks) {
  Divide();
}

void ThreadBudget::Divide() {
  const size_t threads = static_cast<size_t>(threads_);
  const size_t running = std::clamp<size_t>(left_.load(), 1, std::min(side_by_side_, threads));
  share_.store(static_cast<int>((threads + running - 1) / running), std::memory_order_relaxed);
}

ThreadBudget::Task::Task(ThreadBudget* budget) : budget_(budget), before_(t_share) { t_share = &budget->share_; }

ThreadBudget::Task::~Task() {
  t_share = before_;
  --budget_->left_;
  budget_->Divide();
}

namespace {
// Never destroyed: hooks may fire while the interpreter shuts down.
const Status& kOutOfMemory = *new Status(InternalError(Msg("out of memory")));
}  // namespace

Status OutOfMemory() noexcept { return kOutOfMemory; }

Status StatusOfException() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    try {
      return InternalError(
          Msg("out of memory: close other programs or set MSPROBE_THREADS=1, then run the command again"));
    } catch (const std::bad_alloc&) {
      return OutOfMemory();
    }
  } catch (const std::exception& e) {
    return InternalError(Msg("internal fault ({}): please report it with the command line", e.what()));
  } catch (...) {
    return InternalError(Msg("internal fault: please report it with the command line"));
  }
}

std::vector<std::thread> StartThreads(size_t count, const std::function<void()>& work) {
  std::vector<std::thread> threads;
  threads.reserve(count);
  const auto body = [work, share = t_share] {
    t_share = share;
    work();
  };
  // The limit of processes, or no memory. Nothing may escape: threads that run must be joined.
  try {
    while (threads.size() < count) threads.emplace_back(body);
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  return threads;
}

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
      Status s = InterruptRequested() ? Interrupted() : Guarded(fn, i);
      if (s.ok()) continue;
      stop.store(true, std::memory_order_relaxed);
      std::lock_guard lock(mutex);
      if (i < first_index) {
        first_index = i;
        first = std::move(s);
      }
    }
  };
  std::vector<std::thread> pool = StartThreads(threads > 1 ? threads - 1 : 0, work);
  work();
  for (auto& t : pool) t.join();
  return first;
}

}  // namespace msprobe
