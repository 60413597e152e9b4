#include "jobs/optimizer_replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "jobs/checkpoint_steps.h"
#include "json/writer.h"
#include "judgement/judgement_json.h"

namespace msprobe {
namespace {

constexpr size_t kMostNamed = 5;

/// Rounding of what both sides were given is no finding: their weights and gradients come from two devices.
bool IsTold(const RecordDifference& d) {
  for (const std::string_view given : {"weight_before", "state_before", "gradient", "weight_after"}) {
    if (d.what == given) return d.text.English().find(" times ") != std::string::npos;
  }
  return true;
}

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

}  // namespace

bool OptimizerReplayReport::clean() const {
  return a.clean() && (!b || b->clean()) && std::none_of(differences.begin(), differences.end(), IsTold);
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
  for (const OptimizerReplay* side : {&report.a, report.b ? &*report.b : nullptr}) {
    if (!side) continue;
    const Message name(OneLine(side->path));
    const bool any = SumOf(*side).elements > 0;
    add(any ? JudgementKind::kRoundOff : JudgementKind::kNotSeen, name,
        any ? Message() : Msg("no weight was computed"));
    for (const TermFinding& finding : side->findings) add(JudgementKind::kBug, name, finding.text);
    for (const Message& why : side->unjudged) add(JudgementKind::kCannotSay, name, why);
    for (const Message& caution : side->cautions) add(JudgementKind::kAskPerson, name, caution);
  }
  for (const RecordDifference& d : report.differences) {
    if (IsTold(d)) add(JudgementKind::kSuspicious, Message(d.what), d.text);
  }
  return out;
}

StatusOr<OptimizerReplayReport> ReplayOptimizerRecords(const OptimizerReplayRequest& request) {
  OptimizerReplayReport out;
  const bool checkpoints = !request.gradients.empty();
  if (checkpoints && request.b.empty()) {
    return UsageError(
        Msg("--grads needs two checkpoints, before and after the step: see 'msprobe optimizer_replay --help'"));
  }
  MSP_ASSIGN_OR_RETURN(const OptimizerRecord a,
                       checkpoints ? ReadCheckpointStep({request.a, request.b, request.gradients}, request.overrides)
                                   : ReadOptimizerRecord(request.a, request.overrides));
  MSP_ASSIGN_OR_RETURN(out.a, ReplayOptimizer(a));
  if (!checkpoints && !request.b.empty()) {
    MSP_ASSIGN_OR_RETURN(const OptimizerRecord b, ReadOptimizerRecord(request.b, request.overrides));
    MSP_ASSIGN_OR_RETURN(out.b, ReplayOptimizer(b));
    MSP_ASSIGN_OR_RETURN(out.differences, CompareRecords(a, b));
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
  json.Key("a");
  WriteReplay(report.a, &json);
  if (report.b) {
    json.Key("b");
    WriteReplay(*report.b, &json);
  }
  WriteConclusion(Conclude(JudgementsOf(report)), &json);
  json.ArrayMember("differences", report.differences, [&](const RecordDifference& d) {
    json.BeginObject();
    json.Member("what", d.what);
    json.Member("says", d.text);
    json.EndObject();
  });
  json.EndObject();
  return json.Take() + "\n";
}

Message OptimizerReplayText(const OptimizerReplayReport& report) {
  Message out = ReplayText("A", report.a);
  if (!report.b) return out;
  out += ReplayText("B", *report.b);
  if (report.differences.empty()) out += Msg("A and B were told and given the same, and did the same\n");
  for (const RecordDifference& d : report.differences) out += Msg("  {}: {}\n", d.what, d.text);
  return out;
}

}  // namespace msprobe
