// What one training says of itself before it runs long: its configuration, data, weights, first losses and dumps.
#pragma once

#include <string>
#include <vector>

#include "base/language.h"
#include "base/status.h"
#include "base/words/both_words.h"
#include "doctor/files/run_files.h"

namespace msprobe {

enum class PreflightVerdict : uint8_t { kPass, kWarn, kFail };

struct PreflightFinding {
  std::string check;  // "data.input_ids"
  PreflightVerdict verdict = PreflightVerdict::kPass;
  BothWords text, fix;
};

struct PreflightReport {
  RunFiles run;
  std::vector<PreflightFinding> findings;  // what fails first
  std::vector<BothWords> not_seen;         // what could not be looked at, and what would show it
  std::vector<std::string> files;

  size_t Count(PreflightVerdict verdict) const;
};

/// Writes msprobe_preflight.json to the output.
StatusOr<PreflightReport> RunPreflight(const std::vector<std::string>& paths, const std::string& output,
                                       Language language);

std::string PreflightText(const PreflightReport& report, Language language);
std::string PreflightJson(const PreflightReport& report);

}  // namespace msprobe
