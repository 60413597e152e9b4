// What Python sees of the tasks that decide after an op ran whether it is kept.
#pragma once

#include <nanobind/nanobind.h>

namespace msprobe {

void BindTasks(nanobind::module_& m);

}  // namespace msprobe
