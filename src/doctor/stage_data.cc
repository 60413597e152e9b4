// Stage: does each step take the same data?
#include <algorithm>

#include "doctor/next_run.h"
#include "doctor/stage_judges.h"

namespace msprobe {

namespace {

// Labels, ids and masks are data, whichever op takes them.
void AddGivenData(const DoctorEvidence& evidence, StageResult* out) {
  const DumpEvidence& dumps = evidence.dumps;
  if (!dumps.given || out->verdict == StageVerdict::kDiffers) return;
  const GivenData& given = *dumps.given;
  out->step = std::max(dumps.given_step, 0);
  const BothWords what =
      Both("{} of {} differs and no recorded op made it: {} in A, {} in B",
           "{1} 的 {0} 不同，且不由任何已采集的算子产生：A 为 {2}，B 为 {3}", given.item, given.op, given.a, given.b);
  out->evidence.push_back(what);
  if (AllStepsAgree(evidence.curves)) {
    RaiseVerdict(StageVerdict::kUnsure, out);
    return;
  }
  out->verdict = StageVerdict::kDiffers;
  out->exact = true;
  out->cause = "input " + given.op + "." + given.item;
  out->cause_text = {"labels, ids or a mask differ: " + what.en, "标签、编号或掩码不同：" + what.zh};
  out->fix = Both("let B read the batches that A saved, then look at the data loaders",
                  "让 B 读取 A 保存的数据，再检查数据加载");
}

}  // namespace

StageResult JudgeData(const DoctorEvidence& evidence) {
  StageResult out;
  const BatchEvidence& batches = evidence.batches;
  if (batches.first >= 0) {
    out.verdict = StageVerdict::kDiffers;
    out.exact = true;
    out.step = batches.first;
    out.cause = "batch of step " + std::to_string(batches.first + 1);
    out.cause_text =
        Both("the batches of step {} differ: {}", "第 {} 步的数据不同：{}", batches.first + 1, batches.how.en);
    out.cause_text.zh = Both("", "第 {} 步的数据不同：{}", batches.first + 1, batches.how.zh).zh;
    out.evidence = {out.cause_text, Both("files: {} and {}", "文件：{} 与 {}", batches.file_a, batches.file_b)};
    out.fix = Both("let B read the batches that A saved, then look at the data loaders",
                   "让 B 读取 A 保存的数据，再检查数据加载");
    return out;
  }
  if (batches.compared > 0) {
    out.verdict = StageVerdict::kPass;
    out.evidence.push_back(Both("the saved batches of {} steps are equal", "{} 步保存的数据相同", batches.compared));
  }
  AddDumpVerdict(evidence, StageId::kData, &out);
  AddGivenData(evidence, &out);
  if (batches.compared == 0) {
    out.offer = SaveBatches(evidence, Both("saved batches of both show from which step on their data differ",
                                           "保存两侧每步的数据，可看出从哪一步起数据不同"));
  }
  return out;
}

}  // namespace msprobe
