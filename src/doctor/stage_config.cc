// Stage: are both runs configured alike?
#include "base/text.h"
#include "doctor/stage_judges.h"

namespace msprobe {
namespace {

BothWords DifferenceWords(const ConfigDifference& d) {
  return Both("{}: {} in A ({}), {} in B ({})", "{}：A 为 {}（{}），B 为 {}（{}）", d.id, OneLine(d.a),
              OneLine(d.a_from), OneLine(d.b), OneLine(d.b_from));
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
  } else {
    out.evidence.push_back(Both("{} rules of the checklist agree, {} are to be asked of a person",
                                "检查清单中 {} 项一致，{} 项需人工确认", config.passed, config.asked));
  }
  return out;
}

}  // namespace msprobe
