#include "doctor/stage_judges.h"

#include <algorithm>

#include "base/text.h"
#include "base/words/translate.h"
#include "doctor/next_run.h"

namespace msprobe {
namespace {

bool IsClean(const DumpEvidence& dumps, int step) {
  return std::find(dumps.clean.begin(), dumps.clean.end(), step) != dumps.clean.end();
}

/// Whether the recorded steps show the stage and agree there.
bool DumpsPass(const DumpEvidence& dumps, StageId stage) {
  if (!dumps.seen || (stage == StageId::kData && dumps.given)) return false;
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

/// What begins at the stage and that printed losses do not show: an op of which the other run has the values all the
/// same, or what may be written in another way. False where it is the cause.
bool AddAgreeing(const DoctorEvidence& evidence, StageResult* out) {
  const DumpEvidence& dumps = evidence.dumps;
  const StoryOrigin& origin = dumps.origin->origin;
  const CurveEvidence& curves = evidence.curves;
  const int apart = FirstApart(curves);
  const bool split = origin.cause == Cause::kShape && (apart < 0 || apart > dumps.origin->step);
  const bool without_effect = AllStepsAgree(curves);
  // A setting of a call, with another result: how small it is depends on the values, not on the cause.
  const bool setting = origin.cause == Cause::kArgument && origin.verdict == RulerVerdict::kSuspicious;
  const bool bug = (setting || dumps.origin->verdict == "bug") && origin.cause != Cause::kShape && !dumps.origin_open;
  if (curves.seen && !bug && without_effect && dumps.origin->elsewhere) {
    RaiseVerdict(StageVerdict::kPass, out);
    out->evidence.push_back(
        Both("dumps: only one run calls {}, and the other has its values all the same; the losses "
             "and norms of all steps agree",
             "dump：只有一侧调用 {}，但另一侧有相同的数值；各步的 loss 与 norm 一致", origin.op));
    return true;
  }
  if (curves.seen && !bug && (split || without_effect)) {
    // It may be code that is written or split otherwise; printed losses do not show all that a difference does.
    AddStory(dumps, out);
    RaiseVerdict(StageVerdict::kUnsure, out);
    out->firm = true;
    out->step = std::max(dumps.origin->step, 0);
    out->evidence.push_back(Both("the losses agree all the same: it may be code that is written in another way",
                                 "但 loss 一致：可能只是写法不同"));
    return true;
  }
  return false;
}

/// Small differences that add up from op to op, of which nothing comes: rounding of another order, as of another
/// algorithm of a convolution. Not where a module gives something else with the inputs of A.
bool AddRounding(const DoctorEvidence& evidence, StageResult* out) {
  const bool module = evidence.graft.outcome == GraftEvidence::Outcome::kModule;
  if (evidence.dumps.origin->origin.cause != Cause::kGrows || !AllStepsAgree(evidence.curves) || module) return false;
  AddStory(evidence.dumps, out);
  RaiseVerdict(StageVerdict::kPass, out);
  out->evidence.push_back(
      Both("no op stands out, and the losses and norms of all {} steps agree: rounding of another order",
           "没有突出的算子，且全部 {} 步的 loss 与 norm 一致：不同次序的舍入", evidence.curves.loss.points.size()));
  return true;
}

/// Small differences that add up: what B's modules give with the inputs of A tells whether one of them is at work.
void TakeGraft(const DoctorEvidence& evidence, StageResult* out) {
  const GraftEvidence& graft = evidence.graft;
  const bool decides = graft.outcome == GraftEvidence::Outcome::kModule && graft.step == out->step;
  if (decides) {
    out->verdict = StageVerdict::kDiffers;
    out->exact = true;
    out->cause = graft.story.origins.empty() ? "module " + graft.module : CauseKey(graft.story.origins.front());
    out->cause_text = Both("with the inputs of A, {} of B still gives something else: the module itself differs",
                           "使用 A 的输入时，B 的 {} 的结果仍然不同：差异来自该模块自身", graft.module);
  } else if (graft.outcome == GraftEvidence::Outcome::kNone) {
    out->next = Graft(evidence, out->step,
                      Both("with the inputs that A had, each module of B shows what of the difference is its own",
                           "给 B 的各模块加载 A 的输入，可看出差异是否由模块自身产生"));
  }
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
    if (AddRounding(evidence, out) || AddAgreeing(evidence, out)) return true;
    out->verdict = StageVerdict::kDiffers;
    out->step = std::max(dumps.origin->step, 0);
    out->cause = CauseKey(origin);
    out->cause_text = {StoryHeadline(dumps.story, Language::kEnglish), StoryHeadline(dumps.story, Language::kChinese)};
    out->exact = true;
    out->own = origin.cause == Cause::kArgument || origin.cause == Cause::kMissingOp ||
               origin.cause == Cause::kExtraOp || origin.cause == Cause::kDType || origin.cause == Cause::kOp;
    if (stage == StageId::kOptimizer && origin.cause == Cause::kWeight) {
      // Seen in the second step, made in the first.
      out->step = 0;
      out->cause = "update of " + origin.module + "." + origin.parameter;
      out->cause_text = {"the update of step 1 gives other weights: " + out->cause_text.en,
                         "第 1 步的更新得到不同的权重：" + out->cause_text.zh};
    }
    AddStory(dumps, out);
    if (dumps.origin_open) {
      out->verdict = StageVerdict::kUnsure;
      out->exact = false;
      out->firm = true;
      out->next = RecordSteps(evidence, {out->step, out->step + 1},
                              Both("a recording of the next step, too, shows whether the update gives other weights",
                                   "同时采集下一步可显示更新后的权重是否不同"));
      return true;
    }
    if (origin.cause == Cause::kGrows) {
      // Nothing stands out: it may be rounding of another order.
      out->verdict = StageVerdict::kUnsure;
      out->exact = false;
      TakeGraft(evidence, out);
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
  for (const int step : dumps.whole ? dumps.steps : dumps.clean)
    list += (list.empty() ? "" : ", ") + std::to_string(std::max(step, 0) + 1);
  if (list.empty()) {  // the first step parts, behind this stage
    out->evidence.push_back(Both("dumps: no difference here beyond rounding, up to the first op that differs",
                                 "dump：首个有差异的算子之前仅有舍入差异"));
    return true;
  }
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
              "第 {} 步" + zh + "：A 为 {}，B 为 {}（相对差 {:.2g}）", point.number, PyRepr(point.a), PyRepr(point.b),
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

void AddGraftLines(const DoctorEvidence& evidence, StageId stage, StageResult* out) {
  const GraftEvidence& graft = evidence.graft;
  const StageId place = graft.step <= 0 ? StageId::kStep1Loss : graft.step == 1 ? StageId::kStep2 : StageId::kTraining;
  if (graft.outcome == GraftEvidence::Outcome::kNone || stage != place) return;
  const std::string modules = graft.modules.size() == 1 ? graft.modules.front() : std::to_string(graft.modules.size());
  switch (graft.outcome) {
    case GraftEvidence::Outcome::kSame:
      out->evidence.push_back(
          Both("graft: with the inputs of A, B gives what A gives ({} modules, step {}): only the "
               "inputs of these modules differ",
               "移植输入：使用 A 的输入时，B 与 A 结果一致（模块：{}，第 {} 步）：不同的只是这些模块的输入", modules,
               graft.step + 1));
      return;
    case GraftEvidence::Outcome::kModule:
      out->evidence.push_back(
          Both("graft: with the inputs of A, {} of B still gives something else (step {}): the "
               "module itself differs",
               "移植输入：使用 A 的输入时，B 的 {} 的结果仍然不同（第 {} 步）：差异来自该模块自身", graft.module,
               graft.step + 1));
      out->evidence.push_back({"graft: " + StoryHeadline(graft.story, Language::kEnglish),
                               "移植输入：" + StoryHeadline(graft.story, Language::kChinese)});
      return;
    default:
      out->evidence.push_back(
          {fmt::format("graft: step {} says nothing: {}", graft.step + 1, graft.why.English()),
           fmt::format("移植输入：第 {} 步无法判断：{}", graft.step + 1, InLanguage(graft.why, Language::kChinese))});
  }
}

bool AllStepsAgree(const CurveEvidence& curves) {
  return FirstApart(curves) < 0 && FirstUnsure(curves) < 0 && curves.loss.points.size() >= 3 &&
         !curves.norm.points.empty();
}
int FirstApart(const CurveEvidence& curves) { return Earliest(curves.loss.parted, curves.norm.parted); }
int FirstUnsure(const CurveEvidence& curves) { return Earliest(curves.loss.unsure, curves.norm.unsure); }

}  // namespace msprobe
