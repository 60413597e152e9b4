// The report for people and for programs.
#include <fmt/core.h>

#include <array>

#include "base/message.h"
#include "base/text.h"
#include "diagnose/overflow/overflow.h"
#include "json/writer.h"
#include "judgement/judgement_json.h"

namespace msprobe {
namespace {

using Kind = OverflowSource::Kind;
constexpr size_t kShownRanks = 8;

std::string_view KindName(Kind kind) {
  static constexpr std::array<std::string_view, 7> kNames{
      "op", "communication", "parameter", "input", "uninitialised", "missing_rank", "mask"};
  return kNames[static_cast<size_t>(kind)];
}

/// Without the dot in front.
std::string Bare(const std::string& item) { return item.empty() ? item : item.substr(1); }

Message Plural(size_t n, const char* one, const char* many) { return KnownText(n == 1 ? one : many); }

std::string RanksText(const std::vector<OverflowOp>& ops) {
  std::string out = ops.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ops.size() && i < kShownRanks; ++i)
    out.append(i ? ", " : "").append(std::to_string(ops[i].rank));
  return ops.size() > kShownRanks ? out + ", ..." : out;
}

/// One sentence: what happened at the op.
Message Why(const OverflowFinding& f) {
  const std::string item = Bare(f.item);
  switch (f.kind) {
    case Kind::kParameter: return Msg("{} is bad: {}", item, BadSinceMessage(f.since));
    case Kind::kInput: {
      const Message source = f.leaf_grad
                                 ? Msg("a parameter, or an op that is not recorded")
                                 : Msg("the data, memory that was never written, or an op that is not recorded");
      const Message why = Msg("{} holds NaN or infinities that no recorded op made: {}", item, source);
      return f.before.empty() ? why : Msg("{} (the last one before it of that shape is {})", why, f.before);
    }
    case Kind::kUninitialised:
      return f.reader.empty() ? Msg("it reads memory that was never written")
                              : Msg("it reads memory of {} that was never written", f.reader);
    case Kind::kMissingRank: return Msg("received from a rank whose dump is not here: add it");
    case Kind::kCommunication:
      return Contains(f.ops[0].name, "reduce")
                 ? Msg("what every rank puts in is clean, the result is not: the reduction itself overflows")
                 : Msg("what the sender gives is clean, what arrives is not");
    default: break;
  }
  if (!f.mask.empty() && f.mechanism.empty())
    return Msg("it turns the -inf of {} into NaN: a whole row may be masked", f.mask);
  if (f.constant) return Msg("an argument of it is NaN or infinite");
  if (!f.mechanism.empty()) return f.mechanism;
  return Msg("its inputs are clean, its output is not");
}

void Line(Message* out, std::string_view label, const Message& text) {
  const Message line = OneLined(text);
  const auto with = [&](std::string_view known) { return label == known; };
  // The labels of the program are words, those of the dump are names.
  *out += with("why")        ? Msg("  why        {}\n", line)
          : with("inside")   ? Msg("  inside     {}\n", line)
          : with("at")       ? Msg("  at         {}\n", line)
          : with("then")     ? Msg("  then       {}\n", line)
          : with("absorbed") ? Msg("  absorbed   {}\n", line)
          : with("reached")  ? Msg("  reached    {}\n", line)
          : with("warning")  ? Msg("  warning    {}\n", line)
                             : Msg("  {:<10} {}\n", label, line);
}

std::string PlaceText(const OverflowOp& op) { return op.frame + (op.function.empty() ? "" : " in " + op.function); }

void Consequences(Message* out, const OverflowFinding& f) {
  const bool one = f.carriers == 1;
  const Message carried = one ? Msg("{} op carried it on, {} absorbed it", f.carriers, f.absorbers)
                              : Msg("{} ops carried it on, {} absorbed it", f.carriers, f.absorbers);
  const Message gone =
      one ? Msg("{} op carried it on, {} absorbed it, nothing of it was left", f.carriers, f.absorbers)
          : Msg("{} ops carried it on, {} absorbed it, nothing of it was left", f.carriers, f.absorbers);
  Line(out, "then", f.absorbed ? gone : carried);
  if (!f.absorbed_at.empty()) Line(out, "absorbed", Msg("first by {}", f.absorbed_at[0].name));
  for (size_t i = 0; i < f.reached.size() && i < kShownRanks; ++i) {
    Line(out, i ? "" : "reached", Msg("rank {} through {}", f.reached[i].rank, f.reached[i].name));
  }
  if (f.reached.size() <= kShownRanks) return;
  const size_t more = f.reached.size() - kShownRanks;
  Line(out, "", more == 1 ? Msg("and {} more rank", more) : Msg("and {} more ranks", more));
}

void Near(Message* out, const std::vector<OverflowFinding::Near>& near) {
  for (size_t i = 0; i < near.size() && i < kShownRanks; ++i) {
    Line(out, i ? "" : "warning",
         Msg("{} on rank {} is within a factor {:.3g} of overflow", near[i].op.name + near[i].item, near[i].op.rank,
             near[i].margin));
  }
}

void FindingText(Message* out, const OverflowFinding& f) {
  const OverflowOp& op = f.ops[0];
  const std::string name = OneLine(op.name), ranks = RanksText(f.ops);
  *out += f.absorbed ? Msg("Absorbed: {} on {}\n", name, ranks) : Msg("Details: {} on {}\n", name, ranks);
  Line(out, "why", Why(f));
  if (!op.module.empty()) Line(out, "inside", Message(op.module));
  if (!op.frame.empty()) Line(out, "at", Message(PlaceText(op)));
  if (f.kind == Kind::kParameter) Line(out, f.item.substr(f.item.find_last_of('.') + 1), Message(f.item_text));
  for (const auto& [item, text] : f.inputs) {
    if (f.kind != Kind::kParameter || item != f.item) Line(out, Bare(item), Message(text));
  }
  for (const auto& [item, text] : f.outputs) Line(out, Bare(item), Message(text));
  Near(out, f.near);
  Consequences(out, f);
}

/// How far the older tool gets.
void Searching(Message* out, OverflowReport::Phase phase) {
  *out += Msg("Start searching anomaly node before communication.\n");
  if (phase != OverflowReport::Phase::kBefore) *out += Msg("Start searching anomaly node during communication.\n");
  if (phase == OverflowReport::Phase::kAfter) *out += Msg("Start searching anomaly node after communication.\n");
}

void OpJson(JsonWriter* json, const OverflowOp& op) {
  json->BeginObject();
  json->Member("rank", op.rank);
  json->Member("op", op.name);
  if (!op.module.empty()) json->Member("module", op.module);
  if (!op.frame.empty()) json->Member("line", op.frame);
  if (!op.function.empty()) json->Member("function", op.function);
  json->EndObject();
}

void OpsJson(JsonWriter* json, std::string_view key, const std::vector<OverflowOp>& ops) {
  json->Key(key);
  json->BeginArray();
  for (const OverflowOp& op : ops) OpJson(json, op);
  json->EndArray();
}

void ItemsJson(JsonWriter* json, std::string_view key, const std::vector<std::pair<std::string, std::string>>& items) {
  json->Key(key);
  json->BeginObject();
  for (const auto& [item, text] : items) json->Member(Bare(item), text);
  json->EndObject();
}

void NearJson(JsonWriter* json, std::string_view key, const std::vector<OverflowFinding::Near>& near) {
  json->Key(key);
  json->BeginArray();
  for (const auto& n : near) {
    json->BeginObject();
    json->Member("rank", n.op.rank);
    json->Member("op", n.op.name);
    json->Member("item", Bare(n.item));
    json->Member("margin", n.margin);
    json->EndObject();
  }
  json->EndArray();
}

void FindingJson(JsonWriter* json, const OverflowFinding& f) {
  json->BeginObject();
  json->Member("kind", KindName(f.kind));
  OpsJson(json, "ops", f.ops);
  json->Member("why", Why(f));
  if (!f.reader.empty()) json->Member("other_op", f.reader);
  if (!f.item.empty()) json->Member("item", Bare(f.item));
  if (!f.item_text.empty()) json->Member("value", f.item_text);
  if (!f.mask.empty()) json->Member("mask", f.mask);
  if (!f.before.empty()) json->Member("last_of_that_shape", f.before);
  ItemsJson(json, "inputs", f.inputs);
  ItemsJson(json, "outputs", f.outputs);
  NearJson(json, "near_overflow", f.near);
  json->Member("carriers", f.carriers);
  json->Member("absorbers", f.absorbers);
  json->Member("absorbed", f.absorbed);
  OpsJson(json, "absorbed_at", f.absorbed_at);
  OpsJson(json, "reached", f.reached);
  json->Key("links");
  json->BeginObject();
  json->Member("same_tensor", f.by_identity);
  json->Member("same_statistics", f.by_statistics);
  json->Member("same_shape", f.by_shape);
  json->Member("by_order", f.by_order);
  json->EndObject();
  json->EndObject();
}

}  // namespace

Message OverflowText(const OverflowReport& report, const std::string& told, const std::string& file,
                     bool earlier_form) {
  const Message verdict(told);
  // What was not seen stands first.
  Message out = report.gaps.empty() ? Message() : verdict;
  const bool nothing = report.first.empty();
  if (earlier_form) Searching(&out, nothing ? OverflowReport::Phase::kAfter : report.phase);
  if (nothing) {
    Near(&out, report.near);
    if (report.gaps.empty() && report.left_out > 0) out += verdict;
    const Message looked =
        Msg("{} {}, {} {} looked at: no op gives NaN or an infinity", report.steps,
            Plural(report.steps, "step", "steps"), report.ranks, Plural(report.ranks, "rank", "ranks"));
    out += report.masks == 0 ? Msg("{}\n", looked)
                             : Msg("{}; {}\n", looked,
                                   report.masks == 1 ? Msg("{} source of -inf are masks", report.masks)
                                                     : Msg("{} sources of -inf are masks", report.masks));
    out += Msg("Cannot find any anomaly node, no need to generate analyze file.\n");
    return out;
  }
  if (!report.step.empty()) {
    const Message place =
        report.ranks == 1 ? Message(report.step + ", 1 rank") : Msg("{}, {} ranks", report.step, report.ranks);
    const size_t before = report.steps - 1;
    if (report.steps > 1 && !report.first[0].absorbed) {
      out += Msg("{}; {}\n", place,
                 before == 1 ? Msg("the step before is clean") : Msg("the {} steps before are clean", before));
    } else {
      out += Msg("{}\n", place);
    }
  }
  if (report.gaps.empty()) out += verdict;
  for (const OverflowFinding& f : report.first) FindingText(&out, f);
  for (const OverflowFinding& f : report.absorbed) FindingText(&out, f);
  out += Msg("The analyze result is saved in: {}\n", OneLine(file));
  return out;
}

std::string OverflowJson(const OverflowReport& report, const std::string& verdict, const Conclusion& conclusion,
                         const std::string& file) {
  JsonWriter json;
  json.BeginObject();
  json.Member("input", report.input);
  json.Member("step", report.step);
  json.Member("steps", report.steps);
  json.Member("ranks", report.ranks);
  json.Member("found", !report.first.empty());
  if (!verdict.empty()) json.RawMember("verdict", verdict);
  WriteConclusion(conclusion, &json);
  for (const auto& [key, list] : {std::pair("first", &report.first), std::pair("absorbed", &report.absorbed)}) {
    json.Key(key);
    json.BeginArray();
    for (const OverflowFinding& f : *list) FindingJson(&json, f);
    json.EndArray();
  }
  json.Member("masks", report.masks);
  NearJson(&json, "near_overflow", report.near);
  json.Member("warnings", report.warnings);
  json.Member("result_file", file);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace msprobe
