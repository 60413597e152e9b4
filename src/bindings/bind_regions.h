// Binds what regions.py and hook_points.py need of compiled regions.
#pragma once

#include <nanobind/nanobind.h>

namespace msprobe {

void BindRegions(nanobind::module_& m);

}  // namespace msprobe
