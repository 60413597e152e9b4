#include <algorithm>
#include <array>

#include "doctor/stage.h"
#include "doctor/stage_judges.h"

namespace msprobe {
namespace {

constexpr DoctorStage kStages[] = {
#define MSP_STAGE(id, name, en, zh, judge) {StageId::id, name, en, zh, judge},
#include "doctor/stage_list.def"
#undef MSP_STAGE
};

}  // namespace

std::span<const DoctorStage> DoctorStages() { return kStages; }

std::string_view NameOf(StageVerdict verdict) {
  switch (verdict) {
    case StageVerdict::kNotSeen: return "not_seen";
    case StageVerdict::kPass: return "pass";
    case StageVerdict::kUnsure: return "cannot_say";
    case StageVerdict::kDiffers: return "differs";
  }
  return "";
}

}  // namespace msprobe
