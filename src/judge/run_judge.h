// All series of all ranks of a run, step after step: what changes, and which relations among them break.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "judge/given_watch.h"
#include "judge/loss_watch.h"
#include "judge/rank_watch.h"
#include "judge/schedule.h"
#include "judge/series_watch.h"

namespace msprobe {

struct JudgeOptions {
  /// False alarms that a healthy run of 2,000 steps may have: a third of them of the loss, a third of what all layers
  /// do together, a third of all other series; divided by series, steps and detectors.
  double false_alarms = 0.02;
  int64_t from_step = 0;  // alarms before it are left out
};

/// A row of a table on a rank, as the monitor writes it.
struct RowKey {
  size_t rank = 0;
  std::string table;
  int64_t vpp_stage = 0;
  std::string name;
  int64_t micro_step = -1;
};

/// What a row is called.
struct RowName {
  RowKey key;
  std::vector<std::string> columns;
  bool together = false;  // it stands for all rows of its table on its rank
};

/// A change of one column of one row.
struct RowChange {
  Change change;
  size_t row = 0;
  size_t column = 0;
  int64_t step = 0;                // when it was told
  std::optional<int64_t> culprit;  // rank that differs from the majority of the others
  bool against_ranks = false;      // of the difference to the median of all ranks
  bool against_layers = false;     // of the difference to the median of all layers
};

class RunJudge {
 public:
  explicit RunJudge(JudgeOptions options) : options_(options) {}

  /// The number of a row; the same key has the same number.
  size_t AddRow(const RowKey& key, std::span<const std::string> columns);
  /// Its values in the open step.
  void Put(size_t row, std::span<const double> values);
  /// The learning rate of the open step, where a log has it: what it explains is no change of an update.
  void PutRate(double rate);
  /// Judges the step. `changes()` grows.
  void EndStep(int64_t step);

  struct Row : RowName {
    std::vector<double> now, before;
    int64_t seen = -1, seen_before = -1;  // counts of steps
    size_t unbroken = 0, absent = 0;      // steps in which it came without a gap
    bool told_missing = false;
    std::vector<std::optional<SeriesWatch>> watches;  // by column
    std::optional<LossWatch> loss;
    std::optional<GivenWatch> given;
    int64_t leapt_at = INT64_MIN;        // what the loss does for a while after a leap is told with it
    std::optional<SeriesWatch> against;  // of its norm, to the other ranks
    std::optional<SeriesWatch> apart;    // of its norm, to the other layers
    size_t peers = SIZE_MAX;             // index of peers_
    size_t partner = SIZE_MAX;           // row whose values it has to repeat or to follow
    size_t held = 0;                     // steps in which a relation held
    /// Of a moment: the fastest it moved for its gradient, and when it last was faster.
    struct Pace {
      double rise = 0, fall = 0;
      size_t steps = 0;
      int64_t step = INT64_MIN, left_at = INT64_MIN;
    } pace;
    bool never_held = false;
    size_t norm = SIZE_MAX;  // column
    double level = 0;        // of the logarithm of the norm, over the last steps
    size_t levels = 0;       // values that went into it
    double highest = 0;      // norm of the steps before
  };
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<RowChange>& changes() const { return changes_; }
  /// Forgets those that were told before a step, for who judges for weeks.
  void ForgetChanges(int64_t before);
  size_t ranks() const { return ranks_; }
  size_t watched() const { return watched_; }
  int64_t steps() const { return step_count_; }
  int64_t last_step() const { return last_step_; }
  /// -log10 of the probability from which a change is an alarm.
  enum class Family : uint8_t { kLoss, kTogether, kSingle };
  double alarm_strength(Family family) const;
  static Family FamilyOf(const Row& row);
  /// A weaker one supports an alarm beside it.
  static double support_strength();
  /// Whether a change is an alarm on its own.
  bool IsAlarm(const RowChange& change) const;

 private:
  struct Peers {
    std::vector<size_t> rows;  // the same row of each rank
    size_t equal = 0;
    bool differ = false;
  };
  // Of the reduction, on one rank.
  struct Reduction {
    std::vector<size_t> rows;  // grad_reduced
    size_t held = 0, no_growth = 0, at_limit = 0, totals = 0;
    double limit = 0;
    std::vector<double> last;  // norms of all gradients
    size_t pinned = 0;         // steps in which it was the same
    int64_t pinned_since = 0;
    bool off = false, told_growth = false, told_clip = false;
  };
  void Tell(size_t row, size_t column, const Change& change, std::optional<int64_t> culprit = {});
  void JudgeRow(size_t row);
  void JudgeLoss(size_t row);
  void JudgeGiven(size_t row);
  void JudgeTogether();
  void JudgeApart(size_t row, double away);
  static bool IsGradient(const std::string& table);
  static double TrustIn(const std::string& table);
  static double LeastOf(const std::string& table);
  SeriesWatch* AddTogether(size_t rank, const std::string& table);
  void FollowSchedules();
  void AddRate(double rate);
  bool IsOfSchedule(const Row& row, const Change& change) const;
  void JudgeMissing();
  void JudgeOutside();
  void JudgeMoments();
  void JudgeReset(size_t row);
  void FollowPace(size_t row);
  bool IsOfGradient(const Row& row, const Change& change) const;
  bool IsOfBatch(const Row& row, const Change& change) const;
  void JudgePeers();
  void JudgeAgainstRanks(Peers* peers);
  void JudgeRanksTogether();
  void JudgeReplicas(Peers* peers);
  void JudgeReduction(Reduction* reduction);
  void JudgeClip(Reduction* reduction);
  void JudgePinned(Reduction* reduction, double total);
  bool IsHere(size_t row) const { return rows_[row].seen == step_count_; }

  JudgeOptions options_;
  std::vector<Row> rows_;
  std::unordered_map<std::string, size_t> ids_;
  std::vector<Peers> peers_;
  std::unordered_map<std::string, size_t> peer_ids_;
  std::map<size_t, Reduction> reductions_;
  std::map<std::pair<size_t, std::string>, size_t> together_;  // (rank, table) -> its row
  struct RankTogether {
    size_t row = 0;
    RankWatch watch;
  };
  std::map<std::pair<size_t, std::string>, RankTogether> ranks_together_;
  std::map<std::pair<size_t, std::string>, std::vector<double>> from_ranks_;  // in this step, of each row
  std::optional<Schedule> rates_;
  bool rates_of_log_ = false;
  std::map<size_t, Schedule> updates_;                  // by rank
  std::unordered_map<std::string, size_t> table_rows_;  // rows of a table that came in this step
  std::vector<RowChange> changes_;
  size_t ranks_ = 0, watched_ = 0, few_ = 0, losses_ = 0;
  int64_t step_count_ = 0, step_ = 0, last_step_ = -1;
};

}  // namespace msprobe
