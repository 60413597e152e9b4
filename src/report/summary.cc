#include "report/summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "compare/describe/six_digits.h"
#include "diagnose/story/divergence_json.h"
#include "diagnose/story/story_judgement.h"
#include "json/writer.h"
#include "judgement/judgement_json.h"
#include "report/rank_table.h"

namespace msprobe {
namespace {

constexpr size_t kNoScroll = 4;  // pairs that fit a terminal with their lines

std::string Names(const std::vector<std::string>& names, uint64_t total) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + OneLine(name);
  if (total > names.size()) out += ", ...";
  return out;
}

void AppendUnmatched(const PairReport& pair, Message* out) {
  const uint64_t target_only = pair.counts.ops - pair.counts.matched_ops - pair.target_unseen;
  if (pair.target_unseen + pair.golden_unseen > 0) {
    *out += Msg("  not seen: {} ops, which the recording that is not whole may have had\n",
                pair.target_unseen + pair.golden_unseen);
  }
  if (target_only == 0 && pair.golden_only_ops == 0) {
    *out += Msg("  ops: {}, all matched\n", pair.counts.ops);
    return;
  }
  *out += Msg("  ops: {} matched, {} only in the target, {} only in the golden run\n", pair.counts.matched_ops,
              target_only, pair.golden_only_ops);
  if (target_only > 0) *out += Msg("    target only: {}\n", Names(pair.target_only, target_only));
  if (pair.golden_only_ops > 0) *out += Msg("    golden only: {}\n", Names(pair.golden_only, pair.golden_only_ops));
  if (pair.matching == "exact" && !pair.structure)
    *out +=
        Msg("    an extra op in one run shifts the call numbers of later backward ops: -fm matches by order instead\n");
}

/// Where one run has more ops, a different shape mostly means that two different calls stand against each other.
bool IsDoubtful(const PairReport& pair, const FirstDifference& d) {
  const bool unmatched = pair.counts.ops > pair.counts.matched_ops + pair.target_unseen || pair.golden_only_ops > 0;
  return unmatched && pair.matching == "exact" && d.difference.what == "shape";
}

/// What made a difference that is not of the op that its line names.
Message Because(const FirstDifference& d) {
  const Cause cause = CauseOf(d);
  if (cause == Cause::kOp || cause == Cause::kDType) return {};
  return KnownText(CauseText(cause, Language::kEnglish));
}

/// Nothing differs where it could be seen.
Message NoneText(const PairReport& pair) {
  const bool whole = pair.gaps.empty() && pair.unread == 0;
  return whole ? Msg("  first difference: none, all matched ops agree\n")
               : Msg("  first difference: none in what was seen, which was not all\n");
}

void AppendDifferences(const PairReport& pair, Message* out) {
  using Kind = FirstDifference::Kind;
  const FirstDifference &first = pair.differences.first, &source = pair.differences.source;
  if (pair.differences.dtype_ops > 0) {
    *out += Msg("  different dtypes: {} ops, first {}\n", pair.differences.dtype_ops,
                DifferenceLine(pair.differences.dtype));
  }
  const auto line = [&](const FirstDifference& d) {
    Message text = DifferenceLine(d);
    if (IsDoubtful(pair, d)) text = Msg("{} (probably two different calls: try -fm)", text);
    const Message why = Because(d);
    return why.empty() ? text : Msg("{}; {}", text, why);
  };
  if (source.kind == Kind::kGrows) {
    *out += Msg("  differences add up slowly, starting at {}\n", DifferenceLine(source));
  } else if (source.kind == Kind::kDraw) {
    *out += Msg("  other random numbers from {} on\n", DifferenceLine(source));
  } else if (source.kind != Kind::kNone) {
    *out += Msg("  first difference: {}\n", line(source));
  }
  const bool lone = first.kind == Kind::kMissingOp || first.kind == Kind::kExtraOp;
  const RulerCounts& ops = pair.differences.ruler;
  if (lone && source.kind == Kind::kNone && ops.inherited + ops.suspicious + ops.bug == 0) {
    *out += Msg("  first difference: none, all matched ops agree; {}\n", line(first));
  } else if (first.kind != Kind::kNone)
    *out += source.kind == Kind::kNone ? Msg("  first difference: {}\n", line(first))
                                       : Msg("  first op that differs by itself: {}\n", line(first));
  if (first.kind == Kind::kNone && source.kind == Kind::kNone) {
    *out += pair.counts.matched_ops > 0
                ? NoneText(pair)
                : Msg("  first difference: unknown, no op of the target has a partner; try -lm or -fm\n");
  }
}

Message ReproLine(const ReproReport& repro) {
  if (repro.script.empty()) return OneLined(repro.why_not);
  const std::string script = OneLine(repro.script);
  return repro.made_up ? Msg("{} (inputs are made up: the dumps hold no values)", script) : Message(script);
}

void WriteReproReport(JsonWriter* json, const std::optional<ReproReport>& repro) {
  if (!repro) return json->Null();
  json->BeginObject();
  json->Member("script", repro->script);
  json->Member("made_up", repro->made_up);
  json->Member("error", repro->why_not);
  json->EndObject();
}

Message RulerLine(const RulerCounts& n) {
  std::vector<Message> parts;
  const auto add = [&](uint64_t count, const Message& text) {
    if (count > 0) parts.push_back(text);
  };
  add(n.bit_equal, Msg("{} bit-equal", n.bit_equal));
  add(n.round_off, Msg("{} round-off", n.round_off));
  add(n.rewritten, Msg("{} computed another way", n.rewritten));
  add(n.inherited, Msg("{} inherited", n.inherited));
  add(n.suspicious, Msg("{} suspicious", n.suspicious));
  add(n.bug, Msg("{} bug", n.bug));
  return parts.empty() ? Message() : Msg("  ruler: {} (ops)\n", Joined(parts, Msg(", ")));
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
void AppendReplays(const CompareReport& report, Message* out) {
  constexpr size_t kShown = 10;
  if (!report.replayed) return;
  *out += Msg("replayed in float64: {}\n", ReplayCountsText(report.replays));
  size_t shown = 0;
  for (const ReplayedOp& op : report.replays) {
    if (op.verdict == ReplayVerdict::kBothRoundOff) continue;
    if (shown++ == kShown) {
      *out += Msg("  ... for the rest see --json, first_divergence.json or the HTML report\n");
      return;
    }
    *out += Msg("  {}: {}\n", (op.label.empty() ? "" : OneLine(op.label) + " ") + OneLine(op.name), ReplayText(op));
  }
}

std::string_view ModeText(CompareMode mode) {
  return mode == CompareMode::kChecksum ? "md5" : mode == CompareMode::kTensor ? "tensor" : "statistics";
}

std::string_view ModeText(const PairReport& pair) { return pair.structure ? "structure" : ModeText(pair.mode); }

Message PairTitle(const PairReport& pair) {
  const Message label = pair.files.label.empty() ? Msg("compare") : Message(OneLine(pair.files.label));
  const bool fuzzy = pair.fuzzy;
  const auto mode = ModeText(pair);
  if (mode == "md5")
    return fuzzy ? Msg("{} (md5, fuzzy match: call numbers are ignored)\n", label) : Msg("{} (md5)\n", label);
  if (mode == "tensor")
    return fuzzy ? Msg("{} (tensor, fuzzy match: call numbers are ignored)\n", label) : Msg("{} (tensor)\n", label);
  if (mode == "structure")
    return fuzzy ? Msg("{} (structure, fuzzy match: call numbers are ignored)\n", label)
                 : Msg("{} (structure)\n", label);
  return fuzzy ? Msg("{} (statistics, fuzzy match: call numbers are ignored)\n", label)
               : Msg("{} (statistics)\n", label);
}

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
  if (pair.rank) {
    json->Member("differing_rows", pair.rank->differing);
    json->Member("inherited_rows", pair.rank->inherited);
    json->Member("equal_to", pair.rank->equal_to);
  }
  json->Member("warnings", pair.warnings);
  json->Member("advisor", pair.advisor);
  json->Member("unmatched_files", pair.unmatched);
  if (!pair.mappings.empty()) json->Member("mapping_files", pair.mappings);
  json->Key("structure");
  pair.structure ? WriteStructure(json, *pair.structure) : json->Null();
  json->EndObject();
}

}  // namespace

namespace {

/// The item and what differs in it: "input.1 Norm differs by 12.3 %".
Message WhatDiffers(const FirstDifference& d) {
  const ItemDifference& by = d.difference;
  const std::string item = d.item.empty() ? std::string() : d.item.substr(1);
  const std::string target = SixDigits(by.target), golden = SixDigits(by.golden);
  const std::string percent = by.percent < 0 ? std::string() : fmt::format("{:.3g} %", by.percent);
  if (item.empty()) {
    const std::array forms = {
        Msg("values differ"),
        Msg("values differ by {}", percent),
        Msg("{} differs by {}", by.what, percent),
        Msg("shape {} against {}", target, golden),
        Msg("checksum {} against {}", target, golden),
        Msg("is not in the golden run"),
        Msg("is missing in the target"),
    };
    const auto form = std::ranges::find(forms, d.detail, &Message::English);
    return form == forms.end() ? Message(d.detail) : *form;
  }
  const std::array forms = {
      Msg("{} values differ", item),
      Msg("{} values differ by {}", item, percent),
      Msg("{} differs by {}", item + " " + by.what, percent),
      Msg("{} shape {} against {}", item, target, golden),
      Msg("{} checksum {} against {}", item, target, golden),
      Msg("{} Norm {} against {}", item, target, golden),
      Msg("{} Max {} against {}", item, target, golden),
      Msg("{} Min {} against {}", item, target, golden),
      Msg("{} Mean {} against {}", item, target, golden),
      Msg("{} is {} against {}", item, by.target, by.golden),
      Msg("{} is of {} against {}", item, by.target, by.golden),
      Msg("{} holds infinities, and statistics do not show where", item),
      Msg("{} has no partner of its kind in the golden run", item),
      Msg("{} is there in the golden run only", item),
  };
  // The finding keeps its English; the form that gives it says what of it are values.
  const std::string english = item + " " + d.detail;
  const auto form = std::ranges::find(forms, english, &Message::English);
  return form == forms.end() ? Message(english) : *form;
}

Message WithInputs(const FirstDifference& d) {
  const Message what = WhatDiffers(d);
  const bool op = d.kind == FirstDifference::Kind::kOp || d.kind == FirstDifference::Kind::kCommunication;
  if (!op || d.inputs.empty()) return what;
  constexpr std::string_view kAgree = "agree to ";
  return d.inputs.starts_with(kAgree) ? Msg("{}, inputs agree to {}", what, d.inputs.substr(kAgree.size()))
                                      : Msg("{}, inputs are equal", what);
}

/// Ranks without a partner, and not steps.
bool HasRank(const std::vector<std::string>& dirs) {
  return std::any_of(dirs.begin(), dirs.end(),
                     [](const std::string& dir) { return StartsWith(BaseName(dir), "rank"); });
}

}  // namespace

Message DifferenceLine(const FirstDifference& d) {
  const Message what = WithInputs(d);
  const bool function = !d.frame.empty() && !d.function.empty();
  const std::string at = d.frame.empty() || function ? d.name : d.name + " (" + d.frame + ")";
  const size_t dot = d.module.starts_with("Module.") ? 7 : d.module.starts_with("Cell.") ? 5 : 0;
  const std::string in = d.module.substr(dot);
  Message out;
  if (function) {
    out = d.module.empty() ? Msg("{} ({} in {}): {}", at, d.frame, d.function, what)
          : dot == 7       ? Msg("{} ({} in {}) in Module.{}: {}", at, d.frame, d.function, in, what)
          : dot == 5       ? Msg("{} ({} in {}) in Cell.{}: {}", at, d.frame, d.function, in, what)
                           : Msg("{} ({} in {}) in {}: {}", at, d.frame, d.function, in, what);
  } else {
    out = d.module.empty() ? Msg("{}: {}", at, what)
          : dot == 7       ? Msg("{} in Module.{}: {}", at, in, what)
          : dot == 5       ? Msg("{} in Cell.{}: {}", at, in, what)
                           : Msg("{} in {}: {}", at, in, what);
  }
  return OneLined(out);  // names come from the dumps
}

Message SummaryText(const CompareReport& report) {
  const bool values = !report.pairs.empty() && !report.pairs.front().structure;
  const Language language = LocaleLanguage();
  const bool differing = !report.ranks.empty();
  Message out;
  if (!differing) out = Message(values ? StoryText(report.story, language) : GapText(report.story.gaps, language));
  if (differing && !report.told) out = RanksAnswer(report);
  if (differing) out += RanksResult(report);
  if (!values && !out.empty()) out += Message("\n");
  for (const PairReport& pair : report.pairs) {
    if (differing) break;
    out += PairTitle(pair);
    for (const std::string& path : pair.paths) out += Msg("  result: {}\n", OneLine(path));
    if (!pair.advisor.empty()) out += Msg("  advice: {}\n", OneLine(pair.advisor));
    AppendUnmatched(pair, &out);
    if (!pair.structure) out += RulerLine(pair.differences.ruler);
    out += Msg("  rows: {} (old rule: {} pass, {} warning, {} error)\n", pair.counts.rows, pair.counts.pass,
               pair.counts.warning, pair.counts.error);
    for (const std::string& path : pair.mappings) out += Msg("  mapping: {}\n", OneLine(path));
    for (const std::string& path : pair.unmatched) out += Msg("    all of them: {}\n", OneLine(path));
    if (pair.structure) {
      out += Message("  ");
      out += StructureText(*pair.structure);
      continue;
    }
    AppendDifferences(pair, &out);
  }
  for (const std::string& path : report.diff_analyze)
    out += Msg("first ops beyond the thresholds: {}\n", OneLine(path));
  if (!report.mapping_path.empty()) {
    const SuggestedMapping& s = report.suggested;
    out += Msg(
        "suggested layer mapping: {}\n  partners by it: {} of {} calls, without it {}; check it, then give it as -lm\n",
        OneLine(report.mapping_path), s.matched_with, s.calls, s.matched_without);
  }
  if (report.divergence.found) {
    if (!report.divergence_path.empty()) out += Msg("  details: {}\n", OneLine(report.divergence_path));
    if (report.repro) out += Msg("  repro: {}\n", ReproLine(*report.repro));
  }
  AppendReplays(report, &out);
  for (const auto& [label, status] : report.failures) {
    out += Message(OneLine(label) + "\n");
    out += Msg("  not compared: {}\n", OneLined(status.text()));
  }
  for (const std::string& dir : report.target_only_dirs) out += Msg("no partner in the golden run: {}\n", OneLine(dir));
  for (const std::string& dir : report.golden_only_dirs) out += Msg("no partner in the target run: {}\n", OneLine(dir));
  if (HasRank(report.target_only_dirs) != HasRank(report.golden_only_dirs)) {
    out += Msg("  ranks are paired by number; where the runs divide one model otherwise, merge them: {}\n",
               "msprobe graph_visualize --rank_size N M --tp N M --pp N M");
  }
  if (!report.html.empty()) out += Msg("report: {}\n", OneLine(report.html));
  // The first line has scrolled away.
  if (values && report.pairs.size() > kNoScroll) out += Message(StoryHeadline(report.story, language) + "\n");
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
  if (!report.ranks.empty()) {
    json.Member("differing_files", report.differing);
    json.Member("ranks_file", report.ranks);
  }
  json.RawMember("verdict", StoryJson(report.story));
  WriteConclusion(Conclude(JudgementsOf(report.story, Language::kEnglish)), &json);
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
