// What two runs were compared for by mistake: it is said before any verdict.
#pragma once

#include <vector>

#include "diagnose/story/story.h"
#include "match/path_plan.h"

namespace msprobe {

/// `files` are the pairs of the step at which the story's difference begins. Where a mistake explains it, the story has
/// no origin: nothing can be said.
void RecogniseMistake(const std::vector<FilePair>& files, Story* story);

}  // namespace msprobe
