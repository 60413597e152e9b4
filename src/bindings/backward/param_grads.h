// Gradients of a module's own parameters.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bindings/python/name_counts.h"
#include "bindings/python/py.h"
#include "capture/record.h"

namespace msprobe {

/// Of one module in one step.
struct ParamGrads {
  const std::string* base = nullptr;
  NameCounts* counts = nullptr;
  uint64_t generation = 0;
  uint64_t called = 0;        // the last step in which the module was called: others may use its parameters, too
  PyObject* first = nullptr;  // parameter whose gradient came first: each time it comes again a new entry begins
  int expected = 0, seen = 0;
  bool listed = false;  // among those that FinishParamGrads() looks at
  Record* record = nullptr;

  /// The gradient of `parameter` is there; `read` gives it, and is only called when it is recorded.
  void Add(PyObject* parameter, const char* name, const std::function<Ref()>& read);
  void Finish();
};
using ParamGradsPtr = std::shared_ptr<ParamGrads>;

/// FinishParamGrads() will look at it.
void ListParamGrads(const ParamGradsPtr& grads);
/// At stop(): entries whose other parameters got no gradient.
void FinishParamGrads();

}  // namespace msprobe
