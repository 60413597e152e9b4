// Told by autograd when the gradient of a parameter is there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bindings/backward/param_grads.h"

namespace msprobe {

enum class ParamTold : uint8_t {
  kBehindAccumulation,  // a leaf: its .grad
  kBeforeNode,          // what was computed of others and stands in the place of a parameter: what reaches it
};

/// Of the parameters of a module one.
struct ParamPlace {
  size_t slot;
  const char* name;
  ParamTold told;
};

/// A hook of the tensor at this place; of its accumulator, where tensors have none that run behind the accumulation.
PyObject* NewParamHook(ParamGradsPtr grads, const ParamPlace& place, PyObject* of_accumulator);
bool IsParamHook(PyObject* object);
/// Whether it was made for this place of this module.
bool IsParamHookOf(PyObject* object, const ParamGradsPtr& grads, size_t slot);
/// A quiet one tells nothing.
void SetParamHookQuiet(PyObject* hook, bool quiet);
/// A pass begins that reaches `parameter`, and brings its gradient where it is one that `accumulates`. The node that
/// runs right before the gradient is there has this number of this thread; 0: of one that is not known.
void ExpectGradient(PyObject* parameter, uint64_t sequence, uint64_t thread, bool accumulates);

}  // namespace msprobe
