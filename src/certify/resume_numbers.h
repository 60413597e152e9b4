// Numbers that a resume did not put back: which of them are state, by what follows from them.
#pragma once

#include <cstdint>

#include "certify/rank_resume.h"
#include "json/value.h"

namespace msprobe {

/// Moves numbers of objects from `suspects` to `lost`, where a state of the same object that was restored becomes
/// another although the steps are equal, and to `perhaps`, where nothing shows it but the object saves other state.
void JudgeNumbers(int64_t save_at, const JsonValue& straight, const JsonValue& killed, const JsonValue& resumed,
                  RankResume* result);

}  // namespace msprobe
