#include "jobs/curves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "curves/means.h"
#include "curves/read_curves.h"
#include "json/writer.h"
#include "judgement/judgement_json.h"

namespace msprobe {
namespace {

constexpr JsonStyle kCurvesStyle{.indent = 1, .comma = ",", .ascii = false, .not_finite = JsonStyle::NotFinite::kText};

std::string StepsText(const Curve& c) {
  return c.empty() ? "none" : fmt::format("{}..{}", c.steps.front(), c.steps.back());
}

void NoteRun(const RunCurves& run, std::vector<Message>* notes) {
  for (const Message& note : run.notes) notes->push_back(Msg("{}: {}", OneLine(run.path), note));
}

/// What was there and is not compared, so that nobody takes it for equal.
void NoteNotCompared(const CurvesResult& result, std::vector<Message>* notes) {
  constexpr size_t kMostNamed = 12;
  for (const CurveKind kind : kCurveKinds) {
    const bool a = !result.a.of(kind).empty(), b = !result.b.of(kind).empty();
    if ((a || b) && !result.Find(kind)) {
      notes->push_back(
          a && b ? Msg("the {} of both have no step in common and are not compared", KnownText(CurveKindText(kind)))
                 : Msg("only {} has a {}: it is not compared", a ? "A" : "B", KnownText(CurveKindText(kind))));
    }
  }
  std::vector<std::string> both;
  for (const std::string& name : result.a.others) {
    const auto& others = result.b.others;
    if (std::find(others.begin(), others.end(), name) != others.end()) both.push_back(OneLine(name));
  }
  const bool more = both.size() > kMostNamed;
  if (more) both.resize(kMostNamed);
  if (!both.empty()) {
    notes->push_back(Msg("both have these too, which are not compared: {}{}", fmt::format("{}", fmt::join(both, ", ")),
                         more ? ", ..." : ""));
  }
}

Status CompareKind(CurveKind kind, const CurvesRequest& request, CurvesResult* out) {
  const Curve &a = out->a.of(kind), &b = out->b.of(kind);
  if (a.empty() || b.empty()) return OkStatus();
  ComparedCurve compared;
  compared.kind = kind;
  compared.pair = PairCurves(a, b, request.shift);
  if (compared.pair.size() == 0) {
    if (kind != CurveKind::kLoss) return OkStatus();
    return BadInput(
        Msg("{} has steps {}, {} has {}: no step in common; give runs of the same steps, or shift B with --shift",
            OneLine(request.a), StepsText(a), OneLine(request.b), StepsText(b)));
  }
  if (kind == CurveKind::kLoss && (a.size() != compared.pair.size() || b.size() != compared.pair.size())) {
    out->notes.push_back(
        Msg("{} steps in common are compared: A has {}, B {}", compared.pair.size(), a.size(), b.size()));
  }
  compared.difference = CompareCurves(compared.pair);
  std::vector<const Curve*> golden{&a};
  for (const RunCurves& run : out->more_a) {
    if (!run.of(kind).empty()) golden.push_back(&run.of(kind));
  }
  if (golden.size() > 1 && kind != CurveKind::kLearningRate) {
    MSP_ASSIGN_OR_RETURN(compared.band, MakeBand(golden));
    compared.check = CheckBand(*compared.band, compared.pair);
    if (kind == CurveKind::kLoss && compared.check.compared < compared.pair.size()) {
      out->notes.push_back(Msg("the golden band covers {} of {} steps: its runs are shorter", compared.check.compared,
                               compared.pair.size()));
    }
  }
  out->curves.push_back(std::move(compared));
  return OkStatus();
}

void WriteCompared(const ComparedCurve& c, JsonWriter* json) {
  const CurveDifference& d = c.difference;
  json->BeginObject();
  json->Member("quantity", CurveKindText(c.kind));
  json->Member("steps", d.count);
  json->Member("first_step", d.first_step);
  json->Member("last_step", d.last_step);
  json->Member("first_difference", d.first);
  json->Member("mean_difference", d.mean);
  json->Member("mean_abs", d.mean_abs);
  json->Member("max_abs", d.max_abs);
  json->Member("max_step", d.max_step);
  json->Member("mean_relative", d.mean_relative);
  json->Member("max_relative", d.max_relative);
  json->Member("positive", d.positive);
  json->Member("negative", d.negative);
  json->Member("drift", d.drift);
  json->Member("first_apart", d.first_apart);
  json->Member("not_finite_a", d.bad_a);
  json->Member("not_finite_b", d.bad_b);
  json->ObjectMember("zero_axis", [&] {
    json->Member("verdict", ZeroAxisText(d.zero.verdict));
    json->Member("independent_steps", d.zero.independent);
    json->Member("t", d.zero.t);
    json->Member("limit", d.zero.limit);
  });
  if (c.band) {
    json->ObjectMember("golden_band", [&] {
      json->Member("construction", BandConstructionText(c.band->construction));
      json->Member("runs", c.band->runs);
      json->Member("largest_half_width", *std::max_element(c.band->half_widths.begin(), c.band->half_widths.end()));
      json->Member("runs_covered", c.band->runs_covered);
      json->Member("steps_outside", c.check.outside);
      json->Member("steps_compared", c.check.compared);
      json->Member("first_outside", c.check.first_outside);
      json->Member("worst_ratio", c.check.worst_ratio);
    });
  }
  json->EndObject();
}

Status WriteCurveFile(const std::string& path, const std::string& text) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(text));
  return file.Commit();
}

}  // namespace

const ComparedCurve* CurvesResult::Find(CurveKind kind) const {
  for (const ComparedCurve& c : curves) {
    if (c.kind == kind) return &c;
  }
  return nullptr;
}

StatusOr<CurvesResult> CompareCurveFiles(const CurvesRequest& request) {
  CurvesResult out;
  MSP_ASSIGN_OR_RETURN(out.a, ReadCurves(request.a, request.names));
  MSP_ASSIGN_OR_RETURN(out.b, ReadCurves(request.b, request.names));
  for (const std::string& path : request.more_a) {
    MSP_ASSIGN_OR_RETURN(RunCurves run, ReadCurves(path, request.names));
    out.more_a.push_back(std::move(run));
  }
  std::vector<RunCurves*> runs{&out.a, &out.b};
  for (RunCurves& run : out.more_a) runs.push_back(&run);
  if (request.shift == 0) AverageAlike(runs);
  for (const RunCurves* run : runs) NoteRun(*run, &out.notes);
  for (const CurveKind kind : kCurveKinds) MSP_RETURN_IF_ERROR(CompareKind(kind, request, &out));
  if (!out.Find(CurveKind::kLoss) && !out.Find(CurveKind::kGradNorm)) {
    return BadInput(Msg("{} and {} have no quantity in common: give two files with a loss", OneLine(request.a),
                        OneLine(request.b)));
  }
  NoteNotCompared(out, &out.notes);
  out.judgement = JudgeCurves(out.curves);
  if (request.output.empty()) return out;
  MSP_RETURN_IF_ERROR(MakeOutputDir(request.output));
  const std::string page = JoinPath(request.output, "curves.html");
  out.files = {JoinPath(request.output, "curves.json")};
  MSP_RETURN_IF_ERROR(WriteCurveFile(out.files[0], CurvesJson(out)));
  MSP_ASSIGN_OR_RETURN(const bool written, WriteDocument(CurvesDocument(out), page));
  if (written) out.files.push_back(page);
  return out;
}

std::string CurvesJson(const CurvesResult& result) {
  JsonWriter json(kCurvesStyle);
  json.BeginObject();
  json.Member("verdict", CurveVerdictName(result.judgement.verdict));
  json.Member("fine", result.fine());
  json.Member("step", result.judgement.step);
  std::vector<std::pair<std::string_view, const RunCurves*>> runs{{"A", &result.a}, {"B", &result.b}};
  for (const RunCurves& run : result.more_a) runs.emplace_back("A", &run);
  json.ArrayMember("runs", runs, [&](const auto& side) {
    json.BeginObject();
    json.Member("side", side.first);
    json.Member("path", side.second->path);
    json.Member("format", side.second->format);
    for (const CurveKind kind : kCurveKinds) json.Member(CurveKindText(kind), side.second->of(kind).size());
    json.EndObject();
  });
  json.ArrayMember("rules", result.judgement.rules, [&](const CurveRule& rule) {
    json.BeginObject();
    json.Member("rule", rule.id);
    json.Member("verdict", RuleVerdictName(rule.verdict));
    json.Member("says", rule.rule);
    json.Member("found", rule.text);
    json.EndObject();
  });
  json.ArrayMember("curves", result.curves, [&](const ComparedCurve& c) { WriteCompared(c, &json); });
  json.Member("notes", result.notes);
  WriteConclusion(Conclude(JudgementsOf(result.judgement)), &json);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace msprobe
