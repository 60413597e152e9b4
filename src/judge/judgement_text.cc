// A judgement for people and for programs.
#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "json/writer.h"
#include "judge/judge_directory.h"

namespace msprobe {
namespace {

constexpr size_t kNamedLayers = 4, kShownInText = 5;

std::string MetricName(const std::string& table, const std::string& column) {
  if (table == "loss") return "the loss";
  if (table == "actv") return column == "max" ? "largest activation" : "activation norm";
  if (table == "actv_grad") return "norm of activation gradients";
  if (table == "grad_unreduced") return "gradient norm before the reduction";
  if (table == "grad_reduced") return "gradient norm";
  if (table == "exp_avg") return "norm of the first moment";
  if (table == "exp_avg_sq") return "norm of the second moment";
  if (table == "param_origin" || table == "param_updated") return "the parameters";
  if (table == "param_update") return column == "ratio" ? "update/weight ratio" : "update norm";
  if (table == "other") return "agreement of gradient and first moment";
  return column;
}

std::string Where(const JudgedEvent& event) {
  if (event.table == "loss") return "";
  if (event.all_layers) return " of all layers";
  if (event.layers.empty()) return "";
  if (event.layers.size() > kNamedLayers && !event.place.empty()) {
    return fmt::format(" of {} layers in {}", event.layers.size(), OneLine(event.place));
  }
  std::string text = " of ";
  for (size_t i = 0; i < event.layers.size() && i < kNamedLayers; ++i) {
    text += (i > 0 ? " and " : "") + OneLine(event.layers[i].empty() ? "the model" : event.layers[i]);
  }
  if (event.layers.size() > kNamedLayers) text += fmt::format(" and {} more", event.layers.size() - kNamedLayers);
  return text;
}

std::string HowChanged(Detector detector, double before, double after) {
  switch (detector) {
    case Detector::kNotFinite: return "became NaN or infinite";
    case Detector::kMissing: return "gives no value any more";
    case Detector::kZeros: return "became zero";
    case Detector::kStuck: return "does not change any more";
    case Detector::kOutside: return "changed between two steps of the optimizer";
    case Detector::kReplicas: return "differs between replicas";
    case Detector::kReduction: return "changed between the backward pass and the optimizer";
    case Detector::kClip: return fmt::format("is {:.3g} and clipping held it at {:.3g}", after, before);
    default: break;
  }
  const std::string factor = before > 0 && after > 0 ? fmt::format("{:.3g} times as large", after / before)
                                                     : fmt::format("{:.3g} instead of {:.3g}", after, before);
  if (detector == Detector::kSpike) return factor + " at once";
  if (detector == Detector::kTrend) return factor + " by a drift";
  return detector == Detector::kVariance ? "noise " + factor : factor;
}

std::string Whose(const JudgedEvent& event, size_t ranks) {
  if (ranks < 2) return "";
  if (event.rank_undecided) return ", the replicas differ and no majority says which rank is wrong";
  if (event.culprit) return fmt::format(", rank {} only", *event.culprit);
  if (event.ranks.size() == ranks || event.ranks.empty()) return ", all ranks";
  return fmt::format(", {} of {} ranks", event.ranks.size(), ranks);
}

std::string Lead(const JudgedEvent& event, bool has_loss) {
  if (!has_loss || event.table == "loss") return "";
  const auto lead = event.lead();
  if (!lead) return ", the loss does not show it";
  if (*lead > 0) return fmt::format(", {} steps before the loss", *lead);
  return *lead == 0 ? ", at the same step as the loss" : fmt::format(", {} steps after the loss", -*lead);
}

std::string NamesOf(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kNamedLayers; ++i) text += (i > 0 ? ", " : "") + OneLine(names[i]);
  if (names.size() > kNamedLayers) text += fmt::format(" and {} more", names.size() - kNamedLayers);
  return text;
}

// "step 12: law clip broken, fc.weight: the norm is ..."
std::string LawText(const BrokenLaw& law) {
  const std::string names = NamesOf(law.names);
  std::string text = fmt::format("step {}: law {} broken, ", law.step, OneLine(law.law));
  if (!names.empty()) text += names + ": ";
  text += OneLine(law.text);
  if (law.culprit) text += fmt::format(", rank {} only", *law.culprit);
  return text;
}

void WriteLaw(const BrokenLaw& law, JsonWriter* json) {
  json->Object([&] {
    json->Member("law", law.law);
    json->Member("step", law.step);
    json->Member("names", law.names);
    json->Member("text", law.text);
    json->Member("rank", law.culprit);
    json->ArrayMember("ranks", law.ranks, [&](size_t rank) { json->UInt(rank); });
  });
}

std::string ChangeText(const RowChange& c, const RowName& row, size_t ranks) {
  std::string text =
      fmt::format("step {}: {} of {}, {}", c.change.onset, MetricName(row.key.table, row.columns[c.column]),
                  row.together ? "all layers" : OneLine(row.key.name),
                  HowChanged(c.change.detector, c.change.before, c.change.after));
  if (ranks > 1) text += fmt::format(", rank {}", row.key.rank);
  return text;
}

void WriteChange(const RowChange& c, const RowName& row, JsonWriter* json) {
  json->Object([&] {
    json->Member("detector", DetectorName(c.change.detector));
    json->Member("step", c.change.onset);
    json->Member("told", c.step);
    json->Member("rank", row.key.rank);
    json->Member("table", row.key.table);
    json->Member("name", row.key.name);
    json->Member("layer", LayerOf(row));
    json->Member("column", row.columns[c.column]);
    json->Member("strength", c.change.strength);
    json->Member("before", c.change.before);
    json->Member("after", c.change.after);
    json->Member("against_ranks", c.against_ranks);
  });
}

void WriteEvent(const JudgedEvent& event, const Judgement& judgement, JsonWriter* json) {
  json->Object([&] {
    json->Member("text", EventText(event, judgement));
    json->Member("told", event.told);
    json->Member("onset", event.onset);
    json->Member("detector", event.by_law ? "law_" + event.column : DetectorName(event.detector));
    json->Member("table", event.table);
    json->Member("column", event.column);
    json->Member("all_layers", event.all_layers);
    json->Member("layers", event.layers);
    json->Member("place", event.place);
    json->Member("ranks", event.ranks);
    json->Member("rank", event.culprit);
    json->Member("rank_undecided", event.rank_undecided);
    json->Member("before", event.before);
    json->Member("after", event.after);
    json->Member("loss_step", event.loss_step);
    json->Member("lead", event.lead());
    json->Member("alarms", event.alarms);
    json->Member("changes", event.changes);
    json->ArrayMember("evidence", event.evidence,
                      [&](const RowChange& c) { WriteChange(c, judgement.rows[c.row], json); });
    json->ArrayMember("laws", event.laws, [&](const BrokenLaw& law) { WriteLaw(law, json); });
  });
}

}  // namespace

std::string EventText(const JudgedEvent& event, const Judgement& judgement) {
  if (event.by_law) return LawText(event.laws.front());
  return fmt::format("step {}: {}{}, {}{}{}", event.onset, MetricName(event.table, event.column), Where(event),
                     HowChanged(event.detector, event.before, event.after), Whose(event, judgement.ranks),
                     Lead(event, judgement.has_loss));
}

std::string EventJson(const JudgedEvent& event, const Judgement& judgement) {
  JsonWriter json({.not_finite = JsonStyle::NotFinite::kText});
  WriteEvent(event, judgement, &json);
  return json.Take();
}

std::string JudgementText(const Judgement& judgement) {
  std::string text =
      fmt::format("{} series of {} ranks over {} steps\n", judgement.watched, judgement.ranks, judgement.steps);
  if (judgement.events.empty()) text += "no change that a healthy training would not have\n";
  for (const JudgedEvent& event : judgement.events) {
    text += EventText(event, judgement) + "\n";
    for (size_t i = event.by_law ? 1 : 0; i < event.laws.size() && i < kShownInText; ++i) {
      text += "  " + LawText(event.laws[i]) + "\n";
    }
    if (event.laws.size() > kShownInText) text += fmt::format("  and {} more laws\n", event.laws.size() - kShownInText);
    for (size_t i = 1; i < event.evidence.size() && i < kShownInText; ++i) {
      const RowChange& c = event.evidence[i];
      text += "  " + ChangeText(c, judgement.rows[c.row], judgement.ranks) + "\n";
    }
    if (event.changes > kShownInText) text += fmt::format("  and {} more changes\n", event.changes - kShownInText);
  }
  for (const std::string& note : judgement.notes) text += note + "\n";
  return text;
}

std::string JudgementJson(const Judgement& judgement) {
  JsonWriter json({.indent = 1, .comma = ",", .not_finite = JsonStyle::NotFinite::kText});
  json.Object([&] {
    json.Member("directory", judgement.directory);
    json.Member("ranks", judgement.ranks);
    json.Member("series", judgement.watched);
    json.Member("steps", judgement.steps);
    json.Member("last_step", judgement.last_step);
    json.Member("warm_up", kJudgeWarmup);
    json.Member("alarm_strength", judgement.alarm_strength);
    json.Member("has_loss", judgement.has_loss);
    json.ArrayMember("events", judgement.events, [&](const JudgedEvent& e) { WriteEvent(e, judgement, &json); });
    json.Member("notes", judgement.notes);
  });
  return json.Take() + "\n";
}

}  // namespace msprobe
