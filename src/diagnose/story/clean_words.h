// The headline of a comparison in which no origin was found.
#pragma once

#include <string>

#include "diagnose/story/phrases.h"

namespace msprobe {

/// What was not there to be seen, as a sentence; "" when all was.
std::string UnseenText(const Words& say, const Story& s, Language language);
std::string CleanHeadline(const Words& say, const Story& s);
/// Notes on what was not recorded, or not held against its partner; "" for nothing.
std::string UnrecordedLine(const Words& say, const Story& story);
std::string OtherFormLine(const Words& say, const Story& story);
std::string DividedLine(const Words& say, const Story& story);

}  // namespace msprobe
