// The answer as text for people and as JSON for programs.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json_object.h"
#include "base/text.h"
#include "diagnose/divergence.h"

namespace msprobe {
namespace {

using Kind = FirstDifference::Kind;

constexpr size_t kModulesShown = 5;
constexpr size_t kHandoversShown = 8;
constexpr size_t kGroupsKept = 2000;  // in the file

std::string_view KindText(const Origin& o) {
  return o.collective ? "collective" : DifferenceKindText(o.difference.kind);
}

std::string Joined(const std::vector<int>& ranks) {
  constexpr size_t kShown = 8;
  std::string out;
  for (size_t i = 0; i < ranks.size() && i < kShown; ++i) out += (i ? ", " : "") + std::to_string(ranks[i]);
  return ranks.size() > kShown ? out + fmt::format(", ... ({} in all)", ranks.size()) : out;
}

std::string_view WhatHappened(const Origin& o) {
  if (o.collective) return "the call itself makes it: what its ranks put in agrees";
  switch (o.difference.kind) {
    case Kind::kOp: return "this op makes it";
    case Kind::kCommunication: return "the ranks it talks to have no dump, or none that differs";
    case Kind::kInput: return "it comes in here, from data or code between the recorded ops";
    case Kind::kParameter: return "the parameter is another one";
    case Kind::kArgument: return "the op is called with another argument";
    case Kind::kShape: return "the runs are split differently";
    case Kind::kMissingOp: return "the target lacks this op";
    case Kind::kExtraOp: return "the golden run has no such op";
    case Kind::kDType: return "only the dtype differs";
    case Kind::kGrows: return "it adds up from op to op, none stands out";
    case Kind::kNone: break;
  }
  return "";
}

/// "4.1e+05 times what rounding explains"
std::string UnitsText(const FirstDifference& d) {
  if (!(d.units > 1)) return {};
  if (std::isinf(d.units)) return "far beyond rounding";
  return fmt::format("{:.2g} times what rounding explains", d.units);
}

std::string OriginText(const Origin& o, bool ranks_known) {
  const FirstDifference& d = o.difference;
  std::string out;
  if (ranks_known) out += (o.ranks.size() == 1 ? "rank " : "ranks ") + Joined(o.ranks) + " ";
  out += d.name;
  if (!d.frame.empty()) out += " (" + d.frame + (d.function.empty() ? "" : " in " + d.function) + ")";
  return out;
}

void Line(std::string* out, std::string_view indent, const std::string& text) {
  *out += indent;
  *out += OneLine(text);
  *out += '\n';
}

void AppendCreator(const Divergence& d, bool ranks_known, std::string* out) {
  const FirstDifference& f = d.creator.difference;
  Line(out, "",
       "first divergence" + (d.step < 0 ? std::string() : fmt::format(" (step {})", d.step)) + ": " +
           OriginText(d.creator, ranks_known));
  if (!f.module.empty()) Line(out, "  ", "in module " + std::string(ModulePath(f.module)));
  std::string what = f.item.empty() ? std::string() : f.item.substr(1) + " ";
  what += f.detail;
  if (const std::string units = UnitsText(f); !units.empty()) what += (what.empty() ? "" : ", ") + units;
  const bool output = f.kind == Kind::kOp || f.kind == Kind::kCommunication;
  if (output && !f.inputs.empty()) what += "; inputs " + f.inputs;
  std::string happened(WhatHappened(d.creator));
  if (!f.inside.empty()) {
    happened = "code of " + std::string(ModulePath(f.inside)) + " between its recorded ops makes it";
    if (!f.after.empty()) happened += ", after " + f.after;
  }
  Line(out, "  ", (what.empty() ? "" : what + "; ") + happened);
  if (d.creator.replay) Line(out, "  ", "replayed in float64: " + ReplayText(*d.creator.replay));
}

void AppendInfected(const Divergence& d, bool ranks_known, std::string* out) {
  if (d.infected_ops == 0) return Line(out, "  ", "nothing else differs");
  std::string text =
      fmt::format("infected: {} ops, {} forward, {} backward", d.infected_ops, d.infected_forward, d.infected_backward);
  if (ranks_known && d.infected_by_rank.size() > 1) {
    text += ";";
    for (size_t i = 0; i < d.infected_by_rank.size() && i < kHandoversShown; ++i)
      text += fmt::format("{} rank {}: {}", i ? "," : "", d.infected_by_rank[i].first, d.infected_by_rank[i].second);
    if (d.infected_by_rank.size() > kHandoversShown) text += ", ...";
  }
  Line(out, "  ", text);
  // The ranks of a group of modules mostly tell the same.
  std::vector<std::pair<std::string, uint64_t>> modules;
  for (const InfectedGroup& g : d.infected) {
    if (g.module.empty()) continue;
    const std::string name = g.module + (g.backward ? " backward" : "");
    const auto it = std::find_if(modules.begin(), modules.end(), [&](const auto& m) { return m.first == name; });
    if (it != modules.end()) {
      it->second += g.ops;
    } else if (modules.size() <= kModulesShown) {
      modules.emplace_back(name, g.ops);
    }
  }
  if (modules.empty()) return;
  text = "first in ";
  for (size_t i = 0; i < modules.size() && i < kModulesShown; ++i)
    text += fmt::format("{}{} ({})", i ? ", " : "", modules[i].first, modules[i].second);
  Line(out, "    ", text + (modules.size() > kModulesShown ? ", ..." : ""));
}

/// JSON has no infinity: it is a text; what is not known is null.
void NumberOrNull(std::string_view key, double v, JsonObject* out) {
  if (std::isnan(v)) return out->Null(key);
  if (std::isinf(v)) return out->String(key, "inf");
  std::string text;
  AppendJsonNumber(text, v);
  out->Raw(key, text);
}

std::string DifferenceMembers(const FirstDifference& f) {
  JsonObject out;
  out.String("op", f.name);
  out.String("golden_op", f.golden_name);
  out.String("module", f.module);
  out.String("inside", f.inside);
  out.String("after", f.after);
  out.String("item", f.item.empty() ? f.item : f.item.substr(1));
  out.String("detail", f.detail);
  out.String("inputs", f.inputs);
  out.String("frame", f.frame);
  out.String("function", f.function);
  NumberOrNull("input_error", f.input_error < 0 ? std::numeric_limits<double>::quiet_NaN() : f.input_error, &out);
  NumberOrNull("output_error", f.output_error < 0 ? std::numeric_limits<double>::quiet_NaN() : f.output_error, &out);
  NumberOrNull("units", f.units, &out);
  out.String("verdict", RulerVerdictText(f.verdict));
  return out.Done();
}

std::string OriginJson(const Origin& o) {
  JsonObject out;
  out.String("kind", KindText(o));
  out.String("explanation", WhatHappened(o));
  if (o.rank < 0) {
    out.Null("rank");
  } else {
    out.Int("rank", o.rank);
  }
  out.Ints("ranks", o.rank < 0 ? std::vector<int>() : o.ranks);
  if (o.replay) out.Raw("replay", ReplayJson(*o.replay));
  std::string members = DifferenceMembers(o.difference);
  std::string text = out.Done();
  text.back() = ',';
  return text + " " + members.substr(1);
}

std::string GroupJson(const InfectedGroup& g) {
  JsonObject out;
  if (g.rank < 0) {
    out.Null("rank");
  } else {
    out.Int("rank", g.rank);
  }
  out.String("module", g.module);
  out.String("direction", g.backward ? "backward" : "forward");
  out.Number("ops", g.ops);
  out.String("first_op", g.first);
  return out.Done();
}

std::string HandoverJson(const Handover& h) {
  JsonObject out;
  out.Int("rank", h.rank);
  out.Ints("from", h.from);
  out.String("through", h.op);
  return out.Done();
}

}  // namespace

std::string DivergenceText(const Divergence& d) {
  if (!d.found) return {};
  const bool ranks_known = d.creator.rank >= 0;
  std::string out;
  AppendCreator(d, ranks_known, &out);
  for (const Origin& o : d.others) {
    Line(&out, "  ",
         "apart from that: " + OriginText(o, ranks_known) + ": " +
             (o.difference.item.empty() ? "" : o.difference.item.substr(1) + " ") + o.difference.detail);
  }
  for (size_t i = 0; i < d.handovers.size() && i < kHandoversShown; ++i) {
    const Handover& h = d.handovers[i];
    Line(&out, "  ",
         h.op.empty() ? fmt::format("rank {} differs later, through no recorded call", h.rank)
                      : fmt::format("rank {} inherits it by {} from rank {}", h.rank, h.op, Joined(h.from)));
  }
  if (d.handovers.size() > kHandoversShown)
    Line(&out, "  ", fmt::format("... and {} more ranks inherit it", d.handovers.size() - kHandoversShown));
  AppendInfected(d, ranks_known, &out);
  return out;
}

std::string DivergenceJson(const Divergence& d) {
  JsonObject out;
  out.Number("version", 1);
  if (d.step < 0) {
    out.Null("step");
  } else {
    out.Int("step", d.step);
  }
  out.Raw("creator", d.found ? OriginJson(d.creator) : "null");
  std::vector<std::string> others, handovers, groups;
  for (const Origin& o : d.others) others.push_back(OriginJson(o));
  for (const Handover& h : d.handovers) handovers.push_back(HandoverJson(h));
  for (size_t i = 0; i < d.infected.size() && i < kGroupsKept; ++i) groups.push_back(GroupJson(d.infected[i]));
  out.Raw("others", JsonList(others));
  out.Raw("inherited_by", JsonList(handovers));
  JsonObject infected;
  infected.Number("ops", d.infected_ops);
  infected.Number("forward", d.infected_forward);
  infected.Number("backward", d.infected_backward);
  out.Raw("infected", infected.Done());
  out.Raw("inherited", JsonList(groups));
  out.Number("inherited_left_out", d.infected.size() - groups.size());
  out.Strings("evidence", d.evidence);
  return out.Done();
}

}  // namespace msprobe
