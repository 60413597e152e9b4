// Binds what looks at trainers beside the engines of their rollouts: weights and responses.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/fingerprints.h"
#include "bindings/responses.h"

namespace msprobe {

inline void BindRollouts(nanobind::module_& m) {
  BindFingerprints(m);
  BindResponses(m);
}

}  // namespace msprobe
