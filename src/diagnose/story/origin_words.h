// What is said of one origin, in both languages.
#pragma once

#include <string>

#include "diagnose/story/phrases.h"

namespace msprobe {

/// "25 %"; "" where the difference has no size.
std::string Size(const StoryOrigin& o);
/// Whether there are two values that a reader can hold against each other.
bool HasValues(const StoryOrigin& o);
/// "is 1.25 times the golden value (Norm 5.3, golden 4.24)", "differs by 20 % (Norm 5.3, golden 4.42)", "differs (Max
/// inf, golden 3.2)"
std::string Differs(const Words& say, const StoryOrigin& o);
/// What two shapes say of the runs, where no ranks share the work; "" for nothing.
std::string ShapesTell(const Words& say, const StoryOrigin& o);
/// The cause first, then where: "layers.1.mlp.weight differs by 25 % (Norm 5.3, golden 4.24) before it is used (rank 2,
/// step 0)".
std::string OriginText(const Words& say, const StoryOrigin& o);

}  // namespace msprobe
