// Asks the kernel for the files of tensors before the comparison gets to them, so that a disk is never idle.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/big_array.h"
#include "compare/pair/dump_pair.h"

namespace msprobe {

/// Threads of its own that walk through the ops of `pair`, which outlives it, some files ahead. Files that are in
/// memory already cost next to nothing.
class ReadAhead {
 public:
  explicit ReadAhead(const DumpPair& pair);
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead();

  /// The comparison is done with the ops before this one.
  void Passed(size_t op);

 private:
  struct Reader;
  void Run();
  /// False when it is time to stop.
  bool WaitForRoom(size_t op);
  void Note(size_t op, uint64_t bytes);

  const DumpPair& pair_;
  std::mutex mutex_;
  std::condition_variable room_;
  bool stop_ = false;
  size_t passed_ = 0;             // ops
  uint64_t ahead_ = 0;            // bytes that were asked for and are not passed
  BigArray<uint64_t> asked_for_;  // bytes of each op, of tensors only
  std::atomic<size_t> next_ = 0;  // op
  std::vector<std::thread> threads_;
};

}  // namespace msprobe
