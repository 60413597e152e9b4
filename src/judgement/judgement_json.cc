#include "judgement/judgement_json.h"

#include <cmath>

namespace msprobe {
namespace {

constexpr size_t kMostWritten = 1000;  // the counts have all

void WriteJudgement(const Judgement& judgement, JsonWriter* json) {
  json->Object([&] {
    json->Member("kind", NameOf(judgement.kind));
    json->Member("about", judgement.about);
    if (judgement.figure && std::isfinite(*judgement.figure)) json->Member("figure", *judgement.figure);
    json->Member("evidence", judgement.evidence);
    json->Member("basis", judgement.basis);
    json->Member("not_seen", judgement.not_seen);
    json->Member("asked", judgement.asked);
  });
}

}  // namespace

void WriteConclusion(const Conclusion& conclusion, JsonWriter* json) {
  json->ObjectMember("judgement", [&] {
    json->Member("kind", NameOf(conclusion.kind));
    json->Member("headline", HeadlineOf(conclusion));
    json->ObjectMember("counts", [&] {
      for (size_t i = 0; i < conclusion.counts.size(); ++i) {
        if (conclusion.counts[i] > 0) json->Member(NameOf(static_cast<JudgementKind>(i)), conclusion.counts[i]);
      }
    });
    json->Key("judgements"), json->BeginArray();
    size_t written = 0;
    for (const Judgement& judgement : conclusion.judgements) {
      // What is bit-equal is counted; a list of it would hide the rest.
      if (KindOf(judgement) == JudgementKind::kBitEqual || written++ >= kMostWritten) continue;
      WriteJudgement(judgement, json);
    }
    json->EndArray();
  });
}

}  // namespace msprobe
