#include "doctor/stage_judges.h"

#include <algorithm>

#include "base/text.h"
#include "doctor/next_run.h"

namespace msprobe {
namespace {

bool IsClean(const DumpEvidence& dumps, int step) {
  return std::find(dumps.clean.begin(), dumps.clean.end(), step) != dumps.clean.end();
}

/// Whether the recorded steps show the stage and agree there.
bool DumpsPass(const DumpEvidence& dumps, StageId stage) {
  if (!dumps.seen) return false;
  const bool first = dumps.first_step && (IsClean(dumps, 0) || IsClean(dumps, -1));
  const bool begins = dumps.origin && dumps.origin->step <= 0;
  switch (stage) {
    case StageId::kData:
    case StageId::kWeights:
    case StageId::kStep1Loss:
    case StageId::kLocalNorm: return first || (begins && dumps.origin->stage > stage);
    case StageId::kOptimizer:
      return first && (IsClean(dumps, 1) || (dumps.origin && dumps.origin->step == 1 && dumps.origin->stage > stage));
    case StageId::kStep2: return IsClean(dumps, 1);
    case StageId::kTraining: return !dumps.clean.empty() && dumps.clean.back() > 1 && !dumps.origin && !dumps.unknown;
    default: return false;
  }
}

std::string CauseKey(const StoryOrigin& origin) {
  switch (origin.cause) {
    case Cause::kWeight:
      return "weight " + (origin.module.empty() ? origin.op : origin.module) + "." + origin.parameter;
    case Cause::kInput: return "input " + origin.op + "." + origin.item;
    default: return std::string(CauseName(origin.cause)) + " " + origin.op;
  }
}

void AddStory(const DumpEvidence& dumps, StageResult* out) {
  const std::vector<std::string> en = StoryLines(dumps.story, Language::kEnglish);
  const std::vector<std::string> zh = StoryLines(dumps.story, Language::kChinese);
  for (size_t i = 0; i < en.size() && i < zh.size() && i < 6; ++i) out->evidence.push_back({en[i], zh[i]});
}

/// Between the last step that agrees and the one whose parameters differ already lie others.
bool HasGap(const DumpEvidence& dumps, int* last, int* found) {
  *found = dumps.origin->step;
  *last = dumps.clean.empty() ? -1 : dumps.clean.back();
  return dumps.origin->origin.cause == Cause::kWeight && *found > 1 && *found - *last > 1;
}

std::vector<int> Between(int last, int found) {
  std::vector<int> out;
  const int gap = found - last;
  const int apart = std::max(1, (gap + 8) / 9);
  for (int step = last + apart; step < found; step += apart) out.push_back(step);
  return out;
}

}  // namespace

void RaiseVerdict(StageVerdict verdict, StageResult* out) { out->verdict = std::max(out->verdict, verdict); }

bool AddDumpVerdict(const DoctorEvidence& evidence, StageId stage, StageResult* out) {
  const DumpEvidence& dumps = evidence.dumps;
  if (dumps.origin && dumps.origin->stage == stage) {
    const StoryOrigin& origin = dumps.origin->origin;
    const CurveEvidence& curves = evidence.curves;
    const int apart = FirstApart(curves);
    const bool split = origin.cause == Cause::kShape && (apart < 0 || apart > dumps.origin->step);
    const bool without_effect =
        apart < 0 && FirstUnsure(curves) < 0 && curves.loss.points.size() >= 3 && !curves.norm.points.empty();
    if (curves.seen && (split || without_effect)) {
      // Code that is written or split otherwise: what it gives has no effect on any loss or gradient norm.
      AddStory(dumps, out);
      out->evidence.push_back(Both("the losses agree all the same, so it is code that is written in another way",
                                   "但 loss 一致，因此只是写法不同"));
      return true;
    }
    out->verdict = StageVerdict::kDiffers;
    out->step = std::max(dumps.origin->step, 0);
    out->cause = CauseKey(origin);
    out->cause_text = {StoryHeadline(dumps.story, Language::kEnglish), StoryHeadline(dumps.story, Language::kChinese)};
    out->exact = true;
    if (stage == StageId::kOptimizer && origin.cause == Cause::kWeight) {
      // Seen in the second step, made in the first.
      out->step = 0;
      out->cause = "update of " + origin.module + "." + origin.parameter;
      out->cause_text = {"the update of step 1 gives other weights: " + out->cause_text.en,
                         "第 1 步的更新得到不同的权重：" + out->cause_text.zh};
    }
    AddStory(dumps, out);
    if (origin.cause == Cause::kGrows) {
      // Nothing stands out: it may be rounding of another order.
      out->verdict = StageVerdict::kUnsure;
      out->exact = false;
      out->next = Graft(evidence, dumps.origin->module_call, out->step,
                        Both("with the inputs that A had there, B shows what of it is this module's own",
                             "将 A 在此处的输入加载到 B，可看出差异是否由该模块自身产生"));
    }
    int last = -1, found = -1;
    if (HasGap(dumps, &last, &found)) {
      out->exact = false;
      out->next = RecordSteps(evidence, Between(last, found),
                              Both("the parameters part between the steps {} and {}; a recording of steps between "
                                   "them shows the one",
                                   "参数在第 {} 步与第 {} 步之间分叉；采集其间的步即可确定", last + 1, found + 1));
    }
    return true;
  }
  if (!DumpsPass(dumps, stage)) return false;
  RaiseVerdict(StageVerdict::kPass, out);
  std::string list;
  for (const int step : dumps.steps) list += (list.empty() ? "" : ", ") + std::to_string(std::max(step, 0) + 1);
  out->evidence.push_back(
      dumps.bit_equal
          ? Both("dumps: no difference here, bit for bit (steps {})", "dump：此处逐位一致（第 {} 步）", list)
          : Both("dumps: no difference here beyond rounding (steps {})", "dump：此处仅有舍入差异（第 {} 步）", list));
  return true;
}

std::vector<int> StepsAround(int step) {
  std::vector<int> out{0, 1};
  if (step <= 4) {
    for (int i = 2; i <= step; ++i) out.push_back(i);
    return out;
  }
  out.push_back(step - 1);
  out.push_back(step);
  return out;
}

BothWords PointWords(const std::string& en, const std::string& zh, const CurvePoint& point) {
  return Both(en + " at step {}: {} in A, {} in B (relative difference {:.2g})",
              "第 {} 步" + zh + "：A 为 {}，B 为 {}（相对差 {:.2g}）", point.step + 1, PyRepr(point.a), PyRepr(point.b),
              point.relative);
}

namespace {

int Earliest(const std::optional<CurvePoint>& x, const std::optional<CurvePoint>& y) {
  int out = -1;
  for (const auto* point : {&x, &y}) {
    if (*point && (out < 0 || (*point)->step < out)) out = (*point)->step;
  }
  return out;
}

}  // namespace

int FirstApart(const CurveEvidence& curves) { return Earliest(curves.loss.parted, curves.norm.parted); }
int FirstUnsure(const CurveEvidence& curves) { return Earliest(curves.loss.unsure, curves.norm.unsure); }

}  // namespace msprobe
