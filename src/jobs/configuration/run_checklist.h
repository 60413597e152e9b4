// `msprobe config_check -tp FILES -gp FILES`: the checklist over what two runs are configured with.
#pragma once

#include <string>
#include <vector>

#include "base/language.h"
#include "base/status.h"
#include "checks/checklist.h"
#include "jobs/configuration/setting_differences.h"
#include "judgement/judgement.h"

namespace msprobe {

struct ChecklistReport {
  std::vector<CheckFinding> findings;
  std::vector<SettingDifference> settings;  // that differ, and that no rule knows
  std::vector<std::string> not_known;       // files of a side that no stack was recognised in
  std::vector<std::string> not_compared;    // rules: the unit of a number is not known
  std::vector<std::string> not_read;        // files of settings that a side names and that are not here
  std::vector<std::string> frameworks[2];   // of the target and of the golden run
  std::vector<Message> warnings;
  std::vector<std::string> files;  // written
  bool pair = false;

  size_t Count(CheckVerdict verdict) const;
  /// Whether a side was not understood or read, and nothing that was fails.
  bool Undecided() const {
    const bool open = !not_known.empty() || !not_compared.empty() || !not_read.empty();
    return open && Count(CheckVerdict::kFail) == 0;
  }
};

/// Each side: scripts, yaml and json files, logs, directories of models, packs (.zip). `golden` may be empty: then only
/// the rules about one run are asked. With `output` checklist.json, checklist.xlsx and, where this msprobe
/// has its pages, checklist.html are written there.
StatusOr<ChecklistReport> RunChecklistOfFiles(const std::vector<std::string>& target,
                                              const std::vector<std::string>& golden, const std::string& output,
                                              Language language);

std::vector<Judgement> JudgementsOf(const ChecklistReport& report, Language language);

std::string ChecklistJson(const ChecklistReport& report);
/// What fails, is odd or must be asked, for a terminal.
Message ChecklistText(const ChecklistReport& report, Language language);

}  // namespace msprobe
