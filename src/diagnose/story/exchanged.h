// Parameters that hold each other's values.
#pragma once

#include <vector>

#include "diagnose/story/story.h"

namespace msprobe {

/// Where the first origin is a parameter that another one's values stand in, and that one has its own, they become one
/// origin; so do further pairs. `origins` leads with the cause.
void JoinExchanged(std::vector<StoryOrigin>* origins);

}  // namespace msprobe
