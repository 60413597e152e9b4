#include "doctor/config_evidence.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/text.h"
#include "checks/checklist.h"
#include "checks/effective.h"
#include "config/read_configuration.h"
#include "config/secrets.h"
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

/// Names of what no training computes with.
bool IsIncidental(std::string_view key) {
  for (const std::string_view word :
       {"path",        "dir",   "save",        "output",    "log",     "name",   "port", "file",
        "tensorboard", "wandb", "config",      "prefix",    "eval",    "exit",   "addr", "host",
        "rank",        "url",   "train_iters", "max_steps", "threads", "workers"}) {
    if (Contains(key, word)) return true;
  }
  return false;
}

Status ReadAllConfigs(const RunFiles& run, Configuration* out) {
  for (const std::string& path : run.configs) {
    if (!EndsWith(path, ".zip")) MSP_RETURN_IF_ERROR(AddFile(path, out));
  }
  return OkStatus();
}

using SettingsByKey = std::map<std::string, const Setting*>;

SettingsByKey LastByKey(const Configuration& configuration) {
  SettingsByKey out;
  for (const ConfigSource& source : configuration.sources) {
    for (const Setting& setting : source.settings) out[setting.key] = &setting;
  }
  return out;
}

bool SameValue(const ConfigValue& x, const ConfigValue& y) {
  const auto a = x.AsNumber(), b = y.AsNumber();
  if (a && b) return *a == *b;
  return x == y;
}

/// Settings of one name that differ and that no rule has spoken of, where both sides are of one framework.
void AddSettings(const Configuration& a, const Configuration& b, ConfigEvidence* out) {
  std::set<std::string> told;
  for (const ConfigDifference& known : out->differences) {
    told.insert(known.a_from);
    told.insert(known.b_from);
  }
  const SettingsByKey left = LastByKey(a), right = LastByKey(b);
  for (const auto& [key, own] : left) {
    const Setting* x = own;
    const auto found = right.find(key);
    if (found == right.end() || SameValue(x->value, found->second->value) || IsIncidental(key)) continue;
    const Setting* y = found->second;
    if (told.contains(x->Origin()) && told.contains(y->Origin()) && x->line > 0) {
      // A line may hold many settings: the rule has told of this one if its values are those.
      const bool same = std::any_of(out->differences.begin(), out->differences.end(), [&](const ConfigDifference& d) {
        return SameValue(PythonScalar(d.a), x->value) && SameValue(PythonScalar(d.b), y->value);
      });
      if (same) continue;
    }
    if (IsSecret(key, x->value.Shown()) || IsSecret(key, y->value.Shown())) continue;
    ConfigDifference difference;
    difference.id = key;
    difference.rule = false;
    difference.a = x->value.Shown();
    difference.b = y->value.Shown();
    difference.a_from = x->Origin();
    difference.b_from = y->Origin();
    difference.reason = Both("the setting {} differs", "设置 {} 不同", key);
    difference.fix = Both("set {} to the same at both sides", "两侧将 {} 设为相同的值", key);
    for (const WordEffect& word : kWordEffects) {
      if (!Contains(key, word.word)) continue;
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
    if (finding.verdict == CheckVerdict::kPass) ++out->passed;
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
    if (out.frameworks_a == out.frameworks_b) {
      out.seen = out.seen || (!left.sources.empty() && !right.sources.empty());
      AddSettings(left, right, &out);
    }
  }
  return out;
}

}  // namespace msprobe
