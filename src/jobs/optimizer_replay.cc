#include "jobs/optimizer_replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "jobs/checkpoint_steps.h"
#include "json/writer.h"
#include "judgement/judgement_json.h"

namespace msprobe {
namespace {

constexpr size_t kMostNamed = 5;

WeightCheck SumOf(const OptimizerReplay& r) {
  WeightCheck out;
  for (const ReplayedWeight& w : r.weights) out.Add(w.check);
  return out;
}

void WriteReplay(const OptimizerReplay& r, JsonWriter* json) {
  json->BeginObject();
  json->Member("path", r.path);
  json->Member("optimizer", r.optimizer);
  json->Member("rule", OptimizerKindName(r.kind));
  json->Member("clean", r.clean());
  json->ArrayMember("steps", r.steps, [&](const StepNorm& s) {
    json->BeginObject();
    json->Member("step", s.step);
    json->Member("gradient_norm", s.norm);
    json->Member("lr", s.lr);
    json->EndObject();
  });
  json->ArrayMember("findings", r.findings, [&](const TermFinding& f) {
    json->BeginObject();
    json->Member("term", f.term);
    json->Member("says", f.text);
    json->Member("scope", f.scope);
    json->Member("weights", f.weights);
    json->Member("or", f.others);
    json->EndObject();
  });
  json->ArrayMember("weights", r.weights, [&](const ReplayedWeight& w) {
    json->BeginObject();
    json->Member("name", w.name);
    json->Member("dtype", DTypeName(w.dtype));
    json->Member("shape", w.shape);
    json->Member("fine", w.fine);
    json->Member("elements", w.check.elements);
    json->Member("off", w.check.off());
    json->Member("max_ulp", w.check.worst_ulp);
    json->Member("lost_updates", w.check.lost);
    json->EndObject();
  });
  json->Member("notes", r.notes);
  json->Member("unjudged", r.unjudged);
  json->Member("cautions", r.cautions);
  json->EndObject();
}

Message ReplayText(std::string_view side, const OptimizerReplay& r) {
  const WeightCheck sum = SumOf(r);
  Message out = Msg("{} {}: {}, {} steps, {} weights\n", side, OneLine(r.path), OneLine(r.optimizer), r.steps.size(),
                    r.weights.size());
  for (const Message& note : r.notes) out += Msg("note: {}\n", note);
  out += Msg("  at most {:.4g} ulp from float64\n", sum.worst_ulp);
  if (sum.stochastic > 0 && r.clean() && r.unjudged.empty()) {
    out +=
        Msg("  {} updates of less than half an ulp moved their weight: they are rounded at random\n", sum.stochastic);
  } else if (sum.lost > 0 && sum.stochastic == 0) {
    out += Msg("  {} of {} updates are less than half an ulp of the weight and are lost\n", sum.lost, sum.elements);
  }
  for (const TermFinding& f : r.findings) {
    out += Msg("  wrong term: {}\n    {}\n    scope: {}\n", f.term.empty() ? "unknown" : f.term, f.text, f.scope);
    for (size_t i = 0; i < std::min(f.weights.size(), kMostNamed); ++i) {
      out += Message("      " + OneLine(f.weights[i]) + "\n");
    }
    if (f.weights.size() > kMostNamed) out += Msg("      ... {} more\n", f.weights.size() - kMostNamed);
    if (!f.others.empty()) {
      out += Msg("    these steps are also explained by: {}; record more steps\n",
                 fmt::format("{}", fmt::join(f.others, ", ")));
    }
  }
  for (const Message& why : r.unjudged) out += Msg("  cannot say: {}\n", why);
  if (r.clean() && r.cautions.empty() && r.unjudged.empty()) out += Msg("  does what its hyperparameters say\n");
  return out;
}

void WritePair(const ReplayedPair& pair, JsonWriter* json) {
  json->Member("name", pair.name);
  json->Key("a");
  WriteReplay(pair.a, json);
  if (pair.b) {
    json->Key("b");
    WriteReplay(*pair.b, json);
  }
  json->ArrayMember("differences", pair.differences, [&](const RecordDifference& d) {
    json->BeginObject();
    json->Member("what", d.what);
    json->Member("says", d.text);
    json->EndObject();
  });
}

Message PairText(const ReplayedPair& pair) {
  Message out = ReplayText("A", pair.a);
  if (!pair.b) return out;
  out += ReplayText("B", *pair.b);
  if (pair.differences.empty()) out += Msg("A and B were told and given the same, and did the same\n");
  for (const RecordDifference& d : pair.differences) out += Msg("  {}: {}\n", d.what, d.text);
  return out;
}

/// "rank0/optimizer1" of both sides; where one side is an optimizer alone, it is that of the other.
struct RecordPaths {
  std::string name, a, b;
};

std::string PathOf(const std::string& record, const std::string& name) {
  return name.empty() ? record : JoinPath(record, name);
}

StatusOr<std::vector<RecordPaths>> PairPaths(const std::string& a, const std::string& b, std::vector<Message>* unread) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> of_a, OptimizersOfRecord(a));
  std::vector<RecordPaths> out;
  if (b.empty()) {
    for (const std::string& name : of_a) out.push_back({name, PathOf(a, name), {}});
    return out;
  }
  MSP_ASSIGN_OR_RETURN(std::vector<std::string> of_b, OptimizersOfRecord(b));
  if (of_a.size() == 1 && of_b.size() == 1) {
    out.push_back({of_a[0], PathOf(a, of_a[0]), PathOf(b, of_b[0])});
    return out;
  }
  for (const std::string& name : of_a) {
    const auto found = std::find(of_b.begin(), of_b.end(), name);
    if (found == of_b.end()) {
      unread->push_back(Msg("{} of {} has no partner on the other side", OneLine(name), OneLine(a)));
      continue;
    }
    out.push_back({name, PathOf(a, name), PathOf(b, name)});
    of_b.erase(found);
  }
  for (const std::string& name : of_b) {
    unread->push_back(Msg("{} of {} has no partner on the other side", OneLine(name), OneLine(b)));
  }
  if (!out.empty()) return out;
  return BadInput(Msg("{} and {} have no optimizer of one name: give the directories rank0/optimizer0 of both",
                      OneLine(a), OneLine(b)));
}

StatusOr<ReplayedPair> ReplayPair(const RecordPaths& paths, const OptimizerOverrides& overrides) {
  ReplayedPair out{.name = paths.name, .a = {}, .b = {}, .differences = {}};
  MSP_ASSIGN_OR_RETURN(const OptimizerRecord a, ReadOptimizerRecord(paths.a, overrides));
  MSP_ASSIGN_OR_RETURN(out.a, ReplayOptimizer(a));
  if (paths.b.empty()) return out;
  MSP_ASSIGN_OR_RETURN(const OptimizerRecord b, ReadOptimizerRecord(paths.b, overrides));
  MSP_ASSIGN_OR_RETURN(out.b, ReplayOptimizer(b));
  MSP_ASSIGN_OR_RETURN(out.differences, CompareRecords(a, b));
  return out;
}

/// All optimizers of the records. One that cannot be judged does not hide the others.
Status ReplayAll(const OptimizerReplayRequest& request, OptimizerReplayReport* out) {
  MSP_ASSIGN_OR_RETURN(const std::vector<RecordPaths> all, PairPaths(request.a, request.b, &out->unread));
  Status first = OkStatus();
  for (const RecordPaths& paths : all) {
    auto pair = ReplayPair(paths, request.overrides);
    if (pair.ok()) {
      out->pairs.push_back(std::move(*pair));
      continue;
    }
    if (pair.status().code() != Code::kBadInput) return pair.status();
    if (first.ok()) first = pair.status();
    out->unread.push_back(pair.status().text());
  }
  return out->pairs.empty() ? first : OkStatus();
}

}  // namespace

bool IsFinding(const RecordDifference& d) {
  for (const std::string_view given : {"weight_before", "state_before", "gradient", "weight_after"}) {
    if (d.what == given) return d.factor != 1;
  }
  return true;
}

bool ReplayedPair::clean() const {
  return a.clean() && (!b || b->clean()) && std::none_of(differences.begin(), differences.end(), IsFinding);
}

bool OptimizerReplayReport::clean() const {
  return std::all_of(pairs.begin(), pairs.end(), [](const ReplayedPair& p) { return p.clean(); });
}

bool OptimizerReplayReport::undecided() const {
  return !unread.empty() || std::any_of(pairs.begin(), pairs.end(), [](const ReplayedPair& p) {
    return !p.a.unjudged.empty() || (p.b && !p.b->unjudged.empty());
  });
}

std::vector<Judgement> JudgementsOf(const OptimizerReplayReport& report) {
  std::vector<Judgement> out;
  const auto add = [&](JudgementKind kind, Message about, const Message& evidence) {
    Judgement& one = out.emplace_back();
    one.kind = kind;
    one.about = std::move(about);
    if (!evidence.empty()) one.evidence.push_back(evidence);
    one.basis = Msg("the update in float64");
  };
  for (const ReplayedPair& pair : report.pairs) {
    for (const OptimizerReplay* side : {&pair.a, pair.b ? &*pair.b : nullptr}) {
      if (!side) continue;
      const Message name(OneLine(side->path));
      const bool any = SumOf(*side).elements > 0;
      add(any ? JudgementKind::kRoundOff : JudgementKind::kNotSeen, name,
          any ? Message() : Msg("no weight was computed"));
      for (const TermFinding& finding : side->findings) add(JudgementKind::kBug, name, finding.text);
      for (const Message& why : side->unjudged) add(JudgementKind::kCannotSay, name, why);
      for (const Message& caution : side->cautions) add(JudgementKind::kAskPerson, name, caution);
    }
    for (const RecordDifference& d : pair.differences) {
      if (IsFinding(d)) add(JudgementKind::kSuspicious, Message(d.what), d.text);
    }
  }
  for (const Message& why : report.unread) add(JudgementKind::kNotSeen, Msg("other optimizers"), why);
  return out;
}

StatusOr<OptimizerReplayReport> ReplayOptimizerRecords(const OptimizerReplayRequest& request) {
  OptimizerReplayReport out;
  if (request.gradients.empty()) {
    MSP_RETURN_IF_ERROR(ReplayAll(request, &out));
  } else {
    if (request.b.empty()) {
      return UsageError(
          Msg("--grads needs two checkpoints, before and after the step: see 'msprobe optimizer_replay --help'"));
    }
    MSP_ASSIGN_OR_RETURN(const OptimizerRecord step,
                         ReadCheckpointStep({request.a, request.b, request.gradients}, request.overrides));
    MSP_ASSIGN_OR_RETURN(out.pairs.emplace_back().a, ReplayOptimizer(step));
  }
  if (request.output.empty()) return out;
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(request.output));
  MSP_RETURN_IF_ERROR(file.Write(OptimizerReplayJson(out)));
  MSP_RETURN_IF_ERROR(file.Commit());
  return out;
}

std::string OptimizerReplayJson(const OptimizerReplayReport& report) {
  JsonWriter json(JsonStyle{.indent = 1, .comma = ",", .ascii = false, .not_finite = JsonStyle::NotFinite::kText});
  json.BeginObject();
  json.Member("clean", report.clean());
  WritePair(report.pairs.front(), &json);
  json.ArrayMember("more", std::span(report.pairs).subspan(1), [&](const ReplayedPair& pair) {
    json.BeginObject();
    WritePair(pair, &json);
    json.EndObject();
  });
  json.Member("unread", report.unread);
  WriteConclusion(Conclude(JudgementsOf(report)), &json);
  json.EndObject();
  return json.Take() + "\n";
}

Message OptimizerReplayText(const OptimizerReplayReport& report) {
  Message out;
  size_t fine = 0;
  for (const ReplayedPair& pair : report.pairs) {
    out += PairText(pair);
    fine += pair.clean() && pair.a.unjudged.empty() && (!pair.b || pair.b->unjudged.empty());
  }
  for (const Message& why : report.unread) out += Msg("  not judged: {}\n", why);
  const size_t all = report.pairs.size() + report.unread.size();
  if (all > 1) out += Msg("{} of {} optimizers do what their hyperparameters say\n", fine, all);
  return out;
}

}  // namespace msprobe
