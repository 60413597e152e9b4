// Stage: do both begin with the same weights?
#include "base/file.h"
#include "base/text.h"
#include "doctor/stage_judges.h"

namespace msprobe {

StageResult JudgeWeights(const DoctorEvidence& evidence) {
  StageResult out;
  AddDumpVerdict(evidence, StageId::kWeights, &out);
  for (const WeightEvidence::Pair& pair : evidence.weights.pairs) {
    if (pair.step > 0) continue;
    const bool apart = pair.different > 0 || pair.only_a > 0 || pair.only_b > 0;
    if (!apart) {
      RaiseVerdict(StageVerdict::kPass, &out);
      out.evidence.push_back(Both("{} and {}: {} weights agree, {} of them but for rounding",
                                  "{} 与 {}：{} 个权重一致，其中 {} 个仅有舍入差异", pair.a, pair.b, pair.weights,
                                  pair.rounded));
      continue;
    }
    const BothWords what = Both("{} of {} weights differ, {} are only in A, {} only in B; the first: {}",
                                "{1} 个权重中 {0} 个不同，{2} 个仅 A 有，{3} 个仅 B 有；第一个：{4}", pair.different,
                                pair.weights, pair.only_a, pair.only_b, pair.first.empty() ? pair.first_b : pair.first);
    out.evidence.push_back(what);
    if (!pair.how.empty()) out.evidence.push_back(pair.how);
    if (pair.step < 0) {
      // Nobody says when they were written: a training changes them.
      RaiseVerdict(StageVerdict::kUnsure, &out);
      continue;
    }
    out.verdict = StageVerdict::kDiffers;
    out.exact = true;
    out.step = 0;
    out.cause = "weight " + (pair.first.empty() ? pair.first_b : pair.first);
    out.cause_text = Both("the weights differ before the first step: {}", "第 1 步之前权重就不同：{}", what.en);
    out.cause_text.zh = "第 1 步之前权重就不同：" + what.zh;
    out.fix = Both("convert the weights again and load all of them; msprobe ckpt compare {} {} shows each one",
                   "重新转换并加载全部权重；msprobe ckpt compare {} {} 可逐个查看", pair.a, pair.b);
    break;
  }
  return out;
}

}  // namespace msprobe
