// Who waits for an asynchronous communication, in whatever way: the methods of works and futures that tell.
#pragma once

#include <string>

#include "bindings/python/api_spec.h"

namespace msprobe {

/// `role` is one of works or futures: its part of `spec` is set.
bool SetWorkRole(const std::string& role, ApiSpec* spec);
/// Follows who waits for works of this class, of those below it that are met from then on, and of blocks of them.
void WatchWorks(PyTypeObject* type);

}  // namespace msprobe
