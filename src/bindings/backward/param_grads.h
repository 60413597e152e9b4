// Gradients of a module's own parameters.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bindings/python/name_counts.h"
#include "bindings/python/py.h"
#include "capture/record.h"

namespace msprobe {

/// Of one module in one step.
struct ParamGrads {
  const std::string* base = nullptr;
  NameCounts* counts = nullptr;
  uint64_t generation = 0;
  uint64_t called = 0;  // the last step in which the module was called: others may use its parameters, too
  int expected = 0, seen = 0;
  std::vector<bool> told;     // whose gradients are in `record`: when one comes again a new entry begins
  std::vector<bool> awaited;  // whose gradients the pass that runs will bring, where that is known beforehand
  size_t waiting = 0;         // how many of them
  bool foreseen = true;       // that is known of all of them
  bool listed = false;        // among those that FinishParamGrads() looks at
  Record* record = nullptr;

  /// A pass begins that brings the gradient of parameter number `slot`: others may get none, as a mask token in a
  /// training without masks, and the entry is complete without them.
  void Await(size_t slot);
  /// The gradient of parameter number `slot` is there; `read` gives it, and is only called when it is recorded.
  void Add(size_t slot, const char* name, const std::function<Ref()>& read);
  void Finish();

 private:
  void Renew();
  bool IsLast(size_t slot);
};
using ParamGradsPtr = std::shared_ptr<ParamGrads>;

/// FinishParamGrads() will look at it.
void ListParamGrads(const ParamGradsPtr& grads);
/// At stop(): entries whose other parameters got no gradient.
void FinishParamGrads();

}  // namespace msprobe
