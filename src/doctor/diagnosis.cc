#include "doctor/diagnosis.h"

#include <algorithm>

#include "base/text.h"
#include "doctor/next_run.h"
#include "doctor/stage_judges.h"

namespace msprobe {
namespace {

const StageResult& ResultOf(const Diagnosis& d, StageId id) { return d.results[static_cast<size_t>(id)]; }

/// Whether a difference of the configurations can be what was first seen at a stage; `exact`: by an op, a batch or a
/// weight, not by printed digits, which hide how it began.
bool Explains(const ConfigDifference& d, StageId seen, bool exact) {
  if (d.effect == seen || (!exact && seen > d.effect)) return true;
  // A model of another structure has other weights; statistics of a step cannot tell forward from data that differ.
  if (d.effect == StageId::kStep1Loss) return seen == StageId::kWeights || seen == StageId::kLocalNorm;
  if (d.effect == StageId::kData && seen == StageId::kStep1Loss) return true;
  return d.later && seen > d.effect;
}

BothWords Described(const ConfigDifference& d) {
  return Both("{}: {} in A, {} in B", "{}：A 为 {}，B 为 {}", d.id, OneLine(d.a), OneLine(d.b));
}

void TakeConfig(const ConfigDifference& d, Diagnosis* out) {
  out->stage = StageId::kConfig;
  out->cause = (d.rule ? "rule " : "setting ") + d.id;
  const BothWords what = Described(d);
  out->cause_text = {d.reason.en + " (" + what.en + ")", d.reason.zh + "（" + what.zh + "）"};
  out->fix = d.fix;
  out->exact = true;
}

void TakeResult(StageId id, const StageResult& result, Diagnosis* out) {
  out->stage = id;
  out->step = result.step;
  out->cause = result.cause;
  out->cause_text = result.cause_text;
  out->fix = result.fix;
  out->exact = result.exact;
}

/// The stages that runs show, by what they did.
std::optional<StageId> FirstSeen(const Diagnosis& d, StageVerdict verdict) {
  for (const DoctorStage& stage : DoctorStages()) {
    if (stage.id == StageId::kConfig || stage.id == StageId::kBand) continue;
    if (ResultOf(d, stage.id).verdict == verdict) return stage.id;
  }
  return std::nullopt;
}

bool AnythingSeen(const Diagnosis& d) {
  return std::any_of(d.results.begin() + 1, d.results.end(),
                     [](const StageResult& r) { return r.verdict != StageVerdict::kNotSeen; });
}

/// The first stage whose next run would say more, beginning with `from`; where all of those were run, what shows a
/// stage alone.
std::optional<NextRun> NextFrom(const Diagnosis& d, StageId from) {
  for (const DoctorStage& stage : DoctorStages()) {
    if (stage.id < from) continue;
    const auto& next = ResultOf(d, stage.id).next;
    if (next && !next->commands.empty()) return next;
  }
  for (const DoctorStage& stage : DoctorStages()) {
    const auto& offer = ResultOf(d, stage.id).offer;
    if (stage.id >= from && offer && !offer->commands.empty()) return offer;
  }
  return std::nullopt;
}

/// The differences of the configurations in the light of what was first seen: one becomes the cause, the rest is told.
void WeighConfig(const DoctorEvidence& evidence, std::optional<StageId> seen, Diagnosis* out) {
  const ConfigDifference* cause = nullptr;
  for (const ConfigDifference& d : evidence.config.differences) {
    const bool explains = seen && Explains(d, *seen, out->exact);
    const bool strong = d.fails || (!d.rule && !out->exact);
    if (explains && strong && !cause && (d.fails || *seen != StageId::kData)) {
      cause = &d;
      continue;
    }
    if (!d.fails && !(seen && Explains(d, *seen, true))) continue;
    const BothWords what = Described(d);
    out->also.push_back(
        explains ? Both("{}; it can show there, too", "{}；也可能在此处表现", what.en)
                 : Both("{}; it does not explain what was seen first", "{}；不能解释最先看到的差异", what.en));
    out->also.back().zh = what.zh + (explains ? "；也可能在此处表现" : "；不能解释最先看到的差异");
  }
  if (!cause) return;
  const StageResult& first = ResultOf(*out, *seen);
  if (!first.cause_text.empty()) {
    out->also.insert(out->also.begin(), {"seen first: " + first.cause_text.en, "最先看到：" + first.cause_text.zh});
  }
  const int step = out->step;
  TakeConfig(*cause, out);
  out->step = step;
}

/// Configurations alone differ: nothing was seen of the runs, or nothing that they change.
void JudgeConfigAlone(const DoctorEvidence& evidence, bool seen, Diagnosis* out) {
  for (const ConfigDifference& d : evidence.config.differences) {
    if (!d.fails) continue;
    const bool without_effect = seen && !d.later;
    if (out->stage || without_effect) {
      const BothWords what = Described(d);
      out->also.push_back(
          {what.en + (seen ? "; no effect of it was seen" : ""), what.zh + (seen ? "；未见其影响" : "")});
      continue;
    }
    out->outcome = Diagnosis::Outcome::kParted;
    TakeConfig(d, out);
    if (seen) {
      out->also.push_back(Both("no effect of it was seen yet", "尚未看到其影响"));
    } else {
      out->also.push_back(Both("nothing was given that shows what the runs did", "没有可显示两次运行行为的文件"));
    }
  }
}

bool IsBitEqual(const DoctorEvidence& evidence) {
  const auto same = [](const CurveComparison& curve) {
    return std::all_of(curve.points.begin(), curve.points.end(),
                       [](const CurvePoint& p) { return p.a == p.b || (p.a != p.a && p.b != p.b); });
  };
  const bool dumps = !evidence.dumps.seen || evidence.dumps.bit_equal;
  return dumps && same(evidence.curves.loss) && same(evidence.curves.norm);
}

/// Causes that later stages name: what is seen first does not make another setting, dtype or op.
void AddLater(StageId first, Diagnosis* out) {
  if (!ResultOf(*out, first).exact) return;
  for (const DoctorStage& stage : DoctorStages()) {
    const StageResult& result = ResultOf(*out, stage.id);
    if (stage.id <= first || result.verdict != StageVerdict::kDiffers || !result.exact || !result.own) continue;
    out->also.push_back({fmt::format("at stage \"{}\", too: {}", stage.en, result.cause_text.en),
                         fmt::format("在“{}”阶段还有：{}", stage.zh, result.cause_text.zh)});
  }
}

/// Nothing differs for certain.
void JudgeAgreement(const DoctorEvidence& evidence, Diagnosis* out) {
  const bool seen = AnythingSeen(*out);
  const std::optional<StageId> unsure = FirstSeen(*out, StageVerdict::kUnsure);
  if (!seen) {
    out->outcome = Diagnosis::Outcome::kUndecided;
  } else if (!unsure) {
    out->outcome = IsBitEqual(evidence) ? Diagnosis::Outcome::kAgree : Diagnosis::Outcome::kRounding;
  } else {
    // Steps that agree op by op, and losses that part slowly behind them: rounding does that, and so may a small cause.
    const bool firm = std::any_of(out->results.begin(), out->results.end(),
                                  [](const StageResult& r) { return r.verdict == StageVerdict::kUnsure && r.firm; });
    const bool explained =
        evidence.dumps.seen && !evidence.dumps.unknown && !evidence.dumps.origin && !firm && evidence.dumps.second_step;
    out->outcome = explained ? Diagnosis::Outcome::kRounding : Diagnosis::Outcome::kUndecided;
    if (!explained) {
      out->stage = unsure;
      out->step = ResultOf(*out, *unsure).step;
    }
  }
  if (!evidence.dumps.whole) out->outcome = Diagnosis::Outcome::kUndecided;  // the part that was seen agrees
  for (const ConfigDifference& d : evidence.config.differences) {
    if (!unsure || !d.fails || !Explains(d, *unsure, false)) continue;
    // Small as it is, what is seen is what this changes.
    out->outcome = Diagnosis::Outcome::kParted;
    const int step = ResultOf(*out, *unsure).step;
    TakeConfig(d, out);
    out->step = step;
    return;
  }
  JudgeConfigAlone(evidence, seen, out);
  if (out->outcome == Diagnosis::Outcome::kUndecided || unsure) out->next = NextFrom(*out, StageId::kConfig);
}

}  // namespace

std::string_view NameOf(Diagnosis::Outcome outcome) {
  switch (outcome) {
    case Diagnosis::Outcome::kAgree: return "agree";
    case Diagnosis::Outcome::kRounding: return "rounding";
    case Diagnosis::Outcome::kUndecided: return "undecided";
    case Diagnosis::Outcome::kParted: return "parted";
  }
  return "";
}

std::vector<Judgement> JudgementsOf(const Diagnosis& diagnosis, Language language) {
  std::vector<Judgement> out;
  const bool rounding = diagnosis.outcome == Diagnosis::Outcome::kRounding;
  for (const DoctorStage& stage : DoctorStages()) {
    const StageResult& result = ResultOf(diagnosis, stage.id);
    Judgement& one = out.emplace_back();
    one.about = Message(std::string(language == Language::kChinese ? stage.zh : stage.en));
    switch (result.verdict) {
      case StageVerdict::kNotSeen: one.asked = false; break;
      case StageVerdict::kPass:
        one.kind =
            diagnosis.outcome == Diagnosis::Outcome::kAgree ? JudgementKind::kBitEqual : JudgementKind::kRoundOff;
        break;
      case StageVerdict::kUnsure:
        // A setting that no rule is about is listed; what the runs did says whether it matters.
        one.kind = rounding && !result.firm ? JudgementKind::kRoundOff : JudgementKind::kCannotSay;
        one.asked = stage.id != StageId::kConfig;
        break;
      case StageVerdict::kDiffers:
        one.kind = result.exact ? JudgementKind::kBug : JudgementKind::kSuspicious;
        if (diagnosis.outcome != Diagnosis::Outcome::kParted) {
          // Settings that differ, of which the runs show no effect where it would be seen.
          one.kind = JudgementKind::kAskPerson;
          one.asked = false;
        }
        break;
    }
    if (!result.cause_text.empty()) one.evidence.emplace_back(result.cause_text.In(language));
    for (const BothWords& line : result.evidence) one.evidence.emplace_back(line.In(language));
  }
  Judgement& whole = out.emplace_back();
  whole.about = Msg("both runs");
  switch (diagnosis.outcome) {
    case Diagnosis::Outcome::kAgree: whole.kind = JudgementKind::kBitEqual; break;
    case Diagnosis::Outcome::kRounding: whole.kind = JudgementKind::kRoundOff; break;
    case Diagnosis::Outcome::kUndecided: whole.kind = JudgementKind::kCannotSay; break;
    case Diagnosis::Outcome::kParted:
      whole.kind = diagnosis.exact ? JudgementKind::kBug : JudgementKind::kSuspicious;
      break;
  }
  if (!diagnosis.cause_text.empty()) whole.evidence.emplace_back(diagnosis.cause_text.In(language));
  return out;
}

Diagnosis Diagnose(const DoctorEvidence& evidence) {
  Diagnosis out;
  for (const DoctorStage& stage : DoctorStages()) {
    out.results.push_back(stage.judge(evidence));
    AddGraftLines(evidence, stage.id, &out.results.back());
  }
  const std::optional<StageId> seen = FirstSeen(out, StageVerdict::kDiffers);
  if (!seen) {
    JudgeAgreement(evidence, &out);
    return out;
  }
  out.outcome = Diagnosis::Outcome::kParted;
  TakeResult(*seen, ResultOf(out, *seen), &out);
  WeighConfig(evidence, seen, &out);
  AddLater(*seen, &out);
  out.bug = out.exact;
  if (!out.exact) out.next = NextFrom(out, *seen);
  return out;
}

}  // namespace msprobe
