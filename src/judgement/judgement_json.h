// A conclusion for programs: the member "judgement" of each --json.
#pragma once

#include "json/writer.h"
#include "judgement/judgement.h"

namespace msprobe {

/// Adds {"kind", "headline", "counts", "judgements"} to the open object.
void WriteConclusion(const Conclusion& conclusion, JsonWriter* json);

}  // namespace msprobe
