// The question to python/msprobe/_lab.py: a call of a dump as one line of JSON.
#pragma once

#include <string>

#include "lab/call_plan.h"
#include "lab/output_handlers.h"

namespace msprobe {

/// With the values of a tensor dump, else with what the dump says of their range. kBadInput, one line, for what cannot
/// be called again. `recorded`: with the results of the dump, too; then no value is made up. `handlers` may be null.
StatusOr<std::string> CallRequest(const DumpFile& dump, const PlannedCall& call, bool recorded = false,
                                  const OutputHandlers* handlers = nullptr);

}  // namespace msprobe
