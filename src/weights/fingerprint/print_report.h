// What the comparison of two fingerprints says, for people and programs.
#pragma once

#include "json/writer.h"
#include "judgement/judgement.h"
#include "weights/fingerprint/print_compare.h"

namespace msprobe {

std::vector<Judgement> JudgementsOf(const PrintComparison& comparison);
/// One sentence on a weight: "rows 0 to 15 of 64 differ: they are rows 16 to 31 of it".
Message SentenceOf(const PrintDiff& diff);
Message PrintsText(const WholeModel& a, const WholeModel& b, const PrintComparison& comparison, bool all);
std::string PrintsJson(const WholeModel& a, const WholeModel& b, const PrintComparison& comparison);

}  // namespace msprobe
