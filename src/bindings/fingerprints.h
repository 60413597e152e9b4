// Binds what fingerprint.py needs: hashes of weights in memory, and their comparison.
#pragma once

#include <nanobind/nanobind.h>

namespace msprobe {

void BindFingerprints(nanobind::module_& m);

}  // namespace msprobe
