// What `msprobe rollout` says: to people, to programs, as files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/language.h"
#include "judgement/judgement.h"
#include "rollout/evidence.h"
#include "rollout/gap.h"
#include "rollout/stage.h"

namespace msprobe {

struct RolloutReport {
  SideEvidence train, rollout;
  std::vector<TokenGap> gaps;
  std::optional<double> kl;                 // k3, mean over `gaps`
  RequestsLeftOut left_out;                 // of these, for their tokens differ
  std::vector<RolloutStageResult> results;  // of all stages, in their order
  std::vector<std::string> files;           // written
};

/// The first stage with a cause; null without one.
const RolloutStageResult* LeadOf(const RolloutReport& report);

std::vector<Judgement> JudgementsOf(const RolloutReport& report);

Message RolloutHeadline(const RolloutReport& report);
Message RolloutText(const RolloutReport& report);
std::string RolloutJson(const RolloutReport& report);
std::string RolloutPage(const RolloutReport& report, Language language);

/// Writes msprobe_rollout.json and msprobe_rollout.html.
Status WriteRolloutFiles(const std::string& output, RolloutReport* report);

}  // namespace msprobe
