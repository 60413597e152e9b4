// What Python sees of the training monitor: a journal of series, event files, and the edges of a module's gradients.
#pragma once

#include <nanobind/nanobind.h>

namespace msprobe {

void BindMonitor(nanobind::module_& m);
void BindSeriesJudge(nanobind::module_& m);
void BindOptimizerStep(nanobind::module_& m);

}  // namespace msprobe
