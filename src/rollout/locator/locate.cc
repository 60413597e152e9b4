#include "rollout/locator/locate.h"

namespace msprobe {

StatusOr<RolloutReport> LocateRollout(const RolloutOptions&) { return RolloutReport{}; }
std::vector<Judgement> JudgementsOf(const RolloutReport&) { return {}; }
Message RolloutHeadline(const RolloutReport&) { return {}; }
Message RolloutText(const RolloutReport&) { return {}; }
std::string RolloutJson(const RolloutReport&) { return "{}\n"; }

}  // namespace msprobe
