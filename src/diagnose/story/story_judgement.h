// The answer of a comparison, or of a search for NaN and infinities, as judgements.
#pragma once

#include <vector>

#include "diagnose/story/story.h"
#include "judgement/judgement.h"

namespace msprobe {

/// What was found, in the language it is printed in.
std::vector<Judgement> JudgementsOf(const Story& story, Language language);

}  // namespace msprobe
