#include "doctor/config_evidence.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "checks/checklist.h"
#include "checks/effective.h"
#include "config/read_configuration.h"
#include "jobs/configuration/run_checklist.h"

namespace msprobe {
namespace {

struct RuleEffect {
  std::string_view prefix;
  StageId effect;
  bool later;
};

/// The longest prefix counts, so the special ones stand first.
constexpr std::array kRuleEffects{
    RuleEffect{"structure.init_std", StageId::kWeights, false},
    RuleEffect{"structure.seq_length", StageId::kData, false},
    RuleEffect{"optimizer.global_batch_size", StageId::kData, false},
    RuleEffect{"optimizer.loss_scale", StageId::kLocalNorm, true},
    RuleEffect{"optimizer.", StageId::kOptimizer, true},
    RuleEffect{"weights.", StageId::kLocalNorm, true},
    RuleEffect{"other.", StageId::kData, false},
    RuleEffect{"prepare.seed", StageId::kData, true},
    RuleEffect{"prepare.", StageId::kOptimizer, true},
    RuleEffect{"parallel.", StageId::kLocalNorm, true},
    RuleEffect{"", StageId::kStep1Loss, false},
};

struct WordEffect {
  std::string_view word;
  StageId effect;
  bool later;
};

/// What a setting that no rule knows may change, by words of its name.
constexpr std::array kWordEffects{
    WordEffect{"seed", StageId::kData, true},          WordEffect{"data", StageId::kData, true},
    WordEffect{"batch", StageId::kData, true},         WordEffect{"shuffle", StageId::kData, true},
    WordEffect{"sample", StageId::kData, true},        WordEffect{"token", StageId::kData, true},
    WordEffect{"init", StageId::kWeights, false},      WordEffect{"load", StageId::kWeights, false},
    WordEffect{"optim", StageId::kOptimizer, true},    WordEffect{"lr", StageId::kOptimizer, true},
    WordEffect{"learning", StageId::kOptimizer, true}, WordEffect{"warmup", StageId::kOptimizer, true},
    WordEffect{"decay", StageId::kOptimizer, true},    WordEffect{"beta", StageId::kOptimizer, true},
    WordEffect{"momentum", StageId::kOptimizer, true}, WordEffect{"clip", StageId::kOptimizer, true},
    WordEffect{"accum", StageId::kLocalNorm, true},    WordEffect{"grad", StageId::kLocalNorm, true},
    WordEffect{"loss", StageId::kStep1Loss, true},
};

Status ReadAllConfigs(const RunFiles& run, Configuration* out) {
  for (const std::string& path : run.configs) {
    if (!EndsWith(path, ".zip")) MSP_RETURN_IF_ERROR(AddFile(path, out));
  }
  return OkStatus();
}

/// Settings that no rule knows, where both sides are of one framework; how long a run is belongs to none of its steps.
void AddSettings(const ChecklistReport& report, ConfigEvidence* out) {
  for (const SettingDifference& setting : report.settings) {
    const bool length = setting.key == "train_iters" || setting.key == "max_steps";
    if (setting.incidental || length || setting.target.empty() || setting.golden.empty()) continue;
    ConfigDifference difference;
    difference.id = setting.key;
    difference.rule = false;
    difference.a = setting.golden;
    difference.b = setting.target;
    difference.a_from = setting.golden_origin;
    difference.b_from = setting.target_origin;
    difference.reason = Both("the setting {} differs", "设置 {} 不同", setting.key);
    difference.fix = Both("set {} to the same at both sides", "两侧将 {} 设为相同的值", setting.key);
    for (const WordEffect& word : kWordEffects) {
      if (!Contains(setting.key, word.word)) continue;
      difference.effect = word.effect;
      difference.later = word.later;
      break;
    }
    out->differences.push_back(std::move(difference));
    if (out->differences.size() > 200) return;
  }
}

ConfigDifference FromFinding(const CheckFinding& finding) {
  ConfigDifference out;
  out.id = finding.rule->id;
  out.fails = finding.verdict == CheckVerdict::kFail;
  out.a = finding.golden;
  out.b = finding.target;
  out.a_from = finding.golden_origin;
  out.b_from = finding.target_origin;
  out.reason = {std::string(finding.rule->reason), std::string(finding.rule->reason_zh)};
  out.fix = {std::string(finding.rule->fix), std::string(finding.rule->fix_zh)};
  for (const RuleEffect& effect : kRuleEffects) {
    if (!StartsWith(finding.rule->id, effect.prefix)) continue;
    out.effect = effect.effect;
    out.later = effect.later;
    break;
  }
  return out;
}

void AddFindings(const ChecklistReport& report, bool pair, ConfigEvidence* out) {
  for (const CheckFinding& finding : report.findings) {
    if (finding.verdict == CheckVerdict::kAsk) ++out->asked;
    if (finding.verdict == CheckVerdict::kPass) {
      ++out->passed;
      out->of_settings += !finding.target.empty() && (!pair || !finding.golden.empty());
    }
    const bool bad = finding.verdict == CheckVerdict::kFail || finding.verdict == CheckVerdict::kWarn;
    if (!bad) continue;
    // A run by itself has no value of the other; rules about one run are asked where both agree, too.
    const bool apart = pair && finding.target != finding.golden;
    const bool told = StartsWith(finding.rule->id, "optimizer.") && EndsWith(finding.rule->id, "_value");
    if (apart && !told)
      out->differences.push_back(FromFinding(finding));
    else if (finding.verdict == CheckVerdict::kFail)
      out->single.push_back(FromFinding(finding));
  }
  std::stable_sort(out->differences.begin(), out->differences.end(),
                   [](const ConfigDifference& x, const ConfigDifference& y) { return x.fails > y.fails; });
}

void ReadPrecision(const Configuration& configuration, ConfigEvidence* out) {
  const std::string precision = EffectiveRun(configuration).Word("precision");
  if (precision.empty()) return;
  out->known_precision = true;
  out->half = out->half || Contains(precision, "16") || Contains(precision, "half");
}

}  // namespace

StatusOr<ConfigEvidence> CompareConfigs(const RunFiles& a, const RunFiles* b) {
  ConfigEvidence out;
  if (a.configs.empty() || (b && b->configs.empty())) return out;
  // Left out where no framework is known by its names: settings are still compared by theirs.
  const auto report = RunChecklistOfFiles(b ? b->configs : a.configs, b ? a.configs : std::vector<std::string>{}, "",
                                          Language::kEnglish);
  if (report.ok()) {
    out.seen = true;
    out.frameworks_b = report->frameworks[0];
    out.frameworks_a = b ? report->frameworks[1] : report->frameworks[0];
    out.notes = report->warnings;
    AddFindings(*report, b != nullptr, &out);
  } else if (report.status().code() != Code::kBadInput) {
    return report.status();
  } else {
    out.notes.push_back(report.status().text());
  }
  Configuration left, right;
  MSP_RETURN_IF_ERROR(ReadAllConfigs(a, &left));
  ReadPrecision(left, &out);
  if (b) {
    MSP_RETURN_IF_ERROR(ReadAllConfigs(*b, &right));
    ReadPrecision(right, &out);
    if (report.ok() && out.frameworks_a == out.frameworks_b) AddSettings(*report, &out);
  }
  return out;
}

}  // namespace msprobe
