// A report of `msprobe rollout` for people and for programs.
#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "base/words/translate.h"
#include "json/writer.h"
#include "judgement/judgement_json.h"
#include "rollout/locator/report.h"

namespace msprobe {
namespace {

Message LinesOf(const Message& mark, const std::vector<Message>& lines) {
  Message out;
  for (const Message& line : lines) out += Msg("  {}: {}\n", mark, OneLined(line));
  return out;
}

Message ShareText(const RolloutStageResult& result) {
  return result.share ? Msg("{:.0f} %", 100 * *result.share) : Message("-");
}

std::vector<const RolloutStageResult*> With(const RolloutReport& report, RolloutVerdict verdict) {
  std::vector<const RolloutStageResult*> out;
  for (const RolloutStageResult& result : report.results) {
    if (result.verdict == verdict) out.push_back(&result);
  }
  return out;
}

/// "weights bit-equal (51), tokens equal (36)".
Message Listed(const std::vector<const RolloutStageResult*>& results) {
  std::vector<Message> out;
  for (const RolloutStageResult* result : results)
    out.push_back(Msg("{} {}", WordsOf(result->stage), result->sentence));
  return Joined(out, Message(", "));
}

/// "request 7, token 12", "model.layers.0.self_attn.q_proj.weight".
Message PlaceText(const RolloutPlace& place) {
  std::vector<Message> out;
  if (!place.request.empty()) out.push_back(Msg("request {}", OneLine(place.request)));
  if (place.position >= 0) out.push_back(Msg("token {}", place.position));
  if (!place.module.empty()) out.push_back(Message(OneLine(place.module)));
  if (!place.parameter.empty()) out.push_back(Message(OneLine(place.parameter)));
  return Joined(out, Message(", "));
}

void WriteSide(const SideEvidence& side, std::string_view key, JsonWriter* json) {
  json->ObjectMember(key, [&] {
    json->Member("given", side.given);
    json->Member("program", side.records ? side.records->program : "");
    json->Member("requests", side.records ? side.records->requests.size() : size_t{0});
    json->ArrayMember("weights", side.weights, [&](const SideWeights& w) { json->Value(w.path); });
    json->Member("dumps", side.dumps.size());
    json->Member("notes", side.notes);
  });
}

void WriteStage(const RolloutStageResult& result, JsonWriter* json) {
  json->BeginObject();
  json->Member("stage", NameOf(result.stage));
  json->Member("verdict", NameOf(result.verdict));
  json->Member("kind", result.kind);
  json->Member("seen", result.seen);
  json->Member("sentence", result.sentence);
  json->Member("share", result.share);
  json->ObjectMember("place", [&] {
    json->Member("request", result.place.request);
    json->Key("position");
    result.place.position >= 0 ? json->Int(result.place.position) : json->Null();
    json->Member("module", result.place.module);
    json->Member("parameter", result.place.parameter);
  });
  json->ObjectMember("figures", [&] {
    for (const auto& [name, value] : result.figures) json->Member(name, value);
  });
  json->Member("evidence", result.evidence);
  json->Member("also", result.also);
  json->Member("not_seen", result.not_seen);
  json->Member("next_run", result.next_run);
  json->EndObject();
}

}  // namespace

const RolloutStageResult* LeadOf(const RolloutReport& report) {
  const auto found = std::find_if(report.results.begin(), report.results.end(),
                                  [](const RolloutStageResult& r) { return r.verdict == RolloutVerdict::kCause; });
  return found == report.results.end() ? nullptr : &*found;
}

std::vector<Judgement> JudgementsOf(const RolloutReport& report) {
  std::vector<Judgement> out;
  const bool cause = LeadOf(report) != nullptr;
  for (const RolloutStageResult& result : report.results) {
    Judgement& one = out.emplace_back();
    switch (result.verdict) {
      case RolloutVerdict::kNotSeen: one.kind = JudgementKind::kNotSeen; break;
      case RolloutVerdict::kAgrees: one.kind = JudgementKind::kBitEqual; break;
      case RolloutVerdict::kRoundOff: one.kind = JudgementKind::kRoundOff; break;
      case RolloutVerdict::kLegitimate: one.kind = JudgementKind::kAnotherWay; break;
      case RolloutVerdict::kUnsure: one.kind = JudgementKind::kCannotSay; break;
      case RolloutVerdict::kCause: one.kind = JudgementKind::kBug; break;
    }
    one.about = WordsOf(result.stage);
    one.figure = result.share;
    if (!result.sentence.empty()) one.evidence.push_back(result.sentence);
    one.evidence.insert(one.evidence.end(), result.evidence.begin(), result.evidence.end());
    one.basis = result.seen;
    // A gap that was seen asks for what explains it; other stages ask only by what was given.
    one.asked = result.verdict != RolloutVerdict::kNotSeen ||
                (result.stage == RolloutStage::kRoundOff && !report.gaps.empty() && !cause);
  }
  return out;
}

namespace {

Message KlText(const RolloutReport& report) {
  if (!report.kl) return {};
  const RequestsLeftOut& left = report.left_out;
  if (left.requests == 0) return Msg("KL {:.3g} (k3, {} tokens): ", *report.kl, report.gaps.size());
  const size_t tokens = report.gaps.size(), all = tokens + left.tokens;
  if (left.requests == 1)
    return Msg("KL {:.3g} (k3, {} of {} tokens; 1 request left out: other tokens): ", *report.kl, tokens, all);
  return Msg("KL {:.3g} (k3, {} of {} tokens; {} requests left out: other tokens): ", *report.kl, tokens, all,
             left.requests);
}

/// "op: request 7, token 12, layers.0 attention: its scores are 0.9 times as large".
Message CauseText(const RolloutStageResult& cause) {
  const Message place = PlaceText(cause.place);
  if (place.empty() || Contains(cause.sentence.English(), place.English()))
    return Msg("{}: {}", WordsOf(cause.stage), cause.sentence);
  return Msg("{}: {}: {}", WordsOf(cause.stage), place, cause.sentence);
}

}  // namespace

Message RolloutHeadline(const RolloutReport& report) {
  Message out = KlText(report);
  if (const auto causes = With(report, RolloutVerdict::kCause); !causes.empty()) {
    out += CauseText(*causes[0]);
    for (size_t i = 1; i < causes.size(); ++i) out += Msg("; also {}", CauseText(*causes[i]));
  } else {
    const auto unsure = With(report, RolloutVerdict::kUnsure), rounding = With(report, RolloutVerdict::kRoundOff),
               asked = With(report, RolloutVerdict::kLegitimate);
    if (!unsure.empty()) {
      out += Msg("cannot say: {}", Listed(unsure));
    } else if (!asked.empty()) {
      out += Msg("as asked for: {}", Listed(asked));
      if (!rounding.empty()) out += Msg("; no more than rounding: {}", Listed(rounding));
    } else if (!rounding.empty()) {
      out += Msg("no more than rounding: {}", Listed(rounding));
    } else {
      out += With(report, RolloutVerdict::kAgrees).empty() || !report.gaps.empty() ? Msg("no cause was seen")
                                                                                   : Msg("no difference was seen");
    }
  }
  if (const auto agree = With(report, RolloutVerdict::kAgrees); !agree.empty()) out += Msg("; {}", Listed(agree));
  std::vector<Message> unseen;
  for (const RolloutStageResult* result : With(report, RolloutVerdict::kNotSeen))
    unseen.push_back(WordsOf(result->stage));
  if (!unseen.empty()) out += Msg("; not seen: {}", Joined(unseen, Message(", ")));
  return out;
}

Message RolloutText(const RolloutReport& report) {
  const RolloutStageResult* lead = LeadOf(report);
  Message out = Msg("{}\n\n", OneLined(RolloutHeadline(report)));
  out += Msg("stage | seen | verdict | share of the gap\n");
  for (const RolloutStageResult& result : report.results) {
    const Message seen = result.seen.empty() ? Message("-") : OneLined(result.seen);
    // What is equal says so itself.
    const bool plain = result.sentence.empty() || result.verdict == RolloutVerdict::kNotSeen;
    const Message verdict = plain ? WordsOf(result.verdict)
                            : result.verdict == RolloutVerdict::kAgrees
                                ? OneLined(result.sentence)
                                : Msg("{}: {}", WordsOf(result.verdict), OneLined(result.sentence));
    out += Msg("{} | {} | {} | {}\n", WordsOf(result.stage), seen, verdict, ShareText(result));
  }
  for (const RolloutStageResult& result : report.results) {
    const bool told =
        &result == lead || result.verdict == RolloutVerdict::kUnsure || result.verdict == RolloutVerdict::kCause;
    Message lines = told ? LinesOf(Msg("evidence"), result.evidence) : Message();
    lines += LinesOf(Msg("also"), result.also);
    if (result.verdict != RolloutVerdict::kNotSeen) lines += LinesOf(Msg("not seen"), result.not_seen);
    if (!result.next_run.empty() && !lead) lines += LinesOf(Msg("next run"), {result.next_run});
    if (!lines.empty()) out += Msg("{}\n{}", WordsOf(result.stage), lines);
  }
  for (const SideEvidence* side : {&report.train, &report.rollout}) {
    for (const Message& note : side->notes) out += Msg("note: {}\n", OneLined(note));
    for (const Message& note : side->records ? side->records->notes : std::vector<Message>{})
      out += Msg("note: {}\n", OneLined(note));
  }
  for (const std::string& file : report.files) out += Msg("  result: {}\n", OneLine(file));
  return out;
}

std::string RolloutJson(const RolloutReport& report) {
  JsonWriter json(kJsonIndented);
  json.BeginObject();
  json.Member("headline", RolloutHeadline(report));
  const RolloutStageResult* lead = LeadOf(report);
  json.Key("stage");
  lead ? json.Value(NameOf(lead->stage)) : json.Null();
  json.Member("cause", lead ? lead->kind : "");
  json.Member("kl", report.kl);
  json.Member("tokens", report.gaps.size());
  json.ObjectMember("left_out", [&] {
    json.Member("requests", report.left_out.requests);
    json.Member("tokens", report.left_out.tokens);
  });
  json.ArrayMember("stages", report.results, [&](const RolloutStageResult& result) { WriteStage(result, &json); });
  WriteSide(report.train, "train", &json);
  WriteSide(report.rollout, "rollout", &json);
  json.Member("files", report.files);
  WriteConclusion(Conclude(JudgementsOf(report)), &json);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace msprobe
