// Arguments and results of a call of a hooked function as lines of its record.
#pragma once

#include <vector>

#include "bindings/python/api_spec.h"

namespace msprobe {

void RecordInputs(const ApiSpec& spec, const CallArgs& args, Record* record);
void RecordOutput(const ApiSpec& spec, const CallArgs& args, PyObject* result, Record* record);

/// The positional arguments of the op; borrowed.
std::vector<PyObject*> PositionalArguments(const CallArgs& args);
/// Borrowed; null without one.
PyObject* FirstArgument(const CallArgs& args);
/// What `out=` names; borrowed, null without one.
PyObject* OutArgument(const CallArgs& args);
/// `inplace=True` or `out=tensor`.
bool AsksForInPlace(const CallArgs& args);
/// A dropout with p=0.
bool DropsNothing(const CallArgs& args);

}  // namespace msprobe
