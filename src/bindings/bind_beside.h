// Binds what stands beside the recorder: compiled regions, formats of numbers, weights and responses.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/bind_deferral.h"
#include "bindings/bind_formats.h"
#include "bindings/bind_regions.h"
#include "bindings/fingerprints.h"
#include "bindings/responses.h"

namespace msprobe {

inline void BindBeside(nanobind::module_& m) {
  BindRegions(m);
  BindFormats(m);
  BindDeferral(m);
  BindFingerprints(m);
  BindResponses(m);
}

}  // namespace msprobe
