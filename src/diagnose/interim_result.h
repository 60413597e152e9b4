// The first difference while the comparison still runs: on large dumps the answer is there long before the table.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "compare/first_difference/first_difference.h"

namespace msprobe {

class InterimResult {
 public:
  using Tell = std::function<void(const FirstDifference&)>;
  InterimResult(const DumpPair& pair, Tell tell) : pair_(pair), tell_(std::move(tell)) {}
  InterimResult(const InterimResult&) = delete;
  InterimResult& operator=(const InterimResult&) = delete;
  ~InterimResult() { Wait(); }

  /// `so_far`: the distances of the first ops of the target. Calls Tell once, when these ops already say what differs
  /// first, on any thread. Nothing is told for dumps that are done in a moment anyway.
  void Seen(const OpDistances& so_far);
  /// For the attempt that runs: it looks while the comparison goes on.
  void Wait();

 private:
  void Try(OpDistances known);
  const DumpPair& pair_;
  Tell tell_;
  size_t looked_at_ = 0;  // ops before this one agree
  size_t next_try_ = 0;   // number of ops that must be there before the next attempt
  bool told_ = false;     // read and written while no attempt runs
  std::thread attempt_;
};

}  // namespace msprobe
