// Stage: the long run that learns.
#include "base/text.h"
#include "doctor/next_run.h"
#include "doctor/stage_judges.h"

namespace msprobe {
namespace {

void AddLateRate(const CurveEvidence& curves, StageResult* out) {
  if (!curves.rate.parted || curves.rate.parted->step <= 1) return;
  const CurvePoint& point = *curves.rate.parted;
  // A loss that parts earlier is not the learning rate's.
  const int apart = FirstApart(curves);
  if (apart >= 0 && apart < point.step) return;
  out->verdict = StageVerdict::kDiffers;
  out->exact = true;
  out->step = point.step;
  out->evidence.push_back(PointWords("learning rate", "的学习率", point));
  out->cause = "learning rate of step " + std::to_string(point.number);
  out->cause_text = Both("the learning rates part at step {}", "学习率在第 {} 步分叉", point.number);
  out->fix =
      Both("compare the schedules: warmup, decay, its steps and its end", "比较学习率调度：预热、衰减、步数与终值");
}

}  // namespace

StageResult JudgeTraining(const DoctorEvidence& evidence) {
  StageResult out;
  AddDumpVerdict(evidence, StageId::kTraining, &out);
  const CurveEvidence& curves = evidence.curves;
  if (!curves.seen) return out;
  if (out.cause.empty()) AddLateRate(curves, &out);
  if (curves.not_finite_a && curves.not_finite_b) {
    RaiseVerdict(StageVerdict::kUnsure, &out);
    out.firm = true;
    out.evidence.push_back(Both("both have NaN or infinities, from step {} on: what agrees there says nothing",
                                "两侧均出现 NaN 或无穷（自第 {} 步起）：其后的一致不能说明问题",
                                StepNumber(evidence, curves.not_finite_step)));
  }
  if (curves.loss.points.size() < 3 || curves.frozen) return out;
  const int apart = FirstApart(curves), unsure = FirstUnsure(curves);
  const bool band = curves.band && !curves.band->IsEmpty() && !curves.out_of_band;
  if (apart < 0 && unsure < 0) {
    RaiseVerdict(StageVerdict::kPass, &out);
    out.evidence.push_back(Both("{} steps agree", "{} 步一致", curves.loss.points.size()));
    return out;
  }
  const int step = apart >= 0 ? apart : unsure;
  const auto& points = apart >= 0 ? (curves.loss.parted ? curves.loss.parted : curves.norm.parted)
                                  : (curves.loss.unsure ? curves.loss.unsure : curves.norm.unsure);
  out.evidence.push_back(PointWords("the curves part", "曲线分叉", *points));
  const double higher = curves.loss.mean_difference;
  if (higher >= 0) {
    out.evidence.push_back(Both("over the last quarter the loss of B is {:.4g} higher than that of A",
                                "最后四分之一 B 的 loss 比 A 高 {:.4g}", higher));
  } else {
    out.evidence.push_back(Both("over the last quarter the loss of B is {:.4g} lower than that of A",
                                "最后四分之一 B 的 loss 比 A 低 {:.4g}", -higher));
  }
  if (curves.not_finite_a != curves.not_finite_b) {
    out.evidence.push_back(Both("only {} has NaN or infinities, from step {} on", "只有 {} 从第 {} 步起出现 NaN 或无穷",
                                curves.not_finite_b ? "B" : "A", StepNumber(evidence, curves.not_finite_step)));
  }
  const bool agree = evidence.dumps.seen && !evidence.dumps.origin && !evidence.dumps.unknown;
  if (out.cause.empty()) {
    RaiseVerdict(band                   ? StageVerdict::kPass
                 : apart >= 0 && !agree ? StageVerdict::kDiffers
                                        : StageVerdict::kUnsure,
                 &out);
    out.step = step;
    out.cause = "loss from step " + std::to_string(StepNumber(evidence, step)) + " on";
    out.cause_text = Both("the curves part at step {}; the steps before agree", "曲线在第 {} 步分叉，此前一致",
                          StepNumber(evidence, step));
  }
  if (!out.exact && !out.next && !band) {
    out.next = RecordSteps(evidence, StepsAround(step),
                           Both("a recording of the first steps and of those around step {} shows where they part",
                                "采集开头及第 {} 步附近可显示分叉处", StepNumber(evidence, step)),
                           Besides::kBatches);
  }
  return out;
}

}  // namespace msprobe
