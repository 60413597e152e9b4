// The story for programs: its fields, and its lines in both languages.
#include <cmath>

#include "base/words/translate.h"
#include "diagnose/story/story.h"
#include "json/writer.h"

namespace msprobe {
namespace {

void TextOrNull(JsonWriter* json, std::string_view key, const std::string& text) {
  json->Key(key);
  text.empty() ? json->Null() : json->String(text);
}

std::string_view MistakeName(Story::Mistake::Kind kind) {
  switch (kind) {
    case Story::Mistake::Kind::kNone: return "";
    case Story::Mistake::Kind::kSamePath: return "same_path";
    case Story::Mistake::Kind::kOtherStep: return "other_step";
    case Story::Mistake::Kind::kOtherModel: return "other_model";
  }
  return "";
}

void WriteOrigin(JsonWriter* json, const StoryOrigin& o) {
  json->Object([&] {
    json->Member("cause", CauseName(o.cause));
    json->Member("overflow", o.overflow);
    json->Key("step");
    o.step < 0 ? json->Null() : json->Int(o.step);
    json->Member("ranks", o.ranks);
    json->Member("op", o.op);
    TextOrNull(json, "module", o.module);
    if (!o.fused.empty()) json->Member("fused_with", o.fused);
    TextOrNull(json, "source", o.frame);
    TextOrNull(json, "function", o.function);
    TextOrNull(json, "item", o.item);
    if (!o.argument.empty()) json->Member("argument", o.argument);
    TextOrNull(json, "parameter", o.parameter);
    TextOrNull(json, "owner", o.owner);
    if (!o.copies.empty()) json->Member("copies", o.copies);
    json->Member("recomputed", o.recomputed);
    TextOrNull(json, "what", o.what);
    TextOrNull(json, "target", o.target);
    TextOrNull(json, "golden", o.golden);
    json->Key("percent");
    o.percent < 0 ? json->Null() : json->Number(o.percent);
    TextOrNull(json, "verdict", Begins(o.verdict) ? std::string(RulerVerdictText(o.verdict)) : std::string());
    json->Member("units", o.units);
    TextOrNull(json, "inputs", o.inputs);
    TextOrNull(json, "other_op", o.other_op);
    if (!o.instead.empty()) json->Member("instead", o.instead);
    if (o.clips) json->Member("clips_gradients", true);
    if (!o.exchanged.empty()) json->Member("exchanged_with", o.exchanged);
    if (!o.exchanged_input.empty()) json->Member("exchanged_with", o.exchanged_input);
    if (!o.made_by.empty()) json->Member("made_by", o.made_by);
    if (!o.golden_made_by.empty()) json->Member("golden_made_by", o.golden_made_by);
    if (o.reordered) json->Member("reordered", true);
    if (!o.drawn.empty()) json->Member("drawn_before", o.drawn);
    TextOrNull(json, "why", InLanguage(o.mechanism, Language::kEnglish));
    TextOrNull(json, "since", BadSinceText(o.since, Language::kEnglish));
    if (o.written_behind >= 0) {
      json->Member("written_behind_step", o.written_behind);
      json->Member("update_unseen", o.update_unseen);
      json->Member("weights", o.weights);
      json->Key("update_ratio");
      o.update_ratio == 0 ? json->Null() : json->Number(o.update_ratio);
    }
    TextOrNull(json, "replay", o.replay);
    json->Key("anatomy");
    o.anatomy ? WriteAnatomy(json, *o.anatomy) : json->Null();
  });
}

}  // namespace

std::string_view OutcomeName(const Story& story) {
  if (story.Drifts()) return "unknown";
  switch (story.outcome) {
    case Story::Outcome::kUnknown: return "unknown";
    case Story::Outcome::kEqual: return "equal";
    case Story::Outcome::kRoundOff: return "round_off";
    case Story::Outcome::kOrigin: return "origin";
  }
  return "";
}

std::string StoryJson(const Story& story) {
  JsonWriter json({.ascii = false, .not_finite = JsonStyle::NotFinite::kText});
  json.Object([&] {
    json.Member("version", 1);
    json.Member("outcome", OutcomeName(story));
    json.Member("compared", story.compared);
    TextOrNull(&json, "mistake", std::string(MistakeName(story.mistake.kind)));
    json.Member("whole", story.whole());
    json.Key("not_whole"), WriteGaps(&json, story.gaps);
    json.Member("ops_not_seen", story.unseen);
    json.Member("rows_without_tensor", story.unread);
    TextOrNull(&json, "first_without_tensor", story.first_unread);
    json.Member("not_compared", story.not_compared);
    TextOrNull(&json, "first_not_compared", story.first_not_compared);
    json.ArrayMember("origins", story.origins, [&](const StoryOrigin& o) { WriteOrigin(&json, o); });
    json.ArrayMember("not_comparable", story.cut, [&](const StoryOrigin& o) { WriteOrigin(&json, o); });
    json.ArrayMember("reached", story.reached, [&](const StoryReach& r) {
      json.Object([&] {
        json.Member("rank", r.rank);
        json.Member("from", r.from);
        TextOrNull(&json, "through", r.op);
      });
    });
    json.ObjectMember("inherited", [&] {
      json.Member("ops", story.inherited);
      json.Member("forward", story.forward);
      json.Member("backward", story.backward);
    });
    json.ObjectMember("ops", [&] {
      json.Member("bit_equal", story.ops.bit_equal);
      json.Member("round_off", story.ops.round_off);
      json.Member("rewritten", story.ops.rewritten);
      json.Member("inherited", story.ops.inherited);
      json.Member("suspicious", story.ops.suspicious);
      json.Member("bug", story.ops.bug);
      json.Member("target_only", story.target_only);
      json.Member("golden_only", story.golden_only);
    });
    json.ObjectMember("one_sided_modules", [&] {
      json.Member("target", story.target_modules);
      json.Member("golden", story.golden_modules);
    });
    json.Member("unrecorded_modules", story.unrecorded);
    json.Member("modules_of_other_form", story.other_forms);
    json.Member("ops_of_divided_steps", story.divided);
    json.ObjectMember("text", [&] {
      json.Member("en", StoryLines(story, Language::kEnglish));
      json.Member("zh", StoryLines(story, Language::kChinese));
    });
  });
  return json.Take();
}

}  // namespace msprobe
