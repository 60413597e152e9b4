// A judgement for people and for programs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/message.h"
#include "base/text.h"
#include "base/words/times_text.h"
#include "json/writer.h"
#include "judge/judge_directory.h"
#include "judgement/judgement_json.h"

namespace msprobe {
namespace {

constexpr size_t kNamedLayers = 4, kShownInText = 5;

/// What the metric is, of what: "gradient norm of fc.weight".
Message Metric(const std::string& table, const std::string& column, const Message& of) {
  if (table == "loss") return Msg("the loss");
  if (table == "learning_rate") return Msg("the learning rate");
  if (table == "loss_factor") return Msg("the factor of the loss before backward()");
  if (table == "model_input") return Msg("the norm of the input {}", of);
  if (table == "actv") return column == "max" ? Msg("largest activation of {}", of) : Msg("activation norm of {}", of);
  if (table == "actv_grad") return Msg("norm of activation gradients of {}", of);
  if (table == "grad_unreduced") return Msg("gradient norm before the reduction of {}", of);
  if (table == "grad_reduced") return Msg("gradient norm of {}", of);
  if (table == "exp_avg") return Msg("norm of the first moment of {}", of);
  if (table == "exp_avg_sq") return Msg("norm of the second moment of {}", of);
  if (table == "param_origin" || table == "param_updated") return Msg("the parameters of {}", of);
  if (table == "param_update") {
    return column == "ratio" ? Msg("update/weight ratio of {}", of) : Msg("update norm of {}", of);
  }
  if (table == "other") return Msg("agreement of gradient and first moment of {}", of);
  return Msg("{} of {}", column, of);
}

/// Of an event of the whole model.
std::string MetricName(const std::string& table, const std::string& column) {
  const std::string text = Metric(table, column, {}).English();
  return text.ends_with(" of ") ? text.substr(0, text.size() - 4) : text;
}

/// "" of the loss, and where no layer is known.
Message Where(const JudgedEvent& event) {
  if (event.table == "loss" || IsSetByScript(event.table)) return {};
  if (event.table == "model_input" && !event.layers.empty()) return Message(OneLine(event.layers.front()));
  if (event.all_layers) return Msg("all layers");
  if (event.layers.empty()) return {};
  if (event.layers.size() > kNamedLayers && !event.place.empty()) {
    return Msg("{} layers in {}", event.layers.size(), OneLine(event.place));
  }
  Message text;
  for (size_t i = 0; i < event.layers.size() && i < kNamedLayers; ++i) {
    const Message layer = event.layers[i].empty() ? Msg("the model") : Message(OneLine(event.layers[i]));
    text = text.empty() ? layer : Msg("{} and {}", text, layer);
  }
  return event.layers.size() > kNamedLayers ? Msg("{} and {} more", text, event.layers.size() - kNamedLayers) : text;
}

Message HowChanged(Detector detector, double before, double after) {
  switch (detector) {
    case Detector::kNotFinite: return Msg("became NaN or infinite");
    case Detector::kMissing: return Msg("gives no value any more");
    case Detector::kJump: return Msg("{:.4g} instead of {:.4g} from one step to the next", after, before);
    case Detector::kZeros: return Msg("became zero");
    case Detector::kStuck: return Msg("does not change any more");
    case Detector::kOutside: return Msg("changed between two steps of the optimizer");
    case Detector::kReplicas: return Msg("differs between replicas");
    case Detector::kReduction: return Msg("changed between the backward pass and the optimizer");
    case Detector::kClip: return Msg("is {:.3g} and clipping held it at {:.3g}", after, before);
    case Detector::kPinned: return Msg("is clipped to {:.3g} at each step, and was {:.3g} at least", after, before);
    case Detector::kReset:
      return Msg("fell from {:.3g} to {:.3g} in one step, further than any decay: it was reset", before, after);
    default: break;
  }
  const bool positive = before > 0 && after > 0;
  const double times = after / before;
  if (detector == Detector::kLeap) {
    return positive ? Msg("{} times as large from one step to the next, in {} losses on end", TimesText(times, 3),
                          LossWatch::kInRow)
                    : Msg("{:.3g} instead of {:.3g} from one step to the next, in {} losses on end", after, before,
                          LossWatch::kInRow);
  }
  if (detector == Detector::kSpike) {
    return positive ? Msg("{} times as large at once", TimesText(times, 3))
                    : Msg("{:.3g} instead of {:.3g} at once", after, before);
  }
  if (detector == Detector::kTrend) {
    return positive ? Msg("{} times as large by a drift", TimesText(times, 3))
                    : Msg("{:.3g} instead of {:.3g} by a drift", after, before);
  }
  const Message factor =
      positive ? Msg("{} times as large", TimesText(times, 3)) : Msg("{:.3g} instead of {:.3g}", after, before);
  return detector == Detector::kVariance ? Msg("noise {}", factor) : factor;
}

Message Whose(const JudgedEvent& event, size_t ranks) {
  if (ranks < 2) return {};
  if (event.rank_undecided && event.detector != Detector::kReplicas && !event.by_law) {
    return Msg("one of two ranks beside the other, and none can say which is wrong");
  }
  if (event.rank_undecided) return Msg("the replicas differ and no majority says which rank is wrong");
  if (event.culprit) return Msg("rank {} only", *event.culprit);
  if (event.ranks.size() == ranks || event.ranks.empty()) return Msg("all ranks");
  return Msg("{} of {} ranks", event.ranks.size(), ranks);
}

Message Lead(const JudgedEvent& event, const std::optional<JudgedLoss>& loss) {
  if (!loss || event.table == "loss") return {};
  const auto lead = event.lead();
  if (!lead && !loss->HasJudged(event.onset)) return Msg("the loss was not judged yet");
  if (!lead && event.loss_times) return Msg("the loss is {} times as large at most", TimesText(*event.loss_times, 3));
  if (!lead) return Msg("the loss does not show it");
  if (*lead == 0) return Msg("at the same step as the loss");
  if (*lead == 1) return Msg("1 step before the loss");
  if (*lead == -1) return Msg("1 step after the loss");
  return *lead > 0 ? Msg("{} steps before the loss", *lead) : Msg("{} steps after the loss", -*lead);
}

std::string NamesOf(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kNamedLayers; ++i) text += (i > 0 ? ", " : "") + OneLine(names[i]);
  if (names.size() > kNamedLayers) text += fmt::format(" and {} more", names.size() - kNamedLayers);
  return text;
}

// "step 12: law clip broken, fc.weight: the norm is ..."
Message LawText(const BrokenLaw& law) {
  const std::string names = NamesOf(law.names);
  std::vector<Message> said = {Message((names.empty() ? "" : names + ": ") + OneLine(law.text))};
  if (law.culprit) said.push_back(Msg("rank {} only", *law.culprit));
  return Msg("step {}: law {} broken, {}", law.step, OneLine(law.law), Joined(said, Msg(", ")));
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

Message ChangeText(const RowChange& c, const RowName& row, size_t ranks) {
  const Message of = row.together ? Msg("all layers") : Message(OneLine(row.key.name));
  if (row.key.table == "loss" || IsSetByScript(row.key.table)) ranks = 1;
  const Message what = Metric(row.key.table, row.columns[c.column], of);
  std::vector<Message> said = {HowChanged(c.change.detector, c.change.before, c.change.after)};
  if (ranks > 1) said.push_back(Message(fmt::format("rank {}", row.key.rank)));
  return Msg("step {}: {}, {}", c.change.onset, what, Joined(said, Msg(", ")));
}

Message MetricText(const JudgedEvent::Metric& metric, const JudgedDirectory& judgement) {
  const RowName& row = judgement.rows[metric.first.row];
  const Message text = ChangeText(metric.first, row, judgement.ranks);
  const size_t others = metric.series - (row.together || metric.series == 0 ? 0 : 1);
  if (others == 0 || row.key.table == "loss") return text;
  return others == 1 ? Msg("{}; 1 more series of this metric", text)
                     : Msg("{}; {} more series of this metric", text, others);
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

void WriteEvent(const JudgedEvent& event, const JudgedDirectory& judgement, JsonWriter* json) {
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
    json->Member("harm", event.harm);
    json->Member("loss_times", event.loss_times);
    json->Member("alarms", event.alarms);
    json->Member("changes", event.changes);
    json->ArrayMember("evidence", event.evidence,
                      [&](const RowChange& c) { WriteChange(c, judgement.rows[c.row], json); });
    json->ArrayMember("laws", event.laws, [&](const BrokenLaw& law) { WriteLaw(law, json); });
  });
}

// "the loss was judged from step 26 on; its largest rise is 1.4 times at step 77"
Message LossText(const JudgedLoss& loss) {
  const Message from = Msg("the loss was judged from step {} on", *loss.from);
  if (!loss.largest) return from;
  const LossLeap& leap = *loss.largest;
  return Msg("{}; its largest rise, no alarm, is {} times at step {}", from, TimesText(leap.after / leap.before, 3),
             leap.step);
}

void WriteLeap(std::string_view key, const std::optional<LossLeap>& leap, JsonWriter* json) {
  json->Key(key);
  if (!leap) return json->Null();
  json->Object([&] {
    json->Member("step", leap->step);
    json->Member("losses", leap->losses);
    json->Member("before", leap->before);
    json->Member("after", leap->after);
  });
}

void WriteLoss(const JudgedDirectory& judgement, JsonWriter* json) {
  json->Key("loss");
  if (!judgement.loss) return json->Null();
  json->Object([&] {
    json->Member("values", judgement.loss->values);
    json->Member("judged_from", judgement.loss->from);
    WriteLeap("largest_rise", judgement.loss->largest, json);
    WriteLeap("not_decided", judgement.loss->open, json);
  });
}

}  // namespace

JudgedLoss::JudgedLoss(const RunJudge& judge) {
  const double alarm = judge.alarm_strength(RunJudge::Family::kLoss);
  std::map<size_t, const LossWatch*> dense;  // of each rank that of the most losses: a log may have fewer
  for (const RunJudge::Row& row : judge.rows()) {
    if (!row.loss) continue;
    const LossWatch*& best = dense[row.key.rank];
    if (best == nullptr || row.loss->count() > best->count()) best = &*row.loss;
  }
  for (const auto& [rank, best] : dense) {
    const LossWatch& watch = watches.emplace_back(*best);
    const bool fewer = watches.size() == 1 || watch.count() < values;
    if (fewer) values = watch.count(), from = watch.judged_from();
    const auto larger = [](const LossLeap& a, const std::optional<LossLeap>& b) {
      return !b || a.after * b->before > b->after * a.before;
    };
    if (watch.largest() && larger(*watch.largest(), largest)) largest = watch.largest();
    if (auto last = watch.Open(alarm); last && !open) open = last;
  }
}

bool JudgedLoss::HasJudged(int64_t step) const {
  return std::all_of(watches.begin(), watches.end(), [&](const LossWatch& watch) { return watch.HasJudged(step); });
}

Message NotJudgedText(const JudgedDirectory& judgement) {
  std::vector<Message> said;
  if (judgement.loss && judgement.loss->open) {
    const LossLeap& leap = *judgement.loss->open;
    said.push_back(
        Msg("the last {} losses, from step {} on, are {:.3g} after {:.3g}: whether they stay so takes {} to say",
            leap.losses, leap.step, leap.after, leap.before, LossWatch::kInRow));
  }
  if (judgement.loss && !judgement.loss->from) {
    said.push_back(Msg("the loss is judged from its value {} on, and has {}", LossWatch::kFewestBefore + 1,
                       judgement.loss->values));
  }
  if (!judgement.series_judged()) {
    said.push_back(judgement.loss_judged()
                       ? Msg("{} steps: the other {} series are judged from {} monitored steps on", judgement.steps,
                             judgement.watched, kJudgeWarmup)
                       : Msg("{} steps: changes are told from {} monitored steps on", judgement.steps, kJudgeWarmup));
  }
  if (!judgement.left_out.empty()) {
    said.push_back(Msg("directories of earlier runs are left out: {}", NamesOf(judgement.left_out)));
  }
  return Joined(said, Msg("; "));
}

Message EventText(const JudgedEvent& event, const JudgedDirectory& judgement) {
  if (event.by_law || event.law_first) return LawText(event.laws.front());
  const Message where = Where(event);
  const Message what =
      where.empty() ? KnownText(MetricName(event.table, event.column)) : Metric(event.table, event.column, where);
  return Msg("step {}: {}, {}", event.onset, what,
             Joined({HowChanged(event.detector, event.before, event.after), Whose(event, judgement.ranks),
                     Lead(event, judgement.loss)},
                    Msg(", ")));
}

std::string EventJson(const JudgedEvent& event, const JudgedDirectory& judgement) {
  JsonWriter json({.not_finite = JsonStyle::NotFinite::kText});
  WriteEvent(event, judgement, &json);
  return json.Take();
}

Message JudgementText(const JudgedDirectory& judgement) {
  Message text = judgement.ranks == 1 ? Msg("{} series of 1 rank over {} steps\n", judgement.watched, judgement.steps)
                                      : Msg("{} series of {} ranks over {} steps\n", judgement.watched, judgement.ranks,
                                            judgement.steps);
  if (judgement.events.empty() && judgement.too_early()) {
    text += Msg("too early to judge\n");
  } else if (judgement.events.empty()) {
    text += Msg("no change that a healthy training would not have\n");
  }
  for (const JudgedEvent& event : judgement.events) {
    text += Msg("{}\n", EventText(event, judgement));
    for (size_t i = event.by_law || event.law_first ? 1 : 0; i < event.laws.size() && i < kShownInText; ++i) {
      text += Msg("  {}\n", LawText(event.laws[i]));
    }
    const size_t laws = event.laws.size() - std::min(event.laws.size(), kShownInText);
    if (laws > 0) text += laws == 1 ? Msg("  and 1 more law\n") : Msg("  and {} more laws\n", laws);
    // Each metric once; that of the headline is said.
    size_t shown = 0;
    for (const JudgedEvent::Metric& metric : event.metrics) {
      const std::string& table = judgement.rows[metric.first.row].key.table;
      const bool said = event.law_first ? event.laws.front().law == "lr_schedule" && table == "learning_rate"
                                        : MetricOf(table) == MetricOf(event.table);
      if (!said && shown++ < kShownInText) text += Msg("  {}\n", MetricText(metric, judgement));
    }
    if (shown > kShownInText + 1) text += Msg("  and {} more metrics\n", shown - kShownInText);
    if (shown == kShownInText + 1) text += Msg("  and 1 more metric\n");
  }
  for (const UnseenLaw& law : judgement.unseen_laws) {
    if (law.in_part) text += Msg("law {} was looked at in part: {}\n", OneLine(law.law), OneLine(law.why));
  }
  const bool told = std::any_of(judgement.events.begin(), judgement.events.end(),
                                [](const JudgedEvent& event) { return event.table == "loss" || event.loss_step; });
  if (judgement.loss_judged() && !told) text += Msg("{}\n", LossText(*judgement.loss));
  if (const Message open = NotJudgedText(judgement); !open.empty()) text += Msg("{}\n", open);
  for (const Message& note : judgement.notes) text += Msg("{}\n", note);
  if (const Message next = NextText(judgement); !next.empty()) text += Msg("next: {}\n", next);
  return text;
}

std::string JudgementJson(const JudgedDirectory& judgement) {
  JsonWriter json({.indent = 1, .comma = ",", .not_finite = JsonStyle::NotFinite::kText});
  json.Object([&] {
    json.Member("directory", judgement.directory);
    json.Member("ranks", judgement.ranks);
    json.Member("series", judgement.watched);
    json.Member("steps", judgement.steps);
    json.Member("last_step", judgement.last_step);
    json.Member("warm_up", kJudgeWarmup);
    json.Member("alarm_strength", judgement.alarm_strength);
    json.Member("has_loss", judgement.loss.has_value());
    json.Member("series_judged", judgement.series_judged());
    json.Member("next", NextText(judgement));
    WriteLoss(judgement, &json);
    json.Member("left_out", judgement.left_out);
    json.ArrayMember("events", judgement.events, [&](const JudgedEvent& e) { WriteEvent(e, judgement, &json); });
    json.Member("laws_held", judgement.held_laws);
    json.ArrayMember("laws_not_seen", judgement.unseen_laws, [&](const UnseenLaw& law) {
      json.Object([&] {
        json.Member("law", law.law);
        json.Member("in_part", law.in_part);
        json.Member("why", law.why);
        json.ArrayMember("ranks", law.ranks, [&](size_t rank) { json.UInt(rank); });
      });
    });
    json.Member("notes", judgement.notes);
    WriteConclusion(Conclude(JudgementsOf(judgement)), &json);
  });
  return json.Take() + "\n";
}

}  // namespace msprobe
