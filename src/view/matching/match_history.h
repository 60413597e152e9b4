// The changes of matches by hand, so that they can be taken back and made again. Kept in memory only. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <string>

#include "view/file/match_edits.h"

namespace msprobe::view {

class MatchHistory {
 public:
  /// Of one graph of a file.
  struct Place {
    std::string real;  ///< real path of the .vis.db
    int64_t step = 0, rank = 0;
    bool operator==(const Place&) const = default;
  };
  struct Depth {
    size_t undo = 0, redo = 0;
  };
  /// A change was made; what was taken back before it cannot be made again.
  void Add(const Place& place, MatchEdits before, MatchEdits after);
  /// The edits one change back (or on), if the last change is the one that led to `now`. Nothing is moved.
  std::optional<MatchEdits> Peek(const Place& place, const MatchEdits& now, bool redo);
  /// That was done.
  void Move(const Place& place, bool redo);
  Depth DepthOf(const Place& place, const MatchEdits& now);

 private:
  struct Change {
    MatchEdits before, after;
  };
  struct Kept {
    Place place;
    std::deque<Change> changes;
    size_t done = 0;  // of them; those behind were taken back
  };
  /// Null where nothing is known. Of matches that somebody else changed meanwhile nothing can be taken back.
  Kept* Find(const Place& place, const MatchEdits& now);

  std::mutex mutex_;
  std::list<Kept> kept_;  // most recently used first
};

/// How many pairs differ.
size_t PairsBetween(const MatchEdits& a, const MatchEdits& b);

}  // namespace msprobe::view
