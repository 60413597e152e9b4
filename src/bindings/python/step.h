// A step: opened by start(), recorded until stop(), closed by step(). Calls come with the GIL.
#pragma once

#include <string>

#include "base/status.h"

namespace msprobe {

/// Opens the files of a step, or goes on with the open one, and records from here on.
Status StartStep(const std::string& dir, const std::string& task, const std::string& level, uint64_t ranks);
/// Records no more; everything recorded so far is in the files. Backward passes of what was recorded may still come.
Status StopStep();
/// The files are complete and closed.
Status EndStep();

}  // namespace msprobe
