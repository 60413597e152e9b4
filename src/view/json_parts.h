// Pieces of the answers, appended to a text.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "view/viewer.h"

namespace msprobe::view {

inline void Text(std::string& out, std::string_view s) { AppendJsonString(out, s, /*ascii=*/false); }

// `"key":`, after a comma unless it is the first in its object.
inline void Key(std::string& out, std::string_view key) {
  if (!out.empty() && out.back() != '{') out += ',';
  out += '"';
  out += key;
  out += "\":";
}

inline void Numbers(std::string& out, std::initializer_list<std::pair<std::string_view, uint64_t>> fields) {
  out += '{';
  for (const auto& [key, value] : fields) {
    Key(out, key);
    AppendInt(out, static_cast<int64_t>(value));
  }
  out += '}';
}

template <typename List, typename Each>
void Array(std::string& out, const List& list, Each each) {
  out += '[';
  bool first = true;
  for (const auto& item : list) {
    if (!std::exchange(first, false)) out += ',';
    each(item);
  }
  out += ']';
}

inline void Texts(std::string& out, const std::vector<std::string>& list) {
  Array(out, list, [&](const std::string& s) { Text(out, s); });
}

inline std::string_view LevelNumber(Level level) {
  switch (level) {
    case Level::kPass: return "0";
    case Level::kWarning: return "0.5";
    case Level::kError: return "1";
    case Level::kNone: break;
  }
  return "null";
}

inline std::string_view OverflowText(Overflow overflow) {
  switch (overflow) {
    case Overflow::kMedium: return "\"medium\"";
    case Overflow::kHigh: return "\"high\"";
    case Overflow::kCritical: return "\"critical\"";
    case Overflow::kNone: break;
  }
  return "null";
}

inline void Node(std::string& out, const NodeSummary& n) {
  out += "{\"name\":";
  Text(out, n.name);
  Key(out, "label");
  Text(out, n.label);
  Key(out, "type");
  AppendInt(out, n.type);
  Key(out, "children");
  AppendInt(out, n.children);
  Key(out, "order");
  AppendInt(out, n.order);
  Key(out, "precision");
  out += LevelNumber(n.level);
  Key(out, "overflow");
  out += OverflowText(n.overflow);
  Key(out, "matched");
  if (n.matched) {
    Text(out, *n.matched);
  } else {
    out += "null";
  }
  Key(out, "micro_step");
  AppendInt(out, n.micro_step);
  Key(out, "counts");
  Numbers(out, {{"error", n.counts.error},
                {"warning", n.counts.warning},
                {"unmatched", n.counts.unmatched},
                {"overflow", n.counts.overflow}});
  out += '}';
}

/// The same as a list, for answers with thousands: docs/page_api.md has its order.
inline void NodeList(std::string& out, const NodeSummary& n) {
  out += '[';
  Text(out, n.name);
  const auto number = [&out](int64_t value) {
    out += ',';
    AppendInt(out, value);
  };
  number(1 + std::count(n.label.begin(), n.label.end(), '.'));
  number(n.type);
  number(n.children);
  number(n.order);
  out += ',';
  out += LevelNumber(n.level);
  out += ',';
  out += OverflowText(n.overflow);
  out += ',';
  if (n.matched && *n.matched != n.name) {
    Text(out, *n.matched);
  } else {
    out += n.matched ? "true" : "null";
  }
  number(n.micro_step);
  for (const uint32_t count : {n.counts.error, n.counts.warning, n.counts.unmatched, n.counts.overflow}) number(count);
  out += ']';
}

inline void OptionalNode(std::string& out, const std::optional<NodeSummary>& n) {
  if (n) {
    Node(out, *n);
  } else {
    out += "null";
  }
}

/// As members `"partners":[..],"precision":{..}` of an object; in links_json.cc.
void AppendMeasured(std::string& out, const std::vector<ExchangePartner>& partners,
                    const std::optional<NodePrecision>& precision);
/// As members `"inputs":[..],"outputs":[..],"stack":[..],"merge_info":[..],"communication":..`; in view_json.cc.
void AppendRecord(std::string& out, const NodeRecord& record);

}  // namespace msprobe::view
