// What pairs that are compared side by side say while they run, in the order of the pairs.
#pragma once

#include <msprobe/compare.h>

#include <mutex>
#include <string>
#include <vector>

#include "match/path_plan.h"

namespace msprobe {

/// Calls the functions of the settings, one at a time and on any thread.
class OrderedProgress {
 public:
  /// Both outlive the object.
  OrderedProgress(const CompareSettings& settings, const std::vector<FilePair>& pairs)
      : settings_(settings), pairs_(pairs), pending_(pairs.size()) {}

  /// Of the first pair that still runs; others are not heard.
  void Progress(size_t pair, double share);
  /// Waits until every pair in front has said its own, or has ended.
  void Early(size_t pair, Message difference);
  void Preview(size_t pair, const Message& line);
  void Ended(size_t pair);

 private:
  struct Pending {
    Message waiting;  // an early difference
    bool said = false, ended = false;
  };
  /// Tells what waits at the front.
  void Pass();

  const CompareSettings& settings_;
  const std::vector<FilePair>& pairs_;
  std::mutex mutex_;
  std::vector<Pending> pending_;
  size_t running_ = 0;  // the first that has not ended
  size_t silent_ = 0;   // the first that may still say something
};

}  // namespace msprobe
