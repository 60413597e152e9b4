// Stage: how far two runs of the reference itself are apart.
#include <algorithm>

#include "doctor/next_run.h"
#include "doctor/stage_judges.h"

namespace msprobe {

StageResult JudgeBand(const DoctorEvidence& evidence) {
  StageResult out;
  const CurveEvidence& curves = evidence.curves;
  if (!curves.seen || curves.loss.points.size() < 3) return out;
  if (!curves.band || curves.band->half_widths.empty()) {
    if (FirstApart(curves) < 0 && FirstUnsure(curves) < 0) return out;
    out.next = RunAgain(evidence, Both("a second run of A shows its own error, which is the band for B (--again)",
                                       "再运行一次 A 可得到其自身误差，即 B 的允许带（--again）"));
    return out;
  }
  const auto widest = std::max_element(curves.band->half_widths.begin(), curves.band->half_widths.end());
  const std::string construction(BandConstructionText(curves.band->construction));
  out.evidence.push_back(Both("{} runs of A make a band of at most {:.3g} around its loss ({})",
                              "A 的 {} 次运行得到其 loss 的允许带，最宽 {:.3g}（{}）", curves.band->runs, *widest,
                              construction));
  if (curves.out_of_band) {
    // Of a reference that repeats itself bit for bit any rounding leaves the band.
    out.verdict = curves.band->IsEmpty() ? StageVerdict::kUnsure : StageVerdict::kDiffers;
    out.step = curves.out_of_band->step;
    out.evidence.push_back(PointWords("outside of the band: loss", "超出允许带的 loss", *curves.out_of_band));
    out.cause = "loss outside of the band";
    out.cause_text =
        Both("B leaves the band of A at step {}", "B 在第 {} 步超出 A 的允许带", curves.out_of_band->number);
    out.next = RecordSteps(evidence, StepsAround(curves.out_of_band->step),
                           Both("a recording of the first steps and of those around step {} shows where they part",
                                "采集开头及第 {} 步附近可显示分叉处", curves.out_of_band->number),
                           Besides::kBatches);
  } else {
    out.verdict = StageVerdict::kPass;
    out.evidence.push_back(Both("all {} steps of B lie in it; {:.0f} % of them above A",
                                "B 的 {} 步都在带内；其中 {:.0f} % 高于 A", curves.loss.points.size(),
                                100 * curves.loss.positive));
  }
  return out;
}

}  // namespace msprobe
