#include "report/summary.h"

#include <fmt/core.h>

#include "base/json_object.h"
#include "base/text.h"

namespace msprobe {
namespace {

std::string Names(const std::vector<std::string>& names, uint64_t total) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + OneLine(name);
  if (total > names.size()) out += ", ...";
  return out;
}

void AppendUnmatched(const PairReport& pair, std::string* out) {
  const uint64_t target_only = pair.counts.ops - pair.counts.matched_ops;
  if (target_only == 0 && pair.golden_only_ops == 0) {
    *out += fmt::format("  ops: {}, all matched\n", pair.counts.ops);
    return;
  }
  *out += fmt::format("  ops: {} matched, {} only in the target, {} only in the golden run\n", pair.counts.matched_ops,
                      target_only, pair.golden_only_ops);
  if (target_only > 0) *out += fmt::format("    target only: {}\n", Names(pair.target_only, target_only));
  if (pair.golden_only_ops > 0)
    *out += fmt::format("    golden only: {}\n", Names(pair.golden_only, pair.golden_only_ops));
  if (pair.matching == "exact" && !pair.structure)
    *out +=
        "    an op that one run has more shifts the call numbers of backward ops behind it: -fm matches by order "
        "instead\n";
}

/// Where one run has more ops, a different shape mostly means that two different calls stand against each other.
std::string_view Doubt(const PairReport& pair, const FirstDifference& d) {
  const bool unmatched = pair.counts.ops > pair.counts.matched_ops || pair.golden_only_ops > 0;
  return unmatched && pair.matching == "exact" && StartsWith(d.detail, "shape ")
             ? " (two different calls, probably: try -fm)"
             : "";
}

/// What follows the line of a difference that no op of the comparison made.
std::string_view Cause(FirstDifference::Kind kind) {
  switch (kind) {
    case FirstDifference::Kind::kInput: return ", on entry: a parameter, data or an op without a partner brings it";
    case FirstDifference::Kind::kParameter: return ", a parameter that is another one";
    case FirstDifference::Kind::kArgument: return ", an argument of the call";
    case FirstDifference::Kind::kShape: return ", the runs are split differently";
    case FirstDifference::Kind::kMissingOp: return ", the target lacks this op";
    case FirstDifference::Kind::kExtraOp: return ", the golden run has no such op";
    case FirstDifference::Kind::kCommunication: return "; a communication passes on what other ranks send, look there";
    default: return "";
  }
}

void AppendDifferences(const PairReport& pair, std::string* out) {
  using Kind = FirstDifference::Kind;
  const FirstDifference &first = pair.differences.first, &source = pair.differences.source;
  if (pair.differences.dtype_ops > 0) {
    *out += fmt::format("  other dtypes: {} ops, the first is {}\n", pair.differences.dtype_ops,
                        DifferenceLine(pair.differences.dtype));
  }
  const auto line = [&](std::string_view title, const FirstDifference& d) {
    *out += std::string(title) + DifferenceLine(d) + std::string(Doubt(pair, d)) + std::string(Cause(d.kind)) + "\n";
  };
  if (source.kind == Kind::kGrows) {
    *out += "  differences add up slowly, no op stands out; they start at " + DifferenceLine(source) + "\n";
  } else if (source.kind != Kind::kNone) {
    line("  first difference: ", source);
  }
  if (first.kind != Kind::kNone)
    line(source.kind == Kind::kNone ? "  first difference: " : "  first op that differs by itself: ", first);
  if (first.kind == Kind::kNone && source.kind == Kind::kNone) {
    *out += pair.counts.matched_ops > 0 ? "  first difference: none, all matched ops agree\n"
                                        : "  first difference: unknown, no op of the target has a partner; try -fm\n";
  }
}

std::string RulerLine(const RulerCounts& n) {
  std::string out;
  const auto add = [&](uint64_t count, RulerVerdict verdict) {
    if (count > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, RulerVerdictText(verdict));
  };
  add(n.bit_equal, RulerVerdict::kBitEqual);
  add(n.round_off, RulerVerdict::kRoundOff);
  add(n.inherited, RulerVerdict::kInherited);
  add(n.suspicious, RulerVerdict::kSuspicious);
  add(n.bug, RulerVerdict::kBug);
  return out.empty() ? out : "  ruler: " + out + " (ops)\n";
}

std::string DifferenceJson(const FirstDifference& d) {
  if (d.kind == FirstDifference::Kind::kNone) return "null";
  JsonObject out;
  out.String("kind", DifferenceKindText(d.kind));
  out.String("op", d.name);
  out.String("module", d.module);
  out.String("item", d.item);
  out.String("detail", d.detail);
  out.String("inputs", d.inputs);
  out.String("frame", d.frame);
  out.String("function", d.function);
  out.String("golden_op", d.golden_name);
  out.String("inside", d.inside);
  out.String("after", d.after);
  out.String("verdict", RulerVerdictText(d.verdict));
  out.Figure("units", d.units);
  out.Figure("input_error", d.input_error);
  out.Figure("output_error", d.output_error);
  return out.Done();
}

/// Ops by verdict, and what the first difference infected.
std::string RulerJson(const Differences& d) {
  JsonObject out;
  out.Number("bit_equal", d.ruler.bit_equal);
  out.Number("round_off", d.ruler.round_off);
  out.Number("inherited", d.ruler.inherited);
  out.Number("suspicious", d.ruler.suspicious);
  out.Number("bug", d.ruler.bug);
  out.Number("none", d.ruler.none);
  out.Number("infected_ops", d.infected_ops);
  std::string modules = "[";
  for (const InfectedModule& m : d.infected) {
    JsonObject module;
    module.String("module", m.module);
    module.Number("ops", m.ops);
    modules += (modules.size() > 1 ? ", " : "") + module.Done();
  }
  out.Raw("infected_modules", modules + "]");
  return out.Done();
}

/// How many ops were replayed with which result, and those of which there is more to say.
void AppendReplays(const CompareReport& report, std::string* out) {
  constexpr size_t kShown = 10;
  if (!report.replayed) return;
  *out += "replayed in float64: " + ReplayCountsText(report.replays) + "\n";
  size_t shown = 0;
  for (const ReplayedOp& op : report.replays) {
    if (op.verdict == ReplayVerdict::kBothRoundOff) continue;
    if (shown++ == kShown) {
      *out += "  ... the others are in --json, first_divergence.json and the HTML report\n";
      return;
    }
    *out += "  " + (op.label.empty() ? "" : OneLine(op.label) + " ") + OneLine(op.name) + ": " + ReplayText(op) + "\n";
  }
}

std::string_view ModeText(CompareMode mode) {
  return mode == CompareMode::kChecksum ? "md5" : mode == CompareMode::kTensor ? "tensor" : "statistics";
}

std::string_view ModeText(const PairReport& pair) { return pair.structure ? "structure" : ModeText(pair.mode); }

std::string PairJson(const PairReport& pair) {
  JsonObject out;
  out.String("label", pair.files.label);
  out.String("target", pair.files.target);
  out.String("golden", pair.files.golden);
  out.String("mode", ModeText(pair));
  out.Bool("fuzzy", pair.fuzzy);
  out.String("matching", pair.matching);
  out.Strings("files", pair.paths);
  out.Number("rows", pair.counts.rows);
  out.Number("pass", pair.counts.pass);
  out.Number("warning", pair.counts.warning);
  out.Number("error", pair.counts.error);
  out.Number("matched_ops", pair.counts.matched_ops);
  out.Number("target_only_ops", pair.counts.ops - pair.counts.matched_ops);
  out.Number("golden_only_ops", pair.golden_only_ops);
  out.Strings("target_only", pair.target_only);
  out.Strings("golden_only", pair.golden_only);
  out.Raw("first_difference", DifferenceJson(pair.differences.first));
  out.Raw("earlier_input_difference", DifferenceJson(pair.differences.source));
  out.Raw("ruler", RulerJson(pair.differences));
  out.Raw("other_dtype", DifferenceJson(pair.differences.dtype));
  out.Number("other_dtype_ops", pair.differences.dtype_ops);
  out.Strings("warnings", pair.warnings);
  out.String("advisor", pair.advisor);
  out.Strings("unmatched_files", pair.unmatched);
  if (!pair.mappings.empty()) out.Strings("mapping_files", pair.mappings);
  out.Raw("structure", pair.structure ? StructureJson(*pair.structure) : "null");
  return out.Done();
}

}  // namespace

std::string DifferenceLine(const FirstDifference& d) {
  std::string out = d.name;
  if (!d.frame.empty()) out += " (" + d.frame + (d.function.empty() ? "" : " in " + d.function) + ")";
  if (!d.module.empty()) out += " in " + d.module;
  out += ": " + (d.item.empty() ? std::string() : d.item.substr(1) + " ") + d.detail;
  const bool op = d.kind == FirstDifference::Kind::kOp || d.kind == FirstDifference::Kind::kCommunication;
  if (op && !d.inputs.empty()) out += ", inputs " + d.inputs;
  return OneLine(out);  // names come from the dumps
}

std::string SummaryText(const CompareReport& report) {
  std::string out;
  for (const PairReport& pair : report.pairs) {
    out += pair.files.label.empty() ? "compare" : OneLine(pair.files.label);
    out += " (" + std::string(ModeText(pair));
    out += pair.fuzzy ? ", fuzzy match: call numbers are ignored)\n" : ")\n";
    for (const std::string& path : pair.paths) out += "  result: " + OneLine(path) + "\n";
    if (!pair.advisor.empty()) out += "  advice: " + OneLine(pair.advisor) + "\n";
    out += fmt::format("  rows: {} ({} pass, {} warning, {} error)\n", pair.counts.rows, pair.counts.pass,
                       pair.counts.warning, pair.counts.error);
    AppendUnmatched(pair, &out);
    for (const std::string& path : pair.mappings) out += "  mapping: " + OneLine(path) + "\n";
    for (const std::string& path : pair.unmatched) out += "    all of them: " + OneLine(path) + "\n";
    if (pair.structure) {
      out += StructureText(*pair.structure);
      continue;
    }
    out += RulerLine(pair.differences.ruler);
    AppendDifferences(pair, &out);
  }
  for (const std::string& path : report.diff_analyze) out += "first ops beyond the thresholds: " + OneLine(path) + "\n";
  if (!report.mapping_path.empty()) {
    const SuggestedMapping& s = report.suggested;
    out += fmt::format(
        "suggested layer mapping: {}\n  partners by it: {} of {} calls, without it {}; check it, then give it as -lm\n",
        OneLine(report.mapping_path), s.matched_with, s.calls, s.matched_without);
  }
  if (report.divergence.found) {
    out += DivergenceText(report.divergence);
    if (!report.divergence_path.empty()) out += "  details: " + OneLine(report.divergence_path) + "\n";
    if (!report.repro.empty()) out += "  repro: " + OneLine(report.repro) + "\n";
  }
  AppendReplays(report, &out);
  for (const auto& [label, status] : report.failures)
    out += OneLine(label) + "\n  not compared: " + OneLine(status.message()) + "\n";
  for (const std::string& dir : report.target_only_dirs) out += "no partner in the golden run: " + OneLine(dir) + "\n";
  for (const std::string& dir : report.golden_only_dirs) out += "no partner in the target run: " + OneLine(dir) + "\n";
  if (!report.html.empty()) out += "report: " + OneLine(report.html) + "\n";
  return out;
}

std::string SummaryJson(const CompareReport& report) {
  std::string pairs = "[";
  for (size_t i = 0; i < report.pairs.size(); ++i) pairs += (i ? ", " : "") + PairJson(report.pairs[i]);
  JsonObject out;
  out.Raw("pairs", pairs + "]");
  out.Strings("target_only_dirs", report.target_only_dirs);
  out.Strings("golden_only_dirs", report.golden_only_dirs);
  std::string failures = "[";
  for (const auto& [label, status] : report.failures) {
    JsonObject failure;
    failure.String("label", label);
    failure.String("error", status.message());
    failures += (failures.size() > 1 ? ", " : "") + failure.Done();
  }
  out.Raw("failures", failures + "]");
  out.String("html", report.html);
  out.Raw("first_divergence", DivergenceJson(report.divergence));
  out.String("repro", report.repro);
  if (report.replayed) out.Raw("replays", ReplaysJson(report.replays));
  out.Strings("diff_analyze", report.diff_analyze);
  out.String("first_divergence_file", report.divergence_path);
  out.String("suggested_mapping", report.mapping_path);
  return out.Done();
}

}  // namespace msprobe
