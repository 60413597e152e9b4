// Pieces of the answers.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/writer.h"
#include "view/query/answers.h"

namespace msprobe::view {

inline void WriteLevel(JsonWriter* json, Verdict level) {
  switch (level) {
    case Verdict::kPass: return json->Int(0);
    case Verdict::kWarning: return json->Number(0.5);
    case Verdict::kError: return json->Int(1);
    case Verdict::kNone: return json->Null();
  }
}

inline void WriteOverflow(JsonWriter* json, Overflow overflow) {
  switch (overflow) {
    case Overflow::kMedium: return json->String("medium");
    case Overflow::kHigh: return json->String("high");
    case Overflow::kCritical: return json->String("critical");
    case Overflow::kNone: return json->Null();
  }
}

/// null where the ruler says nothing.
inline void WriteRuling(JsonWriter* json, RulerVerdict ruling) {
  ruling == RulerVerdict::kNone ? json->Null() : json->String(RulerVerdictText(ruling));
}

inline std::string_view SideName(Side side) { return side == Side::kTarget ? "NPU" : "Bench"; }

/// Into an open object.
inline void WriteNodeMembers(JsonWriter* json, const NodeSummary& n) {
  json->Member("name", n.name);
  json->Member("label", n.label);
  json->Member("type", n.type);
  json->Member("children", n.children);
  json->Member("order", n.order);
  json->Key("precision"), WriteLevel(json, n.level);
  json->Key("overflow"), WriteOverflow(json, n.overflow);
  json->Key("verdict"), WriteRuling(json, n.ruling);
  json->Member("matched", n.matched);
  json->Member("micro_step", n.micro_step);
  json->ObjectMember("counts", [&] {
    json->Member("error", n.counts.error);
    json->Member("warning", n.counts.warning);
    json->Member("unmatched", n.counts.unmatched);
    json->Member("overflow", n.counts.overflow);
    json->Member("suspicious", n.counts.suspicious);
    json->Member("bug", n.counts.bug);
  });
}

inline void WriteNode(JsonWriter* json, const NodeSummary& n) {
  json->BeginObject();
  WriteNodeMembers(json, n);
  json->EndObject();
}

/// The same as a list, for answers with thousands: docs/page_api.md has its order.
inline void WriteNodeList(JsonWriter* json, const NodeSummary& n) {
  json->BeginArray();
  json->Value(n.name);
  json->Value(1 + std::count(n.label.begin(), n.label.end(), '.'));
  json->Value(n.type);
  json->Value(n.children);
  json->Value(n.order);
  WriteLevel(json, n.level);
  WriteOverflow(json, n.overflow);
  n.matched == n.name ? json->Bool(true) : json->Value(n.matched);
  json->Value(n.micro_step);
  for (const uint32_t count : {n.counts.error, n.counts.warning, n.counts.unmatched, n.counts.overflow}) {
    json->Value(count);
  }
  WriteRuling(json, n.ruling);
  json->Value(n.counts.suspicious);
  json->Value(n.counts.bug);
  json->EndArray();
}

inline void WriteNode(JsonWriter* json, std::string_view key, const std::optional<NodeSummary>& n) {
  json->Key(key);
  n ? WriteNode(json, *n) : json->Null();
}

/// As members `"partners":[..],"precision":{..}` of an object; in links_json.cc.
void WriteMeasured(JsonWriter* json, const std::vector<ExchangePartner>& partners,
                   const std::optional<NodePrecision>& precision);
/// As members `"inputs":[..],"outputs":[..],"stack":[..],"merge_info":[..],"communication":..`; in view_json.cc.
void WriteRecord(JsonWriter* json, const NodeRecord& record);

}  // namespace msprobe::view
