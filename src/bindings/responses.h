// Binds what response_anomaly needs: the search for broken responses.
#pragma once

#include <nanobind/nanobind.h>

namespace msprobe {

void BindResponses(nanobind::module_& m);

}  // namespace msprobe
