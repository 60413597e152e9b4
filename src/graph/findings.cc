#include "graph/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace msprobe {

std::string FindingsText(const std::vector<GraphFinding>& findings) {
  static constexpr size_t kShown = 5;
  std::string out;
  std::map<std::string_view, size_t> shown;
  for (const GraphFinding& f : findings) {
    if (f.kind == "first_error") continue;  // has a line of its own
    if (++shown[f.kind] > kShown) continue;
    out += fmt::format("finding: {}{} (step {}, rank {})\n", f.source == "Bench" ? "golden side: " : "",
                       OneLine(f.text), f.step, f.rank);
  }
  for (const auto& [kind, count] : shown) {
    if (count > kShown)
      out += fmt::format("finding: {} more of kind {}, in table msprobe_findings\n", count - kShown, kind);
  }
  return out;
}

std::string FindingsJson(const std::vector<GraphFinding>& findings) {
  std::string out = "[";
  for (const GraphFinding& f : findings) {
    if (out.size() > 1) out += ", ";
    out += fmt::format(R"({{"kind": "{}", "side": "{}", "step": {}, "rank": {}, "node": )", f.kind, f.source, f.step,
                       f.rank);
    AppendJsonString(out, f.node);
    out += ", \"text\": ";
    AppendJsonString(out, f.text);
    if (!f.ranks.empty()) out += fmt::format(", \"ranks\": [{}]", fmt::join(f.ranks, ", "));
    out += '}';
  }
  return out + "]";
}

}  // namespace msprobe
