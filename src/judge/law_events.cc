#include "judge/law_events.h"

#include <algorithm>
#include <utility>

namespace msprobe {
namespace {

constexpr int64_t kBefore = 30;  // steps before the beginning of an event in which a law may have broken with it

JudgedEvent* EventAt(int64_t step, std::vector<JudgedEvent>* events) {
  for (JudgedEvent& event : *events) {
    if (!event.by_law && step >= event.onset - kBefore && step <= event.told + kEventSpan) return &event;
  }
  return nullptr;
}

// Of one law and step: what is said of other parameters goes with it.
JudgedEvent* OwnEventAt(const BrokenLaw& law, std::vector<JudgedEvent>* events) {
  for (JudgedEvent& event : *events) {
    if (event.by_law && event.column == law.law && event.onset == law.step) return &event;
  }
  return nullptr;
}

JudgedEvent EventOf(const BrokenLaw& law) {
  JudgedEvent event;
  event.by_law = true;
  event.told = event.onset = law.step;
  event.table = "law";
  event.column = law.law;
  event.culprit = law.culprit;
  event.rank_undecided = law.undecided;
  event.alarms = event.changes = 1;
  return event;
}

void AddTo(const BrokenLaw& law, JudgedEvent* event) {
  event->laws.push_back(law);
  // A law that broke as early says more than a statistic; a relation that broke at the same step is as certain.
  const bool earlier = law.step < event->onset || (law.step == event->onset && !IsExact(event->detector));
  if (!event->by_law && event->laws.size() == 1 && earlier) {
    event->law_first = true;
    event->onset = law.step;
  }
  if (law.culprit && (event->rank_undecided || (!event->culprit && !event->by_law))) {
    event->culprit = law.culprit;
    event->rank_undecided = false;
  }
  if (!event->by_law) return;
  if (event->culprit != law.culprit) event->culprit.reset();
  event->layers.insert(event->layers.end(), law.names.begin(), law.names.end());
  for (const size_t rank : law.ranks) {
    if (std::find(event->ranks.begin(), event->ranks.end(), rank) == event->ranks.end()) event->ranks.push_back(rank);
  }
}

}  // namespace

void AddLaws(const std::vector<BrokenLaw>& laws, int64_t from_step, std::vector<JudgedEvent>* events) {
  size_t own = 0;
  for (const BrokenLaw& law : laws) {
    if (law.step < from_step) continue;
    JudgedEvent* event = EventAt(law.step, events);
    if (event == nullptr) event = OwnEventAt(law, events);
    if (event == nullptr) {
      if (own++ >= kMostEvents) continue;
      events->push_back(EventOf(law));
      event = &events->back();
    }
    AddTo(law, event);
  }
  std::stable_sort(events->begin(), events->end(),
                   [](const JudgedEvent& a, const JudgedEvent& b) { return a.onset < b.onset; });
}

}  // namespace msprobe
