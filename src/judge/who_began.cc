#include "judge/who_began.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace msprobe {
namespace {

constexpr int64_t kLookBack = 30;   // steps before the first alarm in which weaker changes count
constexpr int64_t kAsideSteps = 8;  // after the first alarm: what is told then may have begun with it
constexpr double kEarlyStrength = 6.5, kMostOfLayers = 0.6, kNearStrength = 0.6;
constexpr int64_t kSameTime = 2;
constexpr double kFarStronger = 2;
constexpr double kHarmOfNaN = 20, kHarmOfRelation = 0.7, kLossCounts = 2;  // on the logarithm
constexpr double kMoreHarm = 3, kLeastHarm = 0.4;

// In a step: what is earlier can be the cause of what is later.
int Phase(const RowChange& c, const RunJudge::Row& row) {
  const std::string& table = row.key.table;
  if (IsGiven(table)) return -1;
  if (c.change.detector == Detector::kOutside) return 0;
  if (c.change.detector == Detector::kMissing) return 1;
  if (table == "actv" || table.ends_with("_hook")) return 2;
  if (table == "actv_grad") return 3;
  if (table == "grad_unreduced") return 4;
  if (table == "grad_reduced" || table == "other") return 5;
  if (table.starts_with("exp_avg")) return 6;
  if (table == "param_update") return 7;
  if (table == "param_updated") return 8;
  return table == "param_origin" ? 9 : 10;
}

// How far it went, up or down; what is certain and small still does harm.
double HarmOf(const RowChange& c) {
  const double before = std::fabs(c.change.before), after = std::fabs(c.change.after);
  if (!std::isfinite(after)) return kHarmOfNaN;
  const double way = before > 0 && after > 0 ? std::min(std::fabs(std::log(after / before)), kHarmOfNaN) : kLeastHarm;
  return IsExact(c.change.detector) ? std::max(way, kHarmOfRelation) : way;
}

bool IsLoss(const RunJudge::Row& row) { return row.key.table == "loss"; }

std::string CommonPlace(const std::vector<std::string>& layers) {
  if (layers.empty()) return "";
  std::string common = layers[0];
  for (const std::string& layer : layers) {
    while (!common.empty() && layer != common && !layer.starts_with(common + ".")) {
      const size_t dot = common.rfind('.');
      common = dot == std::string::npos ? "" : common.substr(0, dot);
    }
  }
  return common;
}

// Known to the step. Where a level changed is known to a few.
bool IsSharp(Detector detector) {
  return IsExact(detector) || detector == Detector::kSpike || detector == Detector::kLeap ||
         detector == Detector::kJump;
}

// A rank beside the others, all rows together: where it began is known least.
bool OfManySteps(const RowChange& c, const RunJudge::Row& row) { return c.against_ranks && row.together; }

class EventMaker {
 public:
  explicit EventMaker(const RunJudge& judge) : judge_(judge), rows_(judge.rows()) {
    for (const RunJudge::Row& row : rows_) {
      if (!row.together) table_layers_[row.key.table].insert(LayerOf(row));
    }
  }

  JudgedEvent Make(int64_t told, std::vector<RowChange> near) const {
    JudgedEvent event;
    event.told = told;
    event.changes = near.size();
    for (const RowChange& c : near) event.alarms += judge_.IsAlarm(c) ? 1 : 0;
    Order(told, &near);
    const std::vector<RowChange> first = Beginners(near);
    Describe(first, &event);
    FindLoss(&event);
    Measure(near, &event);
    ListMetrics(near, &event);
    event.evidence = near;
    if (event.evidence.size() > kShownEvidence) event.evidence.resize(kShownEvidence);
    return event;
  }

 private:
  // All that the loss does about it, also what is told with another event.
  void FindLoss(JudgedEvent* event) const {
    for (const RowChange& c : judge_.changes()) {
      if (!IsLoss(rows_[c.row]) || c.step < event->onset - kLookBack || c.step > event->told + kEventSpan) continue;
      if (c.change.after < c.change.before) continue;  // it learns
      event->loss_step = std::min(event->loss_step.value_or(INT64_MAX), c.change.onset);
    }
  }

  void Measure(const std::vector<RowChange>& near, JudgedEvent* event) const {
    double loss = 0, others = 0;
    for (const RowChange& c : near) {
      if (c.step > event->told + kEventSpan || !judge_.IsAlarm(c)) continue;
      double& most = IsLoss(rows_[c.row]) ? loss : others;
      most = std::max(most, HarmOf(c));
    }
    event->harm = kLossCounts * loss + others;
  }

  // The strongest of each metric, in the order of the evidence, and how many series of it changed.
  void ListMetrics(const std::vector<RowChange>& near, JudgedEvent* event) const {
    std::map<std::string, size_t> places;
    std::set<size_t> series;
    for (const RowChange& c : near) {
      const RunJudge::Row& row = rows_[c.row];
      const auto [known, fresh] = places.emplace(MetricOf(row.key.table), event->metrics.size());
      if (fresh) event->metrics.push_back({c, 0});
      if (series.insert(c.row).second && !row.together) ++event->metrics[known->second].series;
    }
  }

  // Who began is first: exact ones and alarms before what supports them, by onset, phase and strength.
  void Order(int64_t told, std::vector<RowChange>* near) const {
    const bool any_certain = std::any_of(near->begin(), near->end(), [&](const RowChange& c) {
      return c.change.strength >= kExactStrength / 2 && IsCandidate(c, told);
    });
    double strongest = 0;
    for (const RowChange& c : *near) {
      const bool counts = IsCandidate(c, told) && c.change.strength < kExactStrength / 2;
      if (counts) strongest = std::max(strongest, c.change.strength);
    }
    const std::optional<size_t> cause = CauseOf(*near, told);
    // Beside what is certain or far stronger, a change that is no alarm by itself only supports it.
    const bool any_sharp = std::any_of(near->begin(), near->end(), [&](const RowChange& c) {
      return IsCandidate(c, told) && judge_.IsAlarm(c) && !IsOfManySteps(c);
    });
    const auto leads = [&](const RowChange& c) {
      if (!IsCandidate(c, told) || (any_sharp && IsOfManySteps(c))) return false;
      return judge_.IsAlarm(c) || (!any_certain && c.change.strength >= kNearStrength * strongest);
    };
    // The first of equal values may be a right one.
    const auto began = [](const RowChange& c) { return c.change.onset + (c.change.detector == Detector::kStuck); };
    int64_t onset = INT64_MAX;
    for (const RowChange& c : *near) {
      if (leads(c)) onset = std::min(onset, began(c));
    }
    const auto rank_of = [&](const RowChange& c) {
      const RunJudge::Row& row = rows_[c.row];
      const int64_t late = std::max<int64_t>(began(c) - onset - (IsSharp(c.change.detector) ? 0 : kSameTime), 0);
      const bool certain = c.change.strength >= kExactStrength / 2 && late == 0;
      return std::make_tuple(!leads(c), IsLoss(row), !(IsExact(c.change.detector) && certain), late, !certain,
                             certain ? Phase(c, row) : 0, !row.together, row.together ? Phase(c, row) : 0,
                             -c.change.strength);
    };
    const std::optional<RowChange> given = cause ? std::optional((*near)[*cause]) : std::nullopt;
    std::stable_sort(near->begin(), near->end(),
                     [&](const RowChange& a, const RowChange& b) { return rank_of(a) < rank_of(b); });
    if (!given) return;
    const auto found = std::find_if(near->begin(), near->end(), [&](const RowChange& c) {
      return c.row == given->row && c.step == given->step && c.column == given->column;
    });
    std::rotate(near->begin(), found, found + 1);
  }

  // What the training was given and what of it changed at or right before the first alarm: nothing in the training can
  // have made that. What a script sets stays set, so it may take some steps until it shows; a batch is of its step.
  std::optional<size_t> CauseOf(const std::vector<RowChange>& near, int64_t told) const {
    int64_t first = INT64_MAX;
    for (const RowChange& c : near) {
      if (judge_.IsAlarm(c) && c.step <= told + kAsideSteps) first = std::min(first, c.change.onset);
    }
    std::optional<size_t> best;
    for (size_t i = 0; i < near.size(); ++i) {
      const RowChange& c = near[i];
      const std::string& table = rows_[c.row].key.table;
      if (!IsGiven(table) || !IsSharp(c.change.detector)) continue;
      const int64_t wait = IsSetByScript(table) ? kLookBack : 0;
      if (c.change.onset > std::max(first, told) || c.change.onset < first - wait) continue;
      if (!best || c.change.onset > near[*best].change.onset) best = i;
    }
    return best;
  }

  bool IsOfManySteps(const RowChange& c) const { return OfManySteps(c, rows_[c.row]); }

  bool IsCandidate(const RowChange& c, int64_t told) const {
    if (c.step > told + kAsideSteps) return false;
    return judge_.IsAlarm(c) || (c.step <= told && c.change.strength >= kEarlyStrength);
  }

  // Of the same metric as the first, at the same time, and nearly as strong.
  std::vector<RowChange> Beginners(const std::vector<RowChange>& near) const {
    std::vector<RowChange> first;
    const RowChange& lead = near.front();
    const RunJudge::Row& row = rows_[lead.row];
    for (const RowChange& c : near) {
      const RunJudge::Row& other = rows_[c.row];
      if (other.key.table != row.key.table || IsOfManySteps(c) != IsOfManySteps(lead)) continue;
      if (std::llabs(c.change.onset - lead.change.onset) > (IsSharp(lead.change.detector) ? 0 : kSameTime)) continue;
      if (IsExact(lead.change.detector) && c.change.detector != lead.change.detector) continue;
      first.push_back(c);
    }
    return first;
  }

  void Describe(const std::vector<RowChange>& first, JudgedEvent* event) const {
    const RowChange& lead = first.front();
    const RunJudge::Row& row = rows_[lead.row];
    event->onset = lead.change.onset;
    event->detector = lead.change.detector;
    event->table = row.key.table;
    event->column = row.columns[lead.column];
    event->before = lead.change.before;
    event->after = lead.change.after;
    if (std::isfinite(lead.change.after) && lead.change.before > 0 && lead.change.after > 0) {
      event->factor = lead.change.after / lead.change.before;
    }
    DescribeRanks(first, event);
    DescribeLayers(first, event);
  }

  void DescribeRanks(const std::vector<RowChange>& first, JudgedEvent* event) const {
    std::map<size_t, double> strongest;
    for (const RowChange& c : first) {
      double& s = strongest[rows_[c.row].key.rank];
      // One rank that moves away from the others moves each of those from the mean of the rest by half as much or less.
      s = std::max(s, IsOfManySteps(c) ? std::fabs(std::log(c.change.after / c.change.before)) : c.change.strength);
    }
    const RowChange& lead = first.front();
    if (lead.change.detector == Detector::kReplicas) {
      event->culprit = lead.culprit;
      event->rank_undecided = !lead.culprit;
      return;
    }
    const double best = strongest[rows_[lead.row].key.rank];
    for (const auto& [rank, strength] : strongest) {
      if (strength >= kNearStrength * best) event->ranks.push_back(rank);
    }
    event->rank_undecided = lead.against_ranks && judge_.ranks() == 2;
    if (judge_.ranks() < 2 || event->ranks.size() != 1 || event->rank_undecided) return;
    event->culprit = static_cast<int64_t>(event->ranks[0]);
  }

  void DescribeLayers(const std::vector<RowChange>& first, JudgedEvent* event) const {
    std::map<std::string, double> layers;
    std::vector<std::string> order;
    for (const RowChange& c : first) {
      if (rows_[c.row].together) continue;
      const std::string layer = LayerOf(rows_[c.row]);
      const auto [known, fresh] = layers.emplace(layer, c.change.strength);
      if (fresh) order.push_back(layer);
      known->second = std::max(known->second, c.change.strength);
    }
    const auto total = static_cast<double>(table_layers_.at(event->table).size());
    const double share = static_cast<double>(layers.size()) / total;
    const double best = order.empty() ? 0 : layers[order[0]];
    const bool one_stands_out = std::count_if(layers.begin(), layers.end(), [&](auto& l) {
                                  return l.second >= kNearStrength * best;
                                }) < static_cast<std::ptrdiff_t>(std::max<size_t>(layers.size() / 2, 2));
    const bool together =
        std::any_of(first.begin(), first.end(), [&](const RowChange& c) { return rows_[c.row].together; });
    event->all_layers = event->detector == Detector::kClip || event->detector == Detector::kPinned ||
                        (together && !IsExact(event->detector)) ||
                        (share >= kMostOfLayers && total > 2 && !one_stands_out);
    if (event->detector == Detector::kReduction && layers.size() == 1 && best >= kExactStrength &&
        rows_[first.front().row].never_held == false) {
      event->all_layers = true;  // a common factor
    }
    if (event->all_layers) return;
    for (const std::string& layer : order) {
      if (layers[layer] >= kNearStrength * best) event->layers.push_back(layer);
    }
    // Along the forward and backward pass a change goes on from where it began.
    if (event->table == "actv" || event->table == "actv_grad") event->layers = {FirstOnPath(first, best)};
    event->place = CommonPlace(event->layers);
  }

  std::string FirstOnPath(const std::vector<RowChange>& first, double best) const {
    const RowChange* found = &first.front();
    for (const RowChange& c : first) {
      if (c.change.onset == found->change.onset && c.change.strength >= kNearStrength * best && c.row < found->row) {
        found = &c;
      }
    }
    return LayerOf(rows_[found->row]);
  }

  const RunJudge& judge_;
  const std::vector<RunJudge::Row>& rows_;
  std::map<std::string, std::set<std::string>> table_layers_;
};

// What did little and was over when something that does more began is another event.
bool IsApart(const RowChange& next, int64_t last, double harm) {
  return next.change.onset > last + kAsideSteps && HarmOf(next) >= kMoreHarm * harm && HarmOf(next) >= kLeastHarm;
}

// A relation that breaks is no consequence of a change that broke none.
bool IsNew(const RowChange& next, const JudgedEvent& event) {
  return IsExact(next.change.detector) &&
         std::none_of(event.evidence.begin(), event.evidence.end(), [&](const RowChange& c) {
           return IsExact(c.change.detector) && c.step <= event.told + kAsideSteps;
         });
}

}  // namespace

std::string LayerOf(const RowName& row) {
  std::string name = row.key.name;
  for (const char* part : {".input", ".output"}) {
    if (const size_t at = name.rfind(part); at != std::string::npos) return name.substr(0, at);
  }
  for (const char* part : {".weight", ".bias"}) {
    if (name.ends_with(part)) return name.substr(0, name.size() - std::string_view(part).size());
  }
  return name;
}

std::string MetricOf(const std::string& table) { return table == "param_updated" ? "param_origin" : table; }

std::vector<JudgedEvent> WhoBegan(const RunJudge& judge, int64_t from_step) {
  std::vector<JudgedEvent> events;
  const std::vector<RowChange>& all = judge.changes();
  const EventMaker maker(judge);
  for (size_t i = 0; i < all.size() && events.size() < kMostEvents; ++i) {
    if (all[i].step < from_step || !judge.IsAlarm(all[i])) continue;
    const int64_t told = all[i].step;
    std::vector<RowChange> near;
    size_t j = i;
    // Not into the event before.
    const int64_t before = events.empty() ? INT64_MIN : events.back().told + kAsideSteps;
    while (j > 0 && all[j - 1].step >= told - kLookBack && all[j - 1].step > before) --j;
    for (; j < all.size() && all[j].step <= told + kEventSpan; ++j) near.push_back(all[j]);
    events.push_back(maker.Make(told, near));
    // Changes go on while a fault does: they belong to it until it has been quiet for a while.
    // What is far stronger than all there was at its beginning is another one.
    int64_t last = told;
    double strongest = 0;
    for (const RowChange& c : events.back().evidence)
      strongest = std::max(strongest, c.step <= told + kAsideSteps ? c.change.strength : 0.0);
    double harm = HarmOf(all[i]);
    while (i + 1 < all.size() && (all[i + 1].step <= last + kEventSpan || !judge.IsAlarm(all[i + 1]))) {
      const RowChange& next = all[i + 1];
      const bool stronger =
          next.change.strength >= kFarStronger * strongest && !OfManySteps(next, judge.rows()[next.row]);
      if (next.step > told + kAsideSteps && (stronger || IsNew(next, events.back()))) break;
      const bool alarm = judge.IsAlarm(next);
      if (alarm && !IsExact(events.back().detector) && IsApart(next, last, harm)) break;
      ++i;
      if (alarm) last = all[i].step, harm = std::max(harm, HarmOf(all[i]));
    }
    if (i + 1 < all.size() && all[i + 1].step <= told + kEventSpan) {  // the next one has changes of its own
      std::erase_if(near, [&](const RowChange& c) { return c.step >= all[i + 1].step; });
      events.back() = maker.Make(told, std::move(near));
    }
  }
  return events;
}

}  // namespace msprobe
