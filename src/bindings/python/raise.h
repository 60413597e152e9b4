// What a Status tells becomes an exception of Python, in functions that nanobind binds.
#pragma once

#include <nanobind/nanobind.h>

#include "base/status.h"

namespace msprobe {

/// nanobind::value_error, with the message of the status, unless that is one of success.
inline void Raise(const Status& status) {
  if (!status.ok()) throw nanobind::value_error(status.message().c_str());
}

}  // namespace msprobe
