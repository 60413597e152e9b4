// What Python sees of the taps of modules.
#pragma once

#include <nanobind/nanobind.h>

namespace msprobe {

void BindModuleTaps(nanobind::module_& m);

}  // namespace msprobe
