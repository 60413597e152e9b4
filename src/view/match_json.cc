// Answers about matches made by hand.
#include "view/json_parts.h"
#include "view/view_json.h"

namespace msprobe::view {
namespace {

void TextOrNull(std::string& out, std::string_view text) {
  if (text.empty()) {
    out += "null";
  } else {
    Text(out, text);
  }
}

}  // namespace

std::string ToJson(const MatchState& state) {
  std::string out = "{\"revision\":";
  Text(out, state.revision);
  Key(out, "refusal");
  TextOrNull(out, RefusalName(state.refusal));
  Key(out, "problem");
  TextOrNull(out, state.problem);
  Key(out, "made");
  Array(out, state.made, [&](const auto& pair) {
    out += '[';
    Text(out, pair.first);
    out += ',';
    Text(out, pair.second);
    out += ']';
  });
  Key(out, "cancelled");
  Texts(out, state.cancelled);
  Key(out, "configs");
  Texts(out, state.configs);
  return out + "}";
}

std::string ToJson(const MatchChange& change) {
  std::string out = "{\"changed\":";
  AppendInt(out, static_cast<int64_t>(change.changed));
  Key(out, "skipped_total");
  AppendInt(out, static_cast<int64_t>(change.skipped_total));
  Key(out, "skipped");
  Array(out, change.skipped, [&](const SkippedMatch& s) {
    out += "{\"npu\":";
    Text(out, s.npu);
    Key(out, "bench");
    Text(out, s.bench);
    Key(out, "reason");
    Text(out, RefusalName(s.refusal));
    out += '}';
  });
  Key(out, "config");
  TextOrNull(out, change.config);
  return out + "}";
}

std::string ErrorJson(std::string_view text, std::string_view reason) {
  std::string out = "{\"error\":";
  Text(out, text);
  Key(out, "reason");
  Text(out, reason);
  return out + "}";
}

}  // namespace msprobe::view
