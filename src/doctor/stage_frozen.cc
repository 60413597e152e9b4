// Stage: a long run whose weights stay as they are, so that each step stands for itself.
#include "doctor/next_run.h"
#include "doctor/stage_judges.h"

namespace msprobe {

StageResult JudgeFrozen(const DoctorEvidence& evidence) {
  StageResult out;
  const CurveEvidence& curves = evidence.frozen;
  if (!curves.seen) {
    if (evidence.curves.seen) {
      out.offer =
          RunFrozen(evidence, Both("with a learning rate of 0 each step stands for itself: forward and backward "
                                   "pass are held against each other on all of the data",
                                   "学习率为 0 时各步相互独立，可在全部数据上比较前向与反向"));
    }
    return out;
  }
  const int apart = FirstApart(curves);
  const int unsure = FirstUnsure(curves);
  out.verdict = apart >= 0 ? StageVerdict::kDiffers : unsure >= 0 ? StageVerdict::kUnsure : StageVerdict::kPass;
  out.step = apart;
  if (apart < 0) {
    out.evidence.push_back(
        Both("with a learning rate of 0, {} steps agree", "学习率为 0 时，{} 步一致", curves.loss.points.size()));
    return out;
  }
  out.evidence.push_back(PointWords("loss", "的 loss", curves.loss.parted ? *curves.loss.parted : *curves.norm.parted));
  out.cause = "step " + std::to_string(apart + 1) + " with a learning rate of 0";
  out.cause_text = Both("step {} differs though no weight changes: its data or an op that depends on them does",
                        "权重不变时第 {} 步仍不同：该步的数据或与数据有关的算子不同", apart + 1);
  out.next =
      RecordSteps(evidence, {apart}, Both("a recording of step {} names the op", "采集第 {} 步可指出算子", apart + 1),
                  Besides::kBatches);
  return out;
}

}  // namespace msprobe
