// Who waits for an asynchronous communication, in whatever way: the methods of works and futures that tell.
#pragma once

#include <string>

#include "bindings/python/api_spec.h"

namespace msprobe {

/// `role` is one of works or futures: its part of `spec` is set.
bool SetWorkRole(const std::string& role, ApiSpec* spec);
/// Hooks what this class and those between it and the works of the framework write themselves. At the first call the
/// class of the works of the framework itself.
void WatchWorkType(PyTypeObject* type);

}  // namespace msprobe
