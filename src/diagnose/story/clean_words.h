// The headline of a comparison in which no origin was found.
#pragma once

#include <string>

#include "diagnose/story/phrases.h"

namespace msprobe {

/// What was not there to be seen, as a sentence; "" when all was.
std::string UnseenText(const Words& say, const Story& s, Language language);
std::string CleanHeadline(const Words& say, const Story& s);

}  // namespace msprobe
