#include "graph/comm/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/message.h"
#include "base/text.h"
#include "json/writer.h"

namespace msprobe {

Message FindingsText(const std::vector<GraphFinding>& findings) {
  static constexpr size_t kShown = 5;
  Message out;
  std::map<std::string_view, size_t> shown;
  for (const GraphFinding& f : findings) {
    if (f.kind == FindingKind::kFirstError) continue;  // has a line of its own
    if (++shown[FindingKindText(f.kind)] > kShown) continue;
    const Message text = OneLined(f.text);
    out += f.source == "Bench" ? Msg("finding: golden side: {} (step {}, rank {})\n", text, f.step, f.rank)
                               : Msg("finding: {} (step {}, rank {})\n", text, f.step, f.rank);
  }
  for (const auto& [kind, count] : shown) {
    if (count > kShown) out += Msg("finding: {} more of kind {}, in table msprobe_findings\n", count - kShown, kind);
  }
  return out;
}

void WriteFindings(JsonWriter* json, const std::vector<GraphFinding>& findings) {
  json->Array(findings, [&](const GraphFinding& f) {
    json->BeginObject();
    json->Member("kind", FindingKindText(f.kind));
    json->Member("side", f.source);
    json->Member("step", f.step);
    json->Member("rank", f.rank);
    json->Member("node", f.node);
    json->Member("text", f.text);
    if (!f.ranks.empty()) json->Member("ranks", f.ranks);
    json->EndObject();
  });
}

}  // namespace msprobe
