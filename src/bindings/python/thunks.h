// C functions that know which hooked function they stand for.
#pragma once

#include "bindings/python/api_spec.h"

namespace msprobe {

/// For methods: a C function with the calling convention of `flags` that runs `site`; null when all of them are taken
/// or the convention is unknown. The interpreter calls it from the method table by every path it has, specialised
/// instructions included.
PyCFunction ClaimThunk(ApiSite* site, int flags);

}  // namespace msprobe
