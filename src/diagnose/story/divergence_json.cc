#include "diagnose/story/divergence_json.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "diagnose/divergence.h"
#include "diagnose/story/story.h"
#include "json/writer.h"

namespace msprobe {
namespace {

std::string_view KindText(const Origin& o) {
  return o.collective ? "collective" : DifferenceKindText(o.difference.kind);
}

/// JSON has no infinity: it is a text; what is not known is null.
void Measure(JsonWriter* json, std::string_view key, double v) {
  if (std::isnan(v)) return json->Member(key, nullptr);
  if (std::isinf(v)) return json->Member(key, "inf");
  json->Member(key, v);
}

void MeasureOrUnknown(JsonWriter* json, std::string_view key, double v) {
  Measure(json, key, v < 0 ? std::numeric_limits<double>::quiet_NaN() : v);
}

void NumberOrNull(JsonWriter* json, std::string_view key, int64_t v) {
  v < 0 ? json->Member(key, nullptr) : json->Member(key, v);
}

void DifferenceMembers(JsonWriter* json, const FirstDifference& f) {
  json->Member("op", f.name);
  json->Member("golden_op", f.golden_name);
  json->Member("module", f.module);
  json->Member("inside", f.inside);
  json->Member("after", f.after);
  json->Member("parameter_of_step", f.owner);
  json->Member("recomputed", f.recomputed);
  json->Member("item", f.item.empty() ? f.item : f.item.substr(1));
  json->Member("detail", f.detail);
  json->Member("inputs", f.inputs);
  json->Member("frame", f.frame);
  json->Member("function", f.function);
  MeasureOrUnknown(json, "input_error", f.input_error);
  MeasureOrUnknown(json, "output_error", f.output_error);
  Measure(json, "units", f.units);
  json->Member("verdict", RulerVerdictText(f.verdict));
}

void WriteOrigin(JsonWriter* json, const Origin& o) {
  json->BeginObject();
  json->Member("kind", KindText(o));
  json->Member("explanation", CauseText(CauseOf(o), Language::kEnglish));
  NumberOrNull(json, "rank", o.rank);
  json->Member("ranks", o.rank < 0 ? std::vector<int>() : o.ranks);
  if (o.replay) json->Key("replay"), WriteReplay(json, *o.replay);
  DifferenceMembers(json, o.difference);
  if (o.anatomy) json->Key("anatomy"), WriteAnatomy(json, *o.anatomy);
  json->EndObject();
}

void WriteGroup(JsonWriter* json, const InfectedGroup& g) {
  json->BeginObject();
  NumberOrNull(json, "rank", g.rank);
  json->Member("module", g.module.text());
  json->Member("direction", g.backward ? "backward" : "forward");
  json->Member("ops", g.ops);
  json->Member("first_op", g.first.text());
  json->EndObject();
}

void WriteHandover(JsonWriter* json, const Handover& h) {
  json->BeginObject();
  json->Member("rank", h.rank);
  json->Member("from", h.from);
  json->Member("through", h.op);
  json->EndObject();
}

}  // namespace

void DivergenceMembers(JsonWriter* json, const Divergence& d) {
  json->Member("version", 1);
  NumberOrNull(json, "step", d.step);
  json->Key("creator");
  d.found ? WriteOrigin(json, d.creator) : json->Null();
  json->ArrayMember("others", d.others, [&](const Origin& o) { WriteOrigin(json, o); });
  json->ArrayMember("inherited_by", d.handovers, [&](const Handover& h) { WriteHandover(json, h); });
  json->ObjectMember("infected", [&] {
    json->Member("ops", d.infected_ops);
    json->Member("forward", d.infected_forward);
    json->Member("backward", d.infected_backward);
  });
  json->ArrayMember("inherited", d.infected, [&](const InfectedGroup& g) { WriteGroup(json, g); });
  json->Member("inherited_left_out", d.infected_groups - d.infected.size());
  json->Member("evidence", d.evidence);
}

}  // namespace msprobe
