// Answers about matches made by hand.
#include "json/writer.h"
#include "view/query/json_parts.h"
#include "view/query/view_json.h"

namespace msprobe::view {
namespace {

void TextOrNull(JsonWriter* json, std::string_view key, std::string_view text) {
  text.empty() ? json->Member(key, nullptr) : json->Member(key, text);
}

}  // namespace

std::string ToJson(const MatchState& state) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Member("revision", state.revision);
  TextOrNull(&json, "refusal", RefusalName(state.refusal));
  TextOrNull(&json, "problem", state.problem);
  json.ArrayMember("made", state.made, [&](const auto& pair) {
    json.BeginArray();
    json.String(pair.first);
    json.String(pair.second);
    json.EndArray();
  });
  json.Member("cancelled", state.cancelled);
  json.Member("configs", state.configs);
  json.Member("undo", state.undo);
  json.Member("redo", state.redo);
  json.EndObject();
  return json.Take();
}

std::string ToJson(const MatchChange& change) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Member("changed", change.changed);
  json.Member("skipped_total", change.skipped_total);
  json.ArrayMember("skipped", change.skipped, [&](const SkippedMatch& s) {
    json.BeginObject();
    json.Member("npu", s.target);
    json.Member("bench", s.golden);
    json.Member("reason", RefusalName(s.refusal));
    json.EndObject();
  });
  TextOrNull(&json, "config", change.config);
  json.EndObject();
  return json.Take();
}

std::string ToJson(const PartnerSuggestions& suggestions) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.ArrayMember("suggestions", suggestions.list, [&](const PartnerSuggestions::One& one) {
    json.BeginObject();
    json.Key("node"), WriteNode(&json, one.node);
    json.Member("name_likeness", one.guess.name);
    json.Member("same_place", one.guess.same_place);
    json.Member("same_shapes", one.guess.same_shapes);
    json.EndObject();
  });
  json.EndObject();
  return json.Take();
}

std::string ErrorJson(std::string_view text, std::string_view reason) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Member("error", text);
  json.Member("reason", reason);
  json.EndObject();
  return json.Take();
}

}  // namespace msprobe::view
