// What the doctor says, in the words that terminal, page and JSON share.
#pragma once

#include <string>
#include <string_view>

#include "doctor/doctor.h"

namespace msprobe {

struct StateWords {
  std::string_view en, zh;
};

StateWords VerdictWords(StageVerdict verdict);
/// Whether a run that shows a stage is worth naming: the stage was not seen, and where the runs part is open.
bool IsOffered(const Diagnosis& d, const StageResult& result);
const DoctorStage& StageOfId(StageId id);
std::string TitleOf(const DoctorStage& stage, Language language);
BothWords HeadlineOf(const DoctorReport& report);
/// "runs/a: 1 configurations, 2 logs".
std::string FilesLine(const RunFiles& run, Language language);

}  // namespace msprobe
