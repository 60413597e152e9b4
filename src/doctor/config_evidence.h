// How the configurations of two runs differ, and from which stage on that can be seen.
#pragma once

#include <string>
#include <vector>

#include "base/language.h"
#include "base/message.h"
#include "doctor/files/run_files.h"
#include "doctor/stage.h"

namespace msprobe {

struct ConfigDifference {
  std::string id;  // of the rule: "structure.norm_eps"; of other settings their name
  bool rule = true;
  bool fails = false;  // what the checklist says makes the runs different
  std::string a, b;    // values and where they are from
  std::string a_from, b_from;
  BothWords reason, fix;
  StageId effect = StageId::kStep1Loss;  // the first stage that can show it
  bool later = false;                    // it can also show at any stage behind
};

struct ConfigEvidence {
  bool seen = false;  // both sides have a configuration that is known
  std::vector<std::string> frameworks_a, frameworks_b;
  std::vector<ConfigDifference> differences;  // what fails first
  std::vector<ConfigDifference> single;       // rules about one run that fail, though both agree
  size_t asked = 0, passed = 0;
  size_t of_settings = 0;  // of those that passed: about something that both set
  bool half = false;       // one side computes in bf16 or fp16
  bool known_precision = false;
  std::vector<Message> notes;
};

/// Of one run where `b` is null.
StatusOr<ConfigEvidence> CompareConfigs(const RunFiles& a, const RunFiles* b);

}  // namespace msprobe
