#include "diagnose/story/story_judgement.h"

#include <fmt/format.h>

#include "base/text.h"

namespace msprobe {
namespace {

JudgementKind KindOfOrigin(const StoryOrigin& origin, const Story& story) {
  if (origin.unused) return JudgementKind::kSuspicious;
  if (!story.compared || origin.overflow) return JudgementKind::kBug;
  if (origin.cause == Cause::kGrows) return JudgementKind::kDrift;
  return origin.verdict == RulerVerdict::kBug ? JudgementKind::kBug : JudgementKind::kSuspicious;
}

std::vector<Message> NotSeen(const Story& story, Language language) {
  std::vector<Message> out;
  if (!story.gaps.empty()) out.emplace_back(GapText(story.gaps, language));
  if (story.unread > 0) out.push_back(Msg("{} rows had no tensor", story.unread));
  if (story.not_compared > 0) {
    out.push_back(
        Msg("{} files were not compared, the first is {}", story.not_compared, OneLine(story.first_not_compared)));
  }
  for (const auto* modules : {&story.target_modules, &story.golden_modules}) {
    if (!modules->empty()) {
      out.push_back(Msg("{} modules with parameters are in one run only, such as {}", modules->size(),
                        OneLine(modules->front())));
    }
  }
  return out;
}

/// Where nothing begins a difference.
JudgementKind KindWithoutOrigin(const Story& story) {
  switch (story.outcome) {
    case Story::Outcome::kEqual: return JudgementKind::kBitEqual;
    case Story::Outcome::kRoundOff: return JudgementKind::kRoundOff;
    case Story::Outcome::kOrigin: return JudgementKind::kSuspicious;
    case Story::Outcome::kUnknown: break;
  }
  if (story.ops.bug + story.ops.suspicious > 0) return JudgementKind::kSuspicious;
  if (story.ops.inherited > 0) return JudgementKind::kInherited;
  return story.ops.bit_equal + story.ops.round_off > 0 ? JudgementKind::kCannotSay : JudgementKind::kNotSeen;
}

}  // namespace

std::vector<Judgement> JudgementsOf(const Story& story, Language language) {
  std::vector<Judgement> out;
  for (const StoryOrigin& origin : story.origins) {
    Judgement& one = out.emplace_back();
    one.kind = KindOfOrigin(origin, story);
    one.about = Message(OneLine(origin.module.empty() ? origin.op : origin.module));
    one.evidence.emplace_back(OriginSentence(origin, language));
    if (origin.units > 0) one.figure = origin.units;
    one.basis = story.compared ? Msg("units of what rounding explains") : Msg("all values should be finite");
  }
  Judgement whole;
  whole.about = story.compared ? Msg("all ops that were compared") : Msg("all values of the run");
  whole.not_seen = NotSeen(story, language);
  if (story.origins.empty()) {
    whole.kind = KindWithoutOrigin(story);
    whole.evidence.emplace_back(StoryHeadline(story, language));
  } else if (whole.not_seen.empty()) {
    return out;
  }
  out.push_back(std::move(whole));
  return out;
}

}  // namespace msprobe
