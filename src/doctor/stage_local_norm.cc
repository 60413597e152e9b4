// Stage: the gradients of the first step, weight by weight.
#include <algorithm>
#include <cmath>

#include "doctor/next_run.h"
#include "doctor/stage_judges.h"

namespace msprobe {
namespace {

/// What the gradients of B are multiplied by at the first step: by records of the optimizers, else by a norm that is a
/// whole number of times the other's while the losses agree. 1 without.
double GradientFactor(const DoctorEvidence& evidence) {
  constexpr double kSlack = 1e-3, kMost = 4096;
  if (evidence.optimizer.factor != 1 && evidence.optimizer.step == 0) return evidence.optimizer.factor;
  const CurveEvidence& curves = evidence.curves;
  const bool loss_parts = curves.loss.parted && curves.loss.parted->step == 0;
  if (curves.loss.points.empty() || curves.loss.points.front().step != 0 || loss_parts) return 1;
  const CurvePoint& norm = curves.norm.points.front();
  if (!(norm.a > 0) || !(norm.b > 0)) return 1;
  const double ratio = std::max(norm.a, norm.b) / std::min(norm.a, norm.b), whole = std::round(ratio);
  if (whole < 2 || whole > kMost || std::fabs(ratio - whole) > kSlack * whole) return 1;
  return norm.b > norm.a ? whole : 1 / whole;
}

}  // namespace

BothWords FactorWords(double factor) {
  return Both(
      "the gradients of B are those of A times {:.6g}: the loss of micro batches is not divided by their number "
      "on one side, or is multiplied by a scale",
      "B 的梯度是 A 的 {:.6g} 倍：一侧的 micro batch 的 loss 没有除以其个数，或乘了某个系数", factor);
}

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
    const double factor = apart ? GradientFactor(evidence) : 1;
    if (factor != 1) out.evidence.push_back(FactorWords(factor));
    if (apart && out.cause.empty()) {
      out.cause = "global norm of step 1";
      out.cause_text = factor != 1 ? FactorWords(factor) : Both("the gradients of step 1 differ", "第 1 步的梯度不同");
      if (factor != 1) {
        out.fix = Both("compare how the loss is divided: by micro batches, ranks or tokens, and by a loss scale",
                       "比较 loss 的除数：micro batch 数、rank 数或 token 数，以及 loss scale");
      }
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
