// Binds what computes values elsewhere, and what takes them when they have come.
#pragma once

#include <nanobind/nanobind.h>

namespace msprobe {

void BindDeferral(nanobind::module_& m);

}  // namespace msprobe
