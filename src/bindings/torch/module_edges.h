// The gradients that leave a module by its inputs, for who reads them in Python: the edges of the graph they pass.
#pragma once

#include <nanobind/nanobind.h>

namespace msprobe {

void BindModuleEdges(nanobind::module_& m);

}  // namespace msprobe
