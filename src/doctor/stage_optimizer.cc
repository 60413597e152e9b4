// Stage: from the same gradients the same update?
#include "base/text.h"
#include "doctor/next_run.h"
#include "doctor/stage_judges.h"

namespace msprobe {
namespace {

/// A term of the update that one side computes otherwise is the cause whatever recorded ops showed of it.
void AddRecords(const OptimizerEvidence& records, StageResult* out) {
  if (!records.seen) return;
  for (const BothWords& caution : records.cautions) {
    RaiseVerdict(StageVerdict::kUnsure, out);
    out->firm = true;
    out->evidence.push_back(caution);
  }
  if (records.term.empty()) {
    BothWords said =
        records.follows
            ? Both("recorded steps of both optimizers: each does what its hyperparameters say, which are the same",
                   "两侧记录的优化器步骤：均与超参数一致，且超参数相同")
            : Both("recorded steps of both optimizers: they differ from the rule in the same way",
                   "两侧记录的优化器步骤：与规则的差别相同");
    if (records.factor != 1) {
      const BothWords factor = FactorWords(records.factor);
      said = {said.en + "; " + factor.en, said.zh + "；" + factor.zh};
    }
    out->evidence.push_back(said);
    RaiseVerdict(StageVerdict::kPass, out);
    return;
  }
  const bool named = records.term != "unknown";
  if (!named && out->exact) {  // recorded ops name what no term does
    out->evidence.push_back(records.how);
    return;
  }
  out->verdict = StageVerdict::kDiffers;
  out->step = 0;
  out->exact = out->own = named;
  out->cause = "term " + records.term;
  out->cause_text = records.how;
  out->fix = Both("compare this term in the code of both optimizers", "比较两侧优化器代码中的这一项");
  out->evidence.push_back(records.how);
}

}  // namespace

StageResult JudgeOptimizer(const DoctorEvidence& evidence) {
  StageResult out;
  AddDumpVerdict(evidence, StageId::kOptimizer, &out);
  if (out.verdict == StageVerdict::kDiffers) {
    out.fix =
        Both("compare the code of both optimizers there; msprobe optimizer_replay on records of both names the term",
             "比较两侧优化器在此处的代码；对两侧的记录使用 msprobe optimizer_replay 可指出具体的项");
  }
  const CurveEvidence& curves = evidence.curves;
  AddRecords(evidence.optimizer, &out);
  if (!curves.rate.points.empty()) {
    const bool early = curves.rate.parted && curves.rate.parted->step <= 1;
    out.evidence.push_back(
        PointWords("learning rate", "的学习率", early ? *curves.rate.parted : curves.rate.points.front()));
    if (early) {
      out.verdict = StageVerdict::kDiffers;
      out.step = curves.rate.parted->step;
      out.exact = out.own = true;
      out.cause = "learning rate of step " + std::to_string(curves.rate.parted->number);
      out.cause_text = Both("the learning rates differ", "学习率不同");
      out.fix = Both("set the same learning rate, schedule and warmup", "设置相同的学习率、调度与预热");
    }
  }
  for (const WeightEvidence::Pair& pair : evidence.weights.pairs) {
    if (pair.step != 1) continue;
    RaiseVerdict(pair.different > 0 ? StageVerdict::kDiffers : StageVerdict::kPass, &out);
    out.evidence.push_back(Both("behind step 1 {} of {} weights differ", "第 1 步之后 {1} 个权重中 {0} 个不同",
                                pair.different, pair.weights));
    if (pair.different == 0 || !out.cause.empty()) continue;
    out.step = 0;
    out.cause = "update of " + pair.first;
    out.cause_text = Both("the update of {} differs", "{} 的更新不同", pair.first);
  }
  const bool second = curves.loss.parted && curves.loss.parted->step == 1;
  if (second && out.verdict < StageVerdict::kDiffers) {
    // Which of backward pass and optimizer made it is not in the losses.
    RaiseVerdict(StageVerdict::kUnsure, &out);
  }
  if (out.verdict >= StageVerdict::kUnsure && !out.exact && !out.next) {
    out.next = RecordSteps(evidence, {0, 1},
                           Both("a recording of the steps 1 and 2 tells the backward pass from the optimizer",
                                "采集第 1、2 步可区分反向与优化器"),
                           Besides::kOptimizer);
  }
  if (!evidence.optimizer.seen) {
    out.offer = SaveOptimizer(
        evidence, Both("recorded steps of both optimizers, computed again in float64, name the term that differs",
                       "记录两侧优化器的步骤并以 float64 重新计算，可指出不同的项"));
  }
  return out;
}

}  // namespace msprobe
