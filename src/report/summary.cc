#include "report/summary.h"

#include <fmt/core.h>

#include <cmath>

#include "base/text.h"
#include "diagnose/story/divergence_json.h"
#include "json/writer.h"

namespace msprobe {
namespace {

constexpr size_t kNoScroll = 4;  // pairs that fit a terminal with their lines

std::string Names(const std::vector<std::string>& names, uint64_t total) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + OneLine(name);
  if (total > names.size()) out += ", ...";
  return out;
}

void AppendUnmatched(const PairReport& pair, std::string* out) {
  const uint64_t target_only = pair.counts.ops - pair.counts.matched_ops - pair.target_unseen;
  if (pair.target_unseen + pair.golden_unseen > 0) {
    *out += fmt::format("  not seen: {} ops, which the recording that is not whole may have had\n",
                        pair.target_unseen + pair.golden_unseen);
  }
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
        "    an extra op in one run shifts the call numbers of later backward ops: -fm matches by order "
        "instead\n";
}

/// Where one run has more ops, a different shape mostly means that two different calls stand against each other.
std::string_view Doubt(const PairReport& pair, const FirstDifference& d) {
  const bool unmatched = pair.counts.ops > pair.counts.matched_ops + pair.target_unseen || pair.golden_only_ops > 0;
  return unmatched && pair.matching == "exact" && StartsWith(d.detail, "shape ")
             ? " (probably two different calls: try -fm)"
             : "";
}

/// What made a difference that is not of the op that its line names.
std::string Because(const FirstDifference& d) {
  const Cause cause = CauseOf(d);
  return cause == Cause::kOp || cause == Cause::kDType ? "" : "; " + CauseText(cause, Language::kEnglish);
}

/// Nothing differs where it could be seen.
std::string NoneText(const PairReport& pair) {
  const bool whole = pair.gaps.empty() && pair.unread == 0;
  return whole ? "  first difference: none, all matched ops agree\n"
               : "  first difference: none in what was seen, which was not all\n";
}

void AppendDifferences(const PairReport& pair, std::string* out) {
  using Kind = FirstDifference::Kind;
  const FirstDifference &first = pair.differences.first, &source = pair.differences.source;
  if (pair.differences.dtype_ops > 0) {
    *out += fmt::format("  different dtypes: {} ops, first {}\n", pair.differences.dtype_ops,
                        DifferenceLine(pair.differences.dtype));
  }
  const auto line = [&](std::string_view title, const FirstDifference& d) {
    *out += std::string(title) + DifferenceLine(d) + std::string(Doubt(pair, d)) + Because(d) + "\n";
  };
  if (source.kind == Kind::kGrows) {
    *out += "  differences add up slowly, starting at " + DifferenceLine(source) + "\n";
  } else if (source.kind != Kind::kNone) {
    line("  first difference: ", source);
  }
  if (first.kind != Kind::kNone)
    line(source.kind == Kind::kNone ? "  first difference: " : "  first op that differs by itself: ", first);
  if (first.kind == Kind::kNone && source.kind == Kind::kNone) {
    *out += pair.counts.matched_ops > 0
                ? NoneText(pair)
                : "  first difference: unknown, no op of the target has a partner; try -lm or -fm\n";
  }
}

std::string ReproLine(const ReproReport& repro) {
  if (repro.script.empty()) return repro.why_not;
  return repro.script + (repro.made_up ? " (inputs are made up: the dumps hold no values)" : "");
}

void WriteReproReport(JsonWriter* json, const std::optional<ReproReport>& repro) {
  if (!repro) return json->Null();
  json->BeginObject();
  json->Member("script", repro->script);
  json->Member("made_up", repro->made_up);
  json->Member("error", repro->why_not);
  json->EndObject();
}

std::string RulerLine(const RulerCounts& n) {
  std::string out;
  const auto add = [&](uint64_t count, std::string_view verdict) {
    if (count > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, verdict);
  };
  add(n.bit_equal, RulerVerdictText(RulerVerdict::kBitEqual));
  add(n.round_off, RulerVerdictText(RulerVerdict::kRoundOff));
  add(n.rewritten, "computed another way");
  add(n.inherited, RulerVerdictText(RulerVerdict::kInherited));
  add(n.suspicious, RulerVerdictText(RulerVerdict::kSuspicious));
  add(n.bug, RulerVerdictText(RulerVerdict::kBug));
  return out.empty() ? out : "  ruler: " + out + " (ops)\n";
}

/// null for a number that is not known (negative, NaN); JSON has no infinity, so that is the text "inf".
void Figure(JsonWriter* json, std::string_view key, double v) {
  json->Key(key);
  v < 0 || std::isnan(v) ? json->Null() : std::isinf(v) ? json->String("inf") : json->Rounded(v, 6);
}

void WriteDifference(JsonWriter* json, std::string_view key, const FirstDifference& d) {
  json->Key(key);
  if (d.kind == FirstDifference::Kind::kNone) return json->Null();
  json->BeginObject();
  json->Member("kind", DifferenceKindText(d.kind));
  json->Member("op", d.name);
  json->Member("module", d.module);
  json->Member("item", d.item);
  json->Member("detail", d.detail);
  json->Member("inputs", d.inputs);
  json->Member("frame", d.frame);
  json->Member("function", d.function);
  json->Member("golden_op", d.golden_name);
  json->Member("inside", d.inside);
  json->Member("after", d.after);
  json->Member("verdict", RulerVerdictText(d.verdict));
  Figure(json, "units", d.units);
  Figure(json, "input_error", d.input_error);
  Figure(json, "output_error", d.output_error);
  json->EndObject();
}

/// Ops by verdict, and what the first difference infected.
void WriteRuler(JsonWriter* json, const Differences& d) {
  json->BeginObject();
  json->Member("bit_equal", d.ruler.bit_equal);
  json->Member("round_off", d.ruler.round_off);
  json->Member("rewritten", d.ruler.rewritten);
  json->Member("inherited", d.ruler.inherited);
  json->Member("suspicious", d.ruler.suspicious);
  json->Member("bug", d.ruler.bug);
  json->Member("none", d.ruler.none);
  json->Member("infected_ops", d.infected_ops);
  json->ArrayMember("infected_modules", d.infected, [&](const InfectedModule& m) {
    json->BeginObject();
    json->Member("module", m.module);
    json->Member("ops", m.ops);
    json->EndObject();
  });
  json->EndObject();
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
      *out += "  ... for the rest see --json, first_divergence.json or the HTML report\n";
      return;
    }
    *out += "  " + (op.label.empty() ? "" : OneLine(op.label) + " ") + OneLine(op.name) + ": " + ReplayText(op) + "\n";
  }
}

std::string_view ModeText(CompareMode mode) {
  return mode == CompareMode::kChecksum ? "md5" : mode == CompareMode::kTensor ? "tensor" : "statistics";
}

std::string_view ModeText(const PairReport& pair) { return pair.structure ? "structure" : ModeText(pair.mode); }

void WritePair(JsonWriter* json, const PairReport& pair) {
  json->BeginObject();
  json->Member("label", pair.files.label);
  json->Member("target", pair.files.target);
  json->Member("golden", pair.files.golden);
  json->Member("mode", ModeText(pair));
  json->Member("fuzzy", pair.fuzzy);
  json->Member("matching", pair.matching);
  json->Member("files", pair.paths);
  json->Member("rows", pair.counts.rows);
  json->Member("pass", pair.counts.pass);
  json->Member("warning", pair.counts.warning);
  json->Member("error", pair.counts.error);
  json->Member("matched_ops", pair.counts.matched_ops);
  json->Member("target_only_ops", pair.counts.ops - pair.counts.matched_ops - pair.target_unseen);
  json->Member("golden_only_ops", pair.golden_only_ops);
  json->Member("ops_not_seen", pair.target_unseen + pair.golden_unseen);
  json->Member("rows_without_tensor", pair.unread);
  json->Key("not_whole"), WriteGaps(json, pair.gaps);
  json->Member("target_only", pair.target_only);
  json->Member("golden_only", pair.golden_only);
  WriteDifference(json, "first_difference", pair.differences.first);
  WriteDifference(json, "earlier_input_difference", pair.differences.source);
  json->Key("ruler"), WriteRuler(json, pair.differences);
  WriteDifference(json, "other_dtype", pair.differences.dtype);
  json->Member("other_dtype_ops", pair.differences.dtype_ops);
  json->Member("warnings", pair.warnings);
  json->Member("advisor", pair.advisor);
  json->Member("unmatched_files", pair.unmatched);
  if (!pair.mappings.empty()) json->Member("mapping_files", pair.mappings);
  json->Key("structure");
  pair.structure ? WriteStructure(json, *pair.structure) : json->Null();
  json->EndObject();
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
  const bool values = !report.pairs.empty() && !report.pairs.front().structure;
  const Language language = LocaleLanguage();
  std::string out = values ? StoryText(report.story, language) : GapText(report.story.gaps, language);
  if (!values && !out.empty()) out += "\n";
  for (const PairReport& pair : report.pairs) {
    out += pair.files.label.empty() ? "compare" : OneLine(pair.files.label);
    out += " (" + std::string(ModeText(pair));
    out += pair.fuzzy ? ", fuzzy match: call numbers are ignored)\n" : ")\n";
    for (const std::string& path : pair.paths) out += "  result: " + OneLine(path) + "\n";
    if (!pair.advisor.empty()) out += "  advice: " + OneLine(pair.advisor) + "\n";
    AppendUnmatched(pair, &out);
    if (!pair.structure) out += RulerLine(pair.differences.ruler);
    out += fmt::format("  rows: {} (old rule: {} pass, {} warning, {} error)\n", pair.counts.rows, pair.counts.pass,
                       pair.counts.warning, pair.counts.error);
    for (const std::string& path : pair.mappings) out += "  mapping: " + OneLine(path) + "\n";
    for (const std::string& path : pair.unmatched) out += "    all of them: " + OneLine(path) + "\n";
    if (pair.structure) {
      out += StructureText(*pair.structure);
      continue;
    }
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
    if (!report.divergence_path.empty()) out += "  details: " + OneLine(report.divergence_path) + "\n";
    if (report.repro) out += "  repro: " + OneLine(ReproLine(*report.repro)) + "\n";
  }
  AppendReplays(report, &out);
  for (const auto& [label, status] : report.failures)
    out += OneLine(label) + "\n  not compared: " + OneLine(status.message()) + "\n";
  for (const std::string& dir : report.target_only_dirs) out += "no partner in the golden run: " + OneLine(dir) + "\n";
  for (const std::string& dir : report.golden_only_dirs) out += "no partner in the target run: " + OneLine(dir) + "\n";
  if (!report.html.empty()) out += "report: " + OneLine(report.html) + "\n";
  // The first line has scrolled away.
  if (values && report.pairs.size() > kNoScroll) out += StoryHeadline(report.story, language) + "\n";
  return out;
}

std::string SummaryJson(const CompareReport& report) {
  JsonWriter json;
  json.BeginObject();
  json.ArrayMember("pairs", report.pairs, [&](const PairReport& pair) { WritePair(&json, pair); });
  json.Member("target_only_dirs", report.target_only_dirs);
  json.Member("golden_only_dirs", report.golden_only_dirs);
  json.ArrayMember("failures", report.failures, [&](const auto& failure) {
    json.BeginObject();
    json.Member("label", failure.first);
    json.Member("error", failure.second.message());
    json.EndObject();
  });
  json.Member("html", report.html);
  json.RawMember("verdict", StoryJson(report.story));
  json.ObjectMember("first_divergence", [&] { DivergenceMembers(&json, report.divergence); });
  json.Key("repro"), WriteReproReport(&json, report.repro);
  if (report.replayed) json.Key("replays"), WriteReplays(&json, report.replays);
  json.Member("diff_analyze", report.diff_analyze);
  json.Member("first_divergence_file", report.divergence_path);
  json.Member("suggested_mapping", report.mapping_path);
  json.EndObject();
  return json.Take();
}

}  // namespace msprobe
