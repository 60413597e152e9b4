// Broken laws beside the changes of the series: evidence of who began, and findings of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "judge/law_file.h"
#include "judge/who_began.h"

namespace msprobe {

/// A law that broke about the time of an event is evidence of it, and names the guilty rank where the series do not.
/// Each other one is an event. The events are in the order in which they began.
void AddLaws(const std::vector<BrokenLaw>& laws, int64_t from_step, std::vector<JudgedEvent>* events);

}  // namespace msprobe
