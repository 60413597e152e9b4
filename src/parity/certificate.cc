#include "parity/certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "json/writer.h"
#include "judgement/judgement_json.h"

namespace msprobe {
namespace {

constexpr size_t kShown = 6;

std::string_view NameOf(PartsKind kind) {
  static constexpr std::array<std::string_view, 5> kNames{"bit_equal", "equal", "summands", "differs", "not_compared"};
  return kNames[static_cast<size_t>(kind)];
}

struct ResultCounts {
  size_t all = 0, bits = 0, rounding = 0, sums = 0, differ = 0;
};

ResultCounts CountsOf(const ParityResult& result, std::string_view phase) {
  ResultCounts out;
  for (const ParityRow& row : result.rows) {
    if (row.phase != phase) continue;
    ++out.all;
    out.bits += row.kind == PartsKind::kBitEqual;
    out.rounding += row.kind == PartsKind::kEqual;
    out.sums += row.kind == PartsKind::kSum;
    out.differ += row.kind == PartsKind::kDiffers;
  }
  return out;
}

std::string Few(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) out += (i > 0 ? ", " : "") + names[i];
  return names.size() > kShown ? out + fmt::format(", ... ({})", names.size()) : out;
}

/// Not compared, though the optimizer's step cannot be certified without them.
std::vector<std::string> LeftOut(const ParityResult& result, std::string_view phase) {
  std::vector<std::string> out;
  for (const auto& [why, names] : result.not_compared) {
    for (const std::string& name : names) {
      if (name.starts_with(std::string(phase) + " ")) out.push_back(name);
    }
  }
  return out;
}

std::string AxesText(const ParityRun& run) {
  std::map<std::string, std::set<std::vector<int>>> groups;
  for (const ParityRank& rank : run) {
    for (const auto& [axis, ranks] : rank.axes) {
      if (ranks.size() > 1) groups[axis].insert(ranks);
    }
  }
  std::string out;
  for (const auto& [axis, all] : groups) {
    out += (out.empty() ? "" : "; ") + axis;
    for (const std::vector<int>& one : all) out += " " + RanksText(one);
  }
  return out;
}

}  // namespace

void ParityCertificate::Describe(const ParityRuns& runs) {
  ranks = runs.ranks.size();
  axes = AxesText(runs.ranks);
  for (const ParityRank& rank : runs.ranks) {
    steps = std::max(steps, static_cast<size_t>(rank.steps));
    python = rank.python, torch = rank.torch, engine = rank.engine;
  }
  if (runs.reference.empty()) return;
  const auto found = runs.reference.front().texts.find({0, "weights"});
  if (found != runs.reference.front().texts.end()) weights = found->second.front();
}

bool ParityCertificate::equal() const {
  const JudgementKind kind = Conclude(Judgements()).kind;
  return kind == JudgementKind::kBitEqual || kind == JudgementKind::kRoundOff;
}

std::vector<Judgement> ParityCertificate::Judgements() const {
  std::vector<Judgement> out;
  if (result.cannot_say) {
    Judgement& one = out.emplace_back();
    one.kind = JudgementKind::kCannotSay, one.about = Msg("the two runs"), one.evidence.push_back(*result.cannot_say);
    return out;
  }
  for (const ParityFinding& finding : result.findings) {
    Judgement& one = out.emplace_back();
    one.kind = out.size() == 1 || finding.apart ? JudgementKind::kBug : JudgementKind::kInherited;
    one.about = finding.About();
    one.figure = finding.bound > 0 ? std::optional(finding.error / finding.bound) : std::nullopt;
    one.evidence.push_back(finding.cause.text);
    one.basis = finding.law ? Msg("what has to hold between ranks") : Msg("rounding of this model and these data");
  }
  if (laws_only) {
    Judgement& one = out.emplace_back();
    const ParityResult::Laws& laws = result.laws;
    one.about = Msg("{} replicas, {} shards and {} dropouts", laws.replicas, laws.shards, laws.dropouts);
    one.kind = laws.replicas + laws.shards + laws.dropouts > 0 ? JudgementKind::kBitEqual : JudgementKind::kNotSeen;
    return out;
  }
  for (const std::string_view phase : kParityPhases) {
    const ResultCounts counts = CountsOf(result, phase);
    const std::vector<std::string> left = LeftOut(result, phase);
    const bool needed = phase == "gradient" || phase == "updated";
    if (counts.all == 0 && !needed) continue;
    Judgement& one = out.emplace_back();
    one.about = PhaseWords(phase);
    one.basis = Msg("rounding of this model and these data");
    one.kind = counts.all == 0             ? JudgementKind::kNotSeen
               : counts.bits == counts.all ? JudgementKind::kBitEqual
                                           : JudgementKind::kRoundOff;
    if (counts.differ > 0) one.kind = JudgementKind::kInherited;
    if (needed && !left.empty()) one.not_seen.push_back(Message(Few(left)));
  }
  return out;
}

Message ParityCertificate::Verdict() const {
  if (result.cannot_say) return Msg("cannot say: {}", *result.cannot_say);
  if (!result.findings.empty()) return Msg("not equal: {}", result.findings.front().Sentence());
  if (laws_only && !equal()) return Msg("cannot say: no tensor is known to be a replica or a shard");
  if (laws_only) {
    const ParityResult::Laws& laws = result.laws;
    Message out = Msg("no law is broken on {} ranks in {} steps: {} replicas, {} shards and {} dropouts were compared",
                      ranks, steps, laws.replicas, laws.shards, laws.dropouts);
    if (laws.unknown > 0) out += Msg(", {} parameters were not: nothing says what they are", laws.unknown);
    return out;
  }
  if (!equal()) return Msg("cannot say: gradients or parameters after the step were not all compared");
  size_t all = 0, bits = 0;
  for (const ParityRow& row : result.rows) ++all, bits += row.kind == PartsKind::kBitEqual;
  return Msg(
      "equal up to rounding through the optimizer step: {} tensors of {} ranks in {} steps, {} of them bit-equal", all,
      ranks, steps, bits);
}

Message ParityCertificate::Text() const {
  Message out = Msg("{}\n", Verdict());
  if (!axes.empty()) out += Msg("  ranks: {}\n", Message(axes));
  if (!laws_only) {
    out += weights == "given" ? Msg("  weights: those of the ranks, given to the reference\n")
                              : Msg("  weights: as both runs make them\n");
  }
  for (const std::string_view phase : kParityPhases) {
    const ResultCounts c = CountsOf(result, phase);
    if (c.all == 0) continue;
    out += Msg("  {}: {} compared, {} bit-equal, {} within rounding, {} summands, {} differ\n", PhaseWords(phase),
               c.all, c.bits, c.rounding, c.sums, c.differ);
  }
  for (const ParityFinding& finding : result.findings) {
    if (finding.apart) out += Msg("  also: {}\n", finding.Sentence());
  }
  if (result.inherited > 0) out += Msg("  behind it {} more differ: parity.json lists them\n", result.inherited);
  for (const Message& note : result.notes) out += Msg("  note: {}\n", note);
  for (const auto& [why, names] : result.not_compared) {
    out += Msg("  not compared ({}): {}\n", KnownText(why), Message(Few(names)));
  }
  return out;
}

std::string ParityCertificate::Json() const {
  JsonWriter json(kJsonIndented);
  json.BeginObject();
  json.Member("kind", "parity");
  json.Member("equal", equal());
  json.Member("verdict", Verdict());
  json.Member("created", created);
  json.Member("command", command);
  json.Member("reference", reference_command);
  json.Member("msprobe", MSPROBE_VERSION);
  json.Member("python", python);
  json.Member("torch", torch);
  json.Member("engine", engine);
  json.Member("ranks", ranks);
  json.Member("steps", steps);
  json.Member("axes", axes);
  json.Member("weights", weights);
  WriteConclusion(Conclude(Judgements()), &json);
  json.ArrayMember("findings", result.findings, [&](const ParityFinding& f) {
    json.BeginObject();
    json.Member("step", f.step);
    json.Member("phase", f.phase);
    json.Member("name", f.name);
    json.Member("cause", NameOf(f.cause.kind));
    json.Member("text", f.cause.text);
    json.ArrayMember("ranks", f.cause.ranks, [&](int rank) { json.Int(rank); });
    json.Member("axis", f.cause.axis);
    json.Key("factor");
    f.cause.factor ? json.Number(*f.cause.factor) : json.Null();
    json.Member("error", f.error);
    json.Member("bound", f.bound);
    json.Member("law", f.law);
    json.Member("apart", f.apart);
    json.EndObject();
  });
  json.ObjectMember("not_compared", [&] {
    for (const auto& [why, names] : result.not_compared) {
      json.ArrayMember(why, names, [&](const std::string& name) { json.String(name); });
    }
  });
  json.ArrayMember("tensors", result.rows, [&](const ParityRow& row) {
    JsonWriter line;
    line.BeginObject();
    line.Member("step", row.step);
    line.Member("phase", row.phase);
    line.Member("name", row.name);
    line.Member("mapping", row.mapping);
    line.Member("result", NameOf(row.kind));
    line.Member("error", row.error);
    line.Member("bound", row.bound);
    line.EndObject();
    json.Raw(line.Take());
  });
  json.EndObject();
  return json.Take() + "\n";
}

std::string ParityCertificate::Markdown() const {
  std::string md = fmt::format("# {}\n\n{}.\n\n| | |\n|---|---|\n| ranks | `{}` |\n", equal() ? "Parity" : "No parity",
                               Verdict().English(), command);
  if (!laws_only) md += fmt::format("| reference | `{}` |\n", reference_command);
  md += fmt::format("| axes | {} |\n| versions | msprobe {}, Python {}, PyTorch {}, {} |\n\n", axes, MSPROBE_VERSION,
                    python, torch, engine);
  md += "| step | what | name | how it lies | result | error | bound |\n|---|---|---|---|---|---|---|\n";
  for (const ParityRow& row : result.rows) {
    md += fmt::format("| {} | {} | {} | {} | {} | {:.3g} | {:.3g} |\n", row.step, row.phase, row.name, row.mapping,
                      NameOf(row.kind), row.error, row.bound);
  }
  md += "\n## Not compared\n\n";
  for (const auto& [why, names] : result.not_compared) {
    for (const std::string& name : names) md += fmt::format("- {}: {}\n", name, why);
  }
  return md;
}

}  // namespace msprobe
