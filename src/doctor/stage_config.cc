// Stage: are both runs configured alike?
#include "base/text.h"
#include "checks/checklist.h"
#include "doctor/stage_judges.h"

namespace msprobe {
namespace {

/// A value and where it is from.
BothWords ValueWords(std::string_view side, const std::string& value, const std::string& from) {
  if (value.empty()) return Both("not set in {}", "{} 未设置", side);
  const BothWords origin = Both(OriginMessage(OneLine(from)));
  BothWords out = Both("{} in {}", "{1} 为 {0}", OneLine(value), side);
  if (!from.empty()) {
    out.en += " (" + origin.en + ")";
    out.zh += "（" + origin.zh + "）";
  }
  return out;
}

BothWords DifferenceWords(const ConfigDifference& d) {
  const BothWords a = ValueWords("A", d.a, d.a_from), b = ValueWords("B", d.b, d.b_from);
  return {d.id + ": " + a.en + ", " + b.en, d.id + "：" + a.zh + "，" + b.zh};
}

}  // namespace

StageResult JudgeConfig(const DoctorEvidence& evidence) {
  StageResult out;
  const ConfigEvidence& config = evidence.config;
  if (!config.seen) return out;
  out.verdict = StageVerdict::kPass;
  size_t told = 0;
  for (const ConfigDifference& d : config.differences) {
    RaiseVerdict(d.fails ? StageVerdict::kDiffers : StageVerdict::kUnsure, &out);
    if (told++ < 12) out.evidence.push_back(DifferenceWords(d));
  }
  if (told > 12) out.evidence.push_back(Both("{} more differ", "另有 {} 项不同", told - 12));
  if (!config.differences.empty()) {
    const ConfigDifference& first = config.differences.front();
    out.cause = (first.rule ? "rule " : "setting ") + first.id;
    out.cause_text = first.reason;
    out.fix = first.fix;
    out.exact = first.fails;
  } else if (config.of_settings == 0) {  // a rule also passes where neither side says anything
    out.verdict = StageVerdict::kNotSeen;
    out.evidence.push_back(
        Both("no rule of the checklist is about what both configurations set", "检查清单中没有规则涉及两侧配置的内容"));
  } else {
    out.evidence.push_back(Both("{} rules of the checklist agree, {} are to be asked of a person",
                                "检查清单中 {} 项一致，{} 项需人工确认", config.passed, config.asked));
  }
  return out;
}

}  // namespace msprobe
