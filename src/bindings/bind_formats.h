// Binds what low_precision.py needs of formats of few bits.
#pragma once

#include <nanobind/nanobind.h>

namespace msprobe {

void BindFormats(nanobind::module_& m);

}  // namespace msprobe
