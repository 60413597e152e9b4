#include "rollout/stage.h"

#include <array>

namespace msprobe {
namespace {

struct StageRow {
  std::string_view name, words;
};
constexpr std::array kStages{
#define MSP_ROLLOUT_STAGE(id, name, words) StageRow{name, words},
#include "rollout/stages.def"
#undef MSP_ROLLOUT_STAGE
};
constexpr std::array kVerdicts{StageRow{"not_seen", "not seen"},
                               StageRow{"agrees", "equal"},
                               StageRow{"round_off", "no more than rounding"},
                               StageRow{"legitimate", "as asked for"},
                               StageRow{"unsure", "cannot say"},
                               StageRow{"cause", "cause"}};

}  // namespace

std::string_view NameOf(RolloutStage stage) { return kStages[static_cast<size_t>(stage)].name; }
Message WordsOf(RolloutStage stage) { return KnownText(kStages[static_cast<size_t>(stage)].words); }
std::string_view NameOf(RolloutVerdict verdict) { return kVerdicts[static_cast<size_t>(verdict)].name; }
Message WordsOf(RolloutVerdict verdict) { return KnownText(kVerdicts[static_cast<size_t>(verdict)].words); }

}  // namespace msprobe
