// Stage: the gradients of the first step, weight by weight.
#include "doctor/next_run.h"
#include "doctor/stage_judges.h"

namespace msprobe {

StageResult JudgeLocalNorm(const DoctorEvidence& evidence) {
  StageResult out;
  AddDumpVerdict(evidence, StageId::kLocalNorm, &out);
  const GradientEvidence& gradients = evidence.gradients;
  if (gradients.first == 0) {
    RaiseVerdict(StageVerdict::kDiffers, &out);
    out.step = 0;
    out.evidence.push_back(gradients.how);
    if (out.cause.empty()) {
      out.cause = "gradient " + gradients.file;
      out.cause_text = {"the gradient of a weight differs: " + gradients.how.en, "权重的梯度不同：" + gradients.how.zh};
    }
  } else if (gradients.compared > 0) {
    RaiseVerdict(StageVerdict::kPass, &out);
    out.evidence.push_back(Both("the saved gradients of {} steps agree", "{} 步保存的梯度一致", gradients.compared));
  }
  const CurveEvidence& curves = evidence.curves;
  if (curves.seen && curves.from_start && !curves.norm.points.empty() && curves.norm.points.front().step == 0) {
    const bool apart = curves.norm.parted && curves.norm.parted->step == 0;
    const bool unsure = curves.norm.unsure && curves.norm.unsure->step == 0;
    out.evidence.push_back(PointWords("global norm", "的 global norm", curves.norm.points.front()));
    RaiseVerdict(apart ? StageVerdict::kDiffers : unsure ? StageVerdict::kUnsure : StageVerdict::kPass, &out);
    if (apart && out.step < 0) out.step = 0;
    if (apart && out.cause.empty()) {
      out.cause = "global norm of step 1";
      out.cause_text = Both("the gradients of step 1 differ", "第 1 步的梯度不同");
    }
  }
  if (out.verdict >= StageVerdict::kUnsure && !out.exact) {
    out.next = RecordSteps(evidence, {0, 1},
                           Both("a recording of step 1 names the op whose gradient differs first",
                                "采集第 1 步可指出最先出现梯度差异的算子"));
  }
  return out;
}

}  // namespace msprobe
