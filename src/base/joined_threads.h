// Threads that are waited for where they go out of scope, also when an exception passes: a std::thread that nobody
// joined ends the process there.
#pragma once

#include <thread>
#include <utility>
#include <vector>

namespace msprobe {

class JoinedThreads {
 public:
  JoinedThreads() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): what StartThreads() gives.
  JoinedThreads(std::vector<std::thread> threads) : threads_(std::move(threads)) {}
  JoinedThreads(const JoinedThreads&) = delete;
  JoinedThreads& operator=(const JoinedThreads&) = delete;
  ~JoinedThreads() { Join(); }

  void Start(std::vector<std::thread> threads) {
    Join();
    threads_ = std::move(threads);
  }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  bool empty() const { return threads_.empty(); }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace msprobe
