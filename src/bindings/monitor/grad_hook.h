// Hooks that take the gradients of parameters when autograd has accumulated them.
#pragma once

#include <nanobind/nanobind.h>

namespace msprobe {

void BindGradHook(nanobind::module_& m);

}  // namespace msprobe
