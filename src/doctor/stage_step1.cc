// Stage: the loss of the first step, which the forward pass gives.
#include "doctor/next_run.h"
#include "doctor/stage_judges.h"

namespace msprobe {

StageResult JudgeStep1Loss(const DoctorEvidence& evidence) {
  StageResult out;
  const CurveEvidence& curves = evidence.curves;
  AddDumpVerdict(evidence, StageId::kStep1Loss, &out);
  const bool cut = !evidence.dumps.story.cut.empty() && AllStepsAgree(curves);
  if (evidence.dumps.unknown && evidence.dumps.unknown_step <= 0 && cut) {
    out.evidence.push_back(
        Both("dumps: the work is divided in another way, so that ops cannot be compared; the losses and "
             "norms of all {} steps agree",
             "dump：两侧的切分方式不同，无法逐算子比较；全部 {} 步的 loss 与 norm 一致", curves.loss.points.size()));
  } else if (evidence.dumps.unknown && evidence.dumps.unknown_step <= 0) {
    RaiseVerdict(StageVerdict::kUnsure, &out);
    out.evidence.push_back(Both("dumps: ops of step 1 differ beyond rounding, and none of them begins it",
                                "dump：第 1 步的算子差异超出舍入，但无法确定起点"));
  }
  if (!curves.seen || !curves.from_start || curves.loss.points.front().step != 0) {
    if (out.verdict == StageVerdict::kNotSeen) {
      out.next = RecordSteps(evidence, {0, 1},
                             Both("nothing shows the first steps; their recording shows data, weights, forward, "
                                  "backward and optimizer at once",
                                  "没有前两步的信息；采集它们可同时看到数据、权重、前向、反向与优化器"));
    }
    return out;
  }
  const CurvePoint& first = curves.loss.points.front();
  out.evidence.push_back(PointWords("loss", "的 loss", first));
  const bool apart = curves.loss.parted && curves.loss.parted->step == 0;
  const bool unsure = curves.loss.unsure && curves.loss.unsure->step == 0;
  RaiseVerdict(apart ? StageVerdict::kDiffers : unsure ? StageVerdict::kUnsure : StageVerdict::kPass, &out);
  if (apart && out.step < 0) out.step = 0;
  if (apart && out.cause.empty()) {
    out.cause = "loss of step 1";
    out.cause_text = Both("the first loss differs: weights, data or the forward pass do",
                          "第 1 步 loss 不同：权重、数据或前向计算不同");
  }
  if ((apart || unsure) && !out.exact && !out.next) {
    out.next = RecordSteps(evidence, {0, 1},
                           Both("a recording of step 1 tells data, weights and forward pass apart, and names the op",
                                "采集第 1 步可区分数据、权重与前向，并指出算子"));
  }
  return out;
}

}  // namespace msprobe
