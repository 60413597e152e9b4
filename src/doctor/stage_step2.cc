// Stage: the loss of the second step, behind one update.
#include "doctor/next_run.h"
#include "doctor/stage_judges.h"

namespace msprobe {

StageResult JudgeStep2(const DoctorEvidence& evidence) {
  StageResult out;
  AddDumpVerdict(evidence, StageId::kStep2, &out);
  const CurveEvidence& curves = evidence.curves;
  if (!curves.seen || !curves.from_start) return out;
  for (const CurvePoint& point : curves.loss.points) {
    if (point.step != 1) continue;
    const bool apart = curves.loss.parted && curves.loss.parted->step <= 1;
    const bool unsure = curves.loss.unsure && curves.loss.unsure->step == 1;
    RaiseVerdict(apart ? StageVerdict::kDiffers : unsure ? StageVerdict::kUnsure : StageVerdict::kPass, &out);
    out.evidence.push_back(PointWords("loss", "的 loss", point));
    if (apart && out.step < 0) out.step = 1;
    if (apart && out.cause.empty()) {
      out.cause = "loss of step 2";
      out.cause_text = Both("the second loss differs: the backward pass or the update of step 1 does",
                            "第 2 步 loss 不同：第 1 步的反向或更新不同");
    }
    if ((apart || unsure) && !out.exact) {
      out.next = RecordSteps(evidence, {0, 1},
                             Both("a recording of the steps 1 and 2 tells the backward pass from the optimizer",
                                  "采集第 1、2 步可区分反向与优化器"),
                             Besides::kOptimizer);
    }
  }
  return out;
}

}  // namespace msprobe
