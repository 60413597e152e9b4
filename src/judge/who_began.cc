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

// In a step: what is earlier can be the cause of what is later.
int Phase(const RowChange& c, const RunJudge::Row& row) {
  const std::string& table = row.key.table;
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
  return IsExact(detector) || detector == Detector::kSpike || detector == Detector::kLeap;
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
    FindLoss(near, &event);
    Order(told, &near);
    const std::vector<RowChange> first = Beginners(near);
    Describe(first, &event);
    event.evidence = near;
    if (event.evidence.size() > kShownEvidence) event.evidence.resize(kShownEvidence);
    return event;
  }

 private:
  void FindLoss(const std::vector<RowChange>& near, JudgedEvent* event) const {
    for (const RowChange& c : near) {
      if (!IsLoss(rows_[c.row])) continue;
      event->loss_step = std::min(event->loss_step.value_or(INT64_MAX), c.change.onset);
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
    std::stable_sort(near->begin(), near->end(),
                     [&](const RowChange& a, const RowChange& b) { return rank_of(a) < rank_of(b); });
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
    events.push_back(maker.Make(told, std::move(near)));
    // Changes go on while a fault does: they belong to it until it has been quiet for a while.
    // What is far stronger than all there was at its beginning is another one.
    int64_t last = told;
    double strongest = 0;
    for (const RowChange& c : events.back().evidence)
      strongest = std::max(strongest, c.step <= told + kAsideSteps ? c.change.strength : 0.0);
    while (i + 1 < all.size() && (all[i + 1].step <= last + kEventSpan || !judge.IsAlarm(all[i + 1]))) {
      const RowChange& next = all[i + 1];
      const bool stronger =
          next.change.strength >= kFarStronger * strongest && !OfManySteps(next, judge.rows()[next.row]);
      if (next.step > told + kAsideSteps && (stronger || IsNew(next, events.back()))) break;
      ++i;
      if (judge.IsAlarm(all[i])) last = all[i].step;
    }
  }
  return events;
}

}  // namespace msprobe
