// The report for people and for programs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "base/words/times_text.h"
#include "json/writer.h"
#include "judgement/judgement_json.h"
#include "lowp/low_precision.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

constexpr size_t kShownLayers = 8, kShownNames = 3;
constexpr double kManyZeros = 0.05;  // of an operand's elements

double ShareOf(uint64_t part, uint64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/// In the rounding of bfloat16, which is what a layer has otherwise.
double UnitsOf(double error) { return error / InfoOf(DType::kBFloat16).unit(); }

std::string PlaceOf(const LowPrecisionReport& report, const LowPrecisionLayer& layer) {
  const bool ranks =
      std::any_of(report.layers.begin(), report.layers.end(), [&](const auto& l) { return l.rank != layer.rank; });
  return OneLine(layer.layer) + (ranks ? fmt::format(" (rank {})", layer.rank) : "");
}

size_t CountOf(const LowPrecisionReport& report, size_t plan, LayerVerdict verdict) {
  return static_cast<size_t>(std::count_if(report.layers.begin(), report.layers.end(),
                                           [&](const auto& layer) { return VerdictOf(layer, plan) == verdict; }));
}

std::string_view NameOf(LayerVerdict verdict) {
  static constexpr std::array<std::string_view, 3> kNames{"keeps", "loses", "not_measured"};
  return kNames[static_cast<size_t>(verdict)];
}

struct Operand {
  Message name;
  const StoredCounts* counts;
};
std::array<Operand, 3> OperandsOf(const OpLoss& loss) {
  return {Operand{Msg("inputs"), &loss.input}, Operand{Msg("weights"), &loss.weight},
          Operand{Msg("gradients"), &loss.gradient}};
}

std::string Names(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kShownNames); ++i) out.append(i ? ", " : "").append(OneLine(names[i]));
  return names.size() > kShownNames ? out + ", ..." : out;
}

/// What the plan as a whole does, in one sentence.
Message PlanText(const LowPrecisionReport& report, size_t plan) {
  const size_t keeps = CountOf(report, plan, LayerVerdict::kKeeps), loses = CountOf(report, plan, LayerVerdict::kLoses);
  if (loses == 0) return Msg("{} of {} layers lose no more than its rounding", keeps, keeps + loses);
  return Msg("{} of {} layers lose more than its rounding", loses, keeps + loses);
}

/// The curve where it bends: how few layers in bfloat16 take away nine tenths of the change.
Message CurveText(const LowPrecisionReport& report, size_t plan) {
  const std::vector<KeptPoint> curve = CurveOf(report, plan);
  const auto bend =
      std::find_if(curve.begin(), curve.end(), [&](const KeptPoint& p) { return p.loss <= curve[0].loss / 10; });
  const bool loss = HasGradients(report, plan);
  Message out = loss ? Msg("  the loss changes by about {:.2g} (first order)", curve[0].loss)
                     : Msg("  the errors of all results together: {:.2g} (no gradients were recorded)", curve[0].loss);
  if (bend != curve.end() && bend->kept > 0 && bend->kept < report.layers.size())
    out += Msg("; with the worst {} layers in bfloat16, {:.0f} % of the multiplications, by {:.2g}", bend->kept,
               100 * bend->work, bend->loss);
  out += Message("\n");
  return out;
}

std::string Cell(const ResultLoss& loss) { return loss.seen() ? fmt::format("{:.2g}", loss.Error()) : "-"; }

/// A layer's figures as the line above the first one names them.
Message LayerText(const LowPrecisionReport& report, size_t layer_index, size_t plan, size_t width) {
  const LowPrecisionLayer& layer = report.layers[layer_index];
  const OpLoss& loss = layer.losses.by_plan[plan];
  const std::string change = loss.result.loss2 > 0 ? fmt::format("{:.2g}", std::sqrt(loss.result.loss2)) : "-";
  Message out = Message(fmt::format("    {:<{}}  {:>7} | {:>7} | {:>7} || {:>8} || {:>6.3g}", PlaceOf(report, layer),
                                    width, Cell(loss.result), Cell(loss.input_gradient), Cell(loss.weight_gradient),
                                    change, UnitsOf(loss.result.Error())));
  const Message why = WhyLost(layer, plan);
  if (!why.empty()) out += Message("  "), out += why;
  out += Message("\n");
  return out;
}

Message PlanBlock(const LowPrecisionReport& report, size_t plan) {
  const MatrixPlan& p = report.plans[plan];
  const bool one = p.input.name == p.weight.name && p.weight.name == p.gradient.name;
  Message out =
      one ? Message(p.name)
          : Msg("{} (inputs {}, weights {}, gradients {})", p.name, p.input.name, p.weight.name, p.gradient.name);
  out += Message(": ");
  out += PlanText(report, plan);
  out += Message("\n");
  out += CurveText(report, plan);
  out += Msg(
      "    layer: error of its result | of its input's gradient | of its weight's gradient || change of the loss || "
      "roundings of bfloat16\n");
  const std::vector<size_t> order = RankLayers(report, plan);
  std::vector<size_t> shown;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i < kShownLayers || VerdictOf(report.layers[order[i]], plan) == LayerVerdict::kLoses) shown.push_back(order[i]);
  }
  size_t width = 0;
  for (const size_t i : shown) width = std::max(width, PlaceOf(report, report.layers[i]).size());
  for (const size_t i : shown) out += LayerText(report, i, plan, width);
  return out;
}

void WriteResult(const char* key, const ResultLoss& loss, JsonWriter* json) {
  json->Key(key);
  if (!loss.seen()) return json->Null();
  json->BeginObject();
  json->Member("error", loss.Error()), json->Member("floor", loss.floor),
      json->Member("bf16_units", UnitsOf(loss.Error()));
  json->EndObject();
}

void WriteOperand(const char* key, const StoredCounts& counts, JsonWriter* json) {
  json->Key(key);
  if (counts.elements == 0) return json->Null();
  json->BeginObject();
  json->Member("error", counts.Error());
  json->Member("saturated", ShareOf(counts.casts.saturated, counts.elements));
  json->Member("to_zero", ShareOf(counts.casts.to_zero, counts.elements));
  json->Member("not_finite", counts.casts.not_finite);
  json->EndObject();
}

void WriteLayer(const LowPrecisionReport& report, size_t layer_index, size_t plan, JsonWriter* json) {
  const LowPrecisionLayer& layer = report.layers[layer_index];
  const OpLoss& loss = layer.losses.by_plan[plan];
  json->BeginObject();
  json->Member("layer", layer.layer), json->Member("call", layer.call);
  json->Key("rank"), json->Int(layer.rank);
  json->Member("verdict", NameOf(VerdictOf(layer, plan)));
  WriteResult("result", loss.result, json);
  WriteResult("input_gradient", loss.input_gradient, json);
  WriteResult("weight_gradient", loss.weight_gradient, json);
  WriteOperand("inputs", loss.input, json), WriteOperand("weights", loss.weight, json),
      WriteOperand("gradients", loss.gradient, json);
  json->Key("loss_change");
  loss.result.loss2 > 0 ? json->Number(std::sqrt(loss.result.loss2)) : json->Null();
  json->Member("multiplications", layer.losses.work), json->Member("sampled", layer.losses.sampled);
  json->Key("outlier_channels"), json->BeginObject();
  json->Key("count"), json->Int(layer.losses.outliers.count);
  json->Key("largest"), json->Int(layer.losses.outliers.largest);
  json->Member("times_median", layer.losses.outliers.times);
  json->EndObject();
  json->Member("why", (layer.losses.not_measured.empty() ? WhyLost(layer, plan) : layer.losses.not_measured).English());
  json->EndObject();
}

}  // namespace

Message WhyLost(const LowPrecisionLayer& layer, size_t plan) {
  if (VerdictOf(layer, plan) != LayerVerdict::kLoses) return {};
  const OpLoss& loss = layer.losses.by_plan[plan];
  for (const Operand& o : OperandsOf(loss)) {
    if (o.counts->casts.not_finite > 0) return Msg("{} hold NaN or infinities", o.name);
    const double saturated = ShareOf(o.counts->casts.saturated, o.counts->elements);
    if (saturated > 0 && o.counts->Error() > kMostTimesFloor * loss.result.floor)
      return Msg("{:.2g} % of the {} saturate", 100 * saturated, o.name);
  }
  for (const Operand& o : OperandsOf(loss)) {
    if (ShareOf(o.counts->casts.to_zero, o.counts->elements) > kManyZeros)
      return Msg("{:.2g} % of the {} become 0", 100 * ShareOf(o.counts->casts.to_zero, o.counts->elements), o.name);
  }
  if (layer.losses.outliers.count > 0)
    return Msg("channel {} of the input is {} times the median channel", layer.losses.outliers.largest,
               TimesText(layer.losses.outliers.times, 3));
  return Msg("{:.2g} times the error that rounding gives", WorstTimesFloor(loss));
}

std::vector<Judgement> JudgementsOf(const LowPrecisionReport& report) {
  std::vector<Judgement> out;
  for (size_t plan = 0; plan < report.plans.size(); ++plan) {
    Judgement& one = out.emplace_back();
    const size_t loses = CountOf(report, plan, LayerVerdict::kLoses);
    one.about = Message(report.plans[plan].name);
    one.kind = loses > 0 ? JudgementKind::kSuspicious : JudgementKind::kRoundOff;
    if (CountOf(report, plan, LayerVerdict::kNotMeasured) == report.layers.size()) one.kind = JudgementKind::kNotSeen;
    one.evidence.push_back(PlanText(report, plan));
    one.basis = Msg("twice the error that rounding to the format gives");
    one.figure = 0;
    for (const LowPrecisionLayer& layer : report.layers)
      one.figure = std::max(*one.figure, WorstTimesFloor(layer.losses.by_plan[plan]));
    if (const size_t missing =
            report.not_read.size() + report.no_values.size() + CountOf(report, plan, LayerVerdict::kNotMeasured);
        missing > 0)
      one.not_seen.push_back(Msg("{} matrix products were not measured", missing));
  }
  return out;
}

Message LowPrecisionText(const LowPrecisionReport& report, Language language) {
  Message out = Message(GapText(report.gaps, language));
  if (!out.empty()) out += Message("\n");
  out += report.step >= 0
             ? Msg("{} matrix products of step {} in {}\n", report.layers.size(), report.step, report.input)
             : Msg("{} matrix products in {}\n", report.layers.size(), report.input);
  for (size_t plan = 0; plan < report.plans.size(); ++plan) out += PlanBlock(report, plan);
  if (report.delayed_without_history)
    out +=
        Msg("No earlier step was recorded, so that delayed scales are those of this step: record a few steps, "
            "statistics are enough.\n");
  if (!report.no_values.empty())
    out += Msg("{} products without values: {}\n", report.no_values.size(), Names(report.no_values));
  if (!report.not_read.empty())
    out += Msg("{} products of kinds that are not emulated: {}\n", report.not_read.size(), Names(report.not_read));
  std::vector<std::string> not_measured;
  for (const LowPrecisionLayer& layer : report.layers) {
    if (!layer.losses.not_measured.empty())
      not_measured.push_back(layer.layer + ": " + layer.losses.not_measured.English());
  }
  if (!not_measured.empty())
    out += Msg("{} products that were not measured: {}\n", not_measured.size(), Names(not_measured));
  return out;
}

std::string LowPrecisionJson(const LowPrecisionReport& report) {
  JsonWriter json(JsonStyle{.not_finite = JsonStyle::NotFinite::kNull});
  json.BeginObject();
  json.Member("input", report.input);
  json.Key("step"), json.Int(report.step);
  json.Key("plans"), json.BeginArray();
  for (size_t plan = 0; plan < report.plans.size(); ++plan) {
    const MatrixPlan& p = report.plans[plan];
    json.BeginObject();
    json.Member("name", p.name), json.Member("inputs", p.input.name), json.Member("weights", p.weight.name),
        json.Member("gradients", p.gradient.name);
    json.Member("ranked_by", HasGradients(report, plan) ? "loss_change" : "result_error");
    json.Key("layers"), json.BeginArray();
    for (const size_t i : RankLayers(report, plan)) WriteLayer(report, i, plan, &json);
    json.EndArray();
    json.Key("curve"), json.BeginArray();
    for (const KeptPoint& point : CurveOf(report, plan)) {
      json.BeginObject();
      json.Key("in_bf16"), json.UInt(point.kept);
      json.Member("change", point.loss), json.Member("work_in_bf16", point.work);
      json.EndObject();
    }
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  for (const auto& [key, names] :
       {std::pair{"without_values", &report.no_values}, std::pair{"not_emulated", &report.not_read}}) {
    json.Key(key), json.BeginArray();
    for (const std::string& name : *names) json.String(name);
    json.EndArray();
  }
  json.Key("gaps"), WriteGaps(&json, report.gaps);
  WriteConclusion(Conclude(JudgementsOf(report)), &json);
  json.EndObject();
  return json.Take() + "\n";
}

std::string LowPrecisionCsv(const LowPrecisionReport& report) {
  std::string out =
      "plan,layer,call,rank,verdict,result_error,input_gradient_error,weight_gradient_error,loss_change,bf16_units,"
      "inputs_to_zero,"
      "weights_to_zero,gradients_to_zero,inputs_saturated,multiplications,why\n";
  for (size_t plan = 0; plan < report.plans.size(); ++plan) {
    for (const size_t i : RankLayers(report, plan)) {
      const LowPrecisionLayer& layer = report.layers[i];
      const OpLoss& loss = layer.losses.by_plan[plan];
      std::string why =
          (layer.losses.not_measured.empty() ? WhyLost(layer, plan) : layer.losses.not_measured).English();
      std::replace(why.begin(), why.end(), ',', ';');
      out += fmt::format("{},{},{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{}\n",
                         report.plans[plan].name, layer.layer, layer.call, layer.rank, NameOf(VerdictOf(layer, plan)),
                         loss.result.Error(), loss.input_gradient.Error(), loss.weight_gradient.Error(),
                         std::sqrt(loss.result.loss2), UnitsOf(loss.result.Error()),
                         ShareOf(loss.input.casts.to_zero, loss.input.elements),
                         ShareOf(loss.weight.casts.to_zero, loss.weight.elements),
                         ShareOf(loss.gradient.casts.to_zero, loss.gradient.elements),
                         ShareOf(loss.input.casts.saturated, loss.input.elements), layer.losses.work, why);
    }
  }
  return out;
}

}  // namespace msprobe
