#include "view/matching/match_history.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace msprobe::view {
namespace {

constexpr size_t kMostGraphs = 32, kMostChanges = 100;
constexpr size_t kMostPairs = 200'000;  // of all changes of a graph

size_t SizeOf(const MatchEdits& edits) { return edits.made.size() + edits.cancelled.size(); }

}  // namespace

MatchHistory::Kept* MatchHistory::Find(const Place& place, const MatchEdits& now) {
  const auto known = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.place == place; });
  if (known == kept_.end() || known->changes.empty()) return nullptr;
  const MatchEdits& expected = known->done > 0 ? known->changes[known->done - 1].after : known->changes[0].before;
  if (expected == now) return &*known;
  kept_.erase(known);
  return nullptr;
}

void MatchHistory::Add(const Place& place, MatchEdits before, MatchEdits after) {
  const std::lock_guard lock(mutex_);
  Kept* kept = Find(place, before);
  if (kept == nullptr) {
    std::erase_if(kept_, [&](const Kept& k) { return k.place == place; });
    kept_.push_front({place, {}, 0});
    if (kept_.size() > kMostGraphs) kept_.pop_back();
    kept = &kept_.front();
  }
  kept->changes.resize(kept->done);
  kept->changes.push_back({std::move(before), std::move(after)});
  size_t pairs = 0;
  for (const Change& change : kept->changes) pairs += SizeOf(change.before) + SizeOf(change.after);
  while (kept->changes.size() > 1 && (kept->changes.size() > kMostChanges || pairs > kMostPairs)) {
    pairs -= SizeOf(kept->changes[0].before) + SizeOf(kept->changes[0].after);
    kept->changes.pop_front();
  }
  kept->done = kept->changes.size();
}

std::optional<MatchEdits> MatchHistory::Peek(const Place& place, const MatchEdits& now, bool redo) {
  const std::lock_guard lock(mutex_);
  const Kept* kept = Find(place, now);
  if (kept == nullptr || (redo ? kept->done == kept->changes.size() : kept->done == 0)) return std::nullopt;
  return redo ? kept->changes[kept->done].after : kept->changes[kept->done - 1].before;
}

void MatchHistory::Move(const Place& place, bool redo) {
  const std::lock_guard lock(mutex_);
  for (Kept& kept : kept_) {
    if (kept.place == place)
      kept.done = redo ? std::min(kept.done + 1, kept.changes.size()) : kept.done - (kept.done > 0);
  }
}

MatchHistory::Depth MatchHistory::DepthOf(const Place& place, const MatchEdits& now) {
  const std::lock_guard lock(mutex_);
  const Kept* kept = Find(place, now);
  if (kept == nullptr) return {};
  return {kept->done, kept->changes.size() - kept->done};
}

size_t PairsBetween(const MatchEdits& a, const MatchEdits& b) {
  std::set<std::string_view> names;
  const auto add_missing = [&](const MatchEdits& from, const MatchEdits& in) {
    for (const auto& [target, golden] : from.made) {
      const auto other = in.made.find(target);
      if (other == in.made.end() || other->second != golden) names.insert(target);
    }
    for (const std::string& target : from.cancelled) {
      if (!in.cancelled.contains(target)) names.insert(target);
    }
  };
  add_missing(a, b);
  add_missing(b, a);
  return names.size();
}

}  // namespace msprobe::view
