#include "judge/run_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace msprobe {
namespace {

constexpr double kSupport = 4.5, kOddBatch = 3;
constexpr size_t kHeldLongEnough = 100;  // steps after which a row that stops is told
constexpr size_t kEqualLongEnough = 30;  // and where values were equal to the last bit
constexpr int64_t kOfLeap = 48;          // steps after a leap of the loss
constexpr size_t kAbsentLongEnough = 2;
constexpr double kStepsOfRun = 2000, kDetectorsOfSeries = 5;

bool IsReplicated(std::string_view table) {
  return table == "grad_reduced" || table.starts_with("param") || table.starts_with("exp_avg");
}

// Which columns are watched for changes; the others only take part in relations.
bool IsWatched(const std::string& table, const std::string& column) {
  if (IsSetByScript(table) || table == "input_checksum") return false;
  if (column == "norm" || column == "ratio" || column == "value") return true;
  if (column == "min" || column == "mean" || column == "zeros" || column == "nans" || column == "id") return false;
  if (column == "max") return table == "actv";
  return true;
}

bool IsSum(const std::string& table) {
  return table.starts_with("exp_avg") || table == "param_origin" || table == "param_updated";
}

}  // namespace

// Of these a step with an easy batch has small ones, in all layers.
bool RunJudge::IsGradient(const std::string& table) { return table.starts_with("grad_") || table == "actv_grad"; }

// Running means of squares leap when one gradient is large, and then fall for many steps: in healthy calibration runs
// their strongest changes are a quarter stronger than those of all other series.
double RunJudge::TrustIn(const std::string& table) {
  return table == "exp_avg_sq" ? 0.75 : table == "exp_avg" ? 0.85 : 1;
}

double RunJudge::LeastOf(const std::string& table) {
  return table.starts_with("exp_avg") ? kLeastOfMoments : kLeastChange;
}

size_t RunJudge::AddRow(const RowKey& key, std::span<const std::string> columns) {
  const std::string common = fmt::format("{}\n{}\n{}\n{}", key.table, key.vpp_stage, key.micro_step, key.name);
  const auto [known, fresh] = ids_.emplace(fmt::format("{}\n{}", key.rank, common), rows_.size());
  if (!fresh) return known->second;
  Row row;
  row.key = key;
  row.columns.assign(columns.begin(), columns.end());
  row.now.assign(columns.size(), std::nan(""));
  row.before = row.now;
  row.watches.resize(columns.size());
  ranks_ = std::max(ranks_, key.rank + 1);
  for (size_t c = 0; c < columns.size(); ++c) {
    if (columns[c] == "norm") row.norm = c;
    if (!IsWatched(key.table, columns[c])) continue;
    const bool extreme = columns[c] == "max";
    row.watches[c].emplace(SeriesScale::kLogarithm, !extreme, extreme ? kLeastLeap : LeastOf(key.table));
    if (IsSum(key.table) || extreme) row.watches[c]->IgnoreNoise();
    if (key.table == "loss" || extreme || IsGradient(key.table)) row.watches[c]->IgnoreDips();
    ++(key.table == "loss" ? losses_ : watched_);
  }
  if (key.table == "loss") row.loss.emplace();
  if (IsSetByScript(key.table)) row.given.emplace();
  if (!IsGiven(key.table)) {
    const auto [peers, first] = peer_ids_.emplace(common, peers_.size());
    if (first) peers_.emplace_back();
    row.peers = peers->second;
    peers_[row.peers].rows.push_back(rows_.size());
  }
  const auto partner = [&](const char* table) {
    const auto found =
        ids_.find(fmt::format("{}\n{}\n{}\n{}\n{}", key.rank, table, key.vpp_stage, key.micro_step, key.name));
    return found == ids_.end() ? SIZE_MAX : found->second;
  };
  if (key.table == "param_updated") {
    row.partner = partner("param_origin");
  } else if (key.table == "grad_reduced") {
    row.partner = partner("grad_unreduced");
    reductions_[key.rank].rows.push_back(rows_.size());
  }
  rows_.push_back(std::move(row));
  return rows_.size() - 1;
}

void RunJudge::Put(size_t number, std::span<const double> values) {
  Row& row = rows_[number];
  if (row.seen == step_count_) return;  // a step that a resumed run repeats
  row.before.swap(row.now);
  row.seen_before = row.seen;
  row.seen = step_count_;
  for (size_t c = 0; c < row.now.size(); ++c) row.now[c] = c < values.size() ? values[c] : std::nan("");
}

RunJudge::Family RunJudge::FamilyOf(const Row& row) {
  return row.key.table == "loss" ? Family::kLoss : row.together ? Family::kTogether : Family::kSingle;
}

double RunJudge::alarm_strength(Family family) const {
  const size_t series = family == Family::kLoss ? losses_ : family == Family::kTogether ? few_ : watched_;
  const double tests = static_cast<double>(std::max<size_t>(series, 1)) * kStepsOfRun * kDetectorsOfSeries;
  return std::log10(tests / (options_.false_alarms / 3));
}

double RunJudge::support_strength() { return kSupport; }

bool RunJudge::IsAlarm(const RowChange& c) const {
  return c.step >= options_.from_step && c.change.strength >= alarm_strength(FamilyOf(rows_[c.row]));
}

void RunJudge::Tell(size_t row, size_t column, const Change& change, std::optional<int64_t> culprit) {
  changes_.push_back({change, row, column, step_, culprit, false});
}

void RunJudge::ForgetChanges(int64_t before) {
  changes_.erase(changes_.begin(),
                 std::find_if(changes_.begin(), changes_.end(), [&](const RowChange& c) { return c.step >= before; }));
}

void RunJudge::JudgeRow(size_t number) {
  Row& row = rows_[number];
  if (!IsHere(number)) return;
  row.unbroken = row.seen_before == step_count_ - 1 ? row.unbroken + 1 : 1;
  row.absent = 0;
  if (row.loss) JudgeLoss(number);
  if (row.given) JudgeGiven(number);
  // Beside an alarm of the same step, a batch that is less odd is worth a word, too.
  const double least = row.key.table == "model_input" ? kOddBatch : support_strength();
  for (size_t c = 0; c < row.watches.size(); ++c) {
    if (!row.watches[c]) continue;
    // A value that is missing, such as the mean of no elements, is NaN here: only a norm says that there are NaN.
    if (std::isnan(row.now[c]) && c != row.norm) continue;
    if (auto change = row.watches[c]->Add(step_, row.now[c], least)) {
      if (change->strength < kExactStrength / 2) change->strength *= TrustIn(row.key.table);
      if (IsOfSchedule(row, *change) || IsOfGradient(row, *change)) continue;
      if (row.loss && (change->detector == Detector::kNotFinite || step_ <= row.leapt_at + kOfLeap)) continue;
      if (row.loss && row.loss->IsUsual(*change)) change->strength = least;  // beside others it is evidence
      const bool is_given = IsGiven(row.key.table) && change->detector != Detector::kNotFinite;
      if (is_given) change->strength = std::min(change->strength, support_strength());  // other data are no fault
      if (c == row.norm && IsOfBatch(row, *change)) change->strength = least;
      if (change->strength >= least) Tell(number, c, *change);
    }
  }
}

void RunJudge::JudgeLoss(size_t number) {
  Row& row = rows_[number];
  const auto watched =
      std::find_if(row.watches.begin(), row.watches.end(), [](const auto& w) { return w.has_value(); });
  if (watched == row.watches.end()) return;
  const auto column = static_cast<size_t>(watched - row.watches.begin());
  const auto change = row.loss->Add(step_, row.now[column], alarm_strength(Family::kLoss));
  if (!change) return;
  row.leapt_at = step_;
  Tell(number, column, *change);
}

// By itself such a change is no alarm: beside an alarm it is the cause.
void RunJudge::JudgeGiven(size_t number) {
  Row& row = rows_[number];
  auto change = row.given->Add(step_, row.now[0]);
  if (!change) return;
  change->strength = support_strength();
  Tell(number, 0, *change);
}

void RunJudge::JudgeMissing() {
  table_rows_.clear();
  const auto place = [](const Row& row) { return fmt::format("{}\n{}", row.key.rank, row.key.table); };
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].together) continue;
    if (rows_[i].unbroken >= kHeldLongEnough && !rows_[i].told_missing && !IsHere(i)) ++table_rows_[place(rows_[i])];
  }
  if (table_rows_.empty()) return;
  std::unordered_map<std::string, size_t> here;
  for (size_t i = 0; i < rows_.size(); ++i) here[place(rows_[i])] += IsHere(i) ? 1 : 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (row.together || row.columns.empty() || IsGiven(row.key.table)) continue;
    if (IsHere(i)) {
      row.told_missing = false;
      continue;
    }
    if (row.unbroken < kHeldLongEnough || row.told_missing || here[place(row)] == 0) continue;
    if (++row.absent < kAbsentLongEnough) continue;
    row.told_missing = true;
    const size_t column = row.norm == SIZE_MAX ? 0 : row.norm;
    const int64_t onset = step_ - static_cast<int64_t>(kAbsentLongEnough) + 1;
    Tell(i, column, {Detector::kMissing, onset, kExactStrength, row.now[column], std::nan("")});
  }
}

// What the optimizer left is what it finds at the next step.
void RunJudge::JudgeOutside() {
  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (row.partner == SIZE_MAX || row.never_held || row.key.table != "param_updated") continue;
    const Row& origin = rows_[row.partner];
    if (origin.seen != step_count_ || !IsHere(i) || row.seen_before < 0 || row.seen_before != step_count_ - 1) continue;
    for (size_t c = 0; c < row.columns.size(); ++c) {
      const double left = row.before[c], found = origin.now[c];
      if (left == found || (std::isnan(left) && std::isnan(found))) continue;
      if (row.held >= kEqualLongEnough) {
        Tell(row.partner, c, {Detector::kOutside, step_, kExactStrength, left, found});
        row.held = 0;
      } else {
        row.never_held = true;
      }
      break;
    }
    ++row.held;
  }
}

void RunJudge::JudgeReplicas(Peers* peers) {
  if (peers->differ || !IsReplicated(rows_[peers->rows[0]].key.table)) return;
  const size_t count = peers->rows.size();
  for (size_t c = 0; c < rows_[peers->rows[0]].now.size(); ++c) {
    std::map<double, size_t> values;
    for (const size_t row : peers->rows) {
      if (!std::isnan(rows_[row].now[c])) ++values[rows_[row].now[c]];
    }
    if (values.size() <= 1) continue;
    peers->differ = true;
    if (peers->equal < kEqualLongEnough) return;
    const auto most =
        std::max_element(values.begin(), values.end(), [](auto& a, auto& b) { return a.second < b.second; });
    std::optional<int64_t> culprit;
    size_t shown = peers->rows[0];
    for (const size_t row : peers->rows) {
      if (most->second * 2 <= count || rows_[row].now[c] == most->first) continue;
      shown = row;
      culprit = most->second + 1 == count ? std::optional(static_cast<int64_t>(rows_[row].key.rank)) : std::nullopt;
    }
    const double other = culprit ? most->first : rows_[peers->rows[1]].now[c];
    Tell(shown, c, {Detector::kReplicas, step_, kExactStrength, other, rows_[shown].now[c]}, culprit);
    return;
  }
  ++peers->equal;
}

void RunJudge::JudgePeers() {
  for (Peers& peers : peers_) {
    if (peers.rows.size() < 2) continue;
    if (!std::all_of(peers.rows.begin(), peers.rows.end(), [&](size_t r) { return IsHere(r); })) continue;
    JudgeReplicas(&peers);
    JudgeAgainstRanks(&peers);
  }
  JudgeRanksTogether();
}

void RunJudge::EndStep(int64_t step) {
  step_ = step;
  const size_t first = changes_.size();
  FollowSchedules();
  JudgeMoments();
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (!rows_[i].together) JudgeRow(i);
  }
  JudgeTogether();
  JudgeMissing();
  JudgeOutside();
  JudgePeers();
  for (auto& [rank, reduction] : reductions_) {
    JudgeReduction(&reduction);
    JudgeClip(&reduction);
  }
  std::stable_sort(changes_.begin() + static_cast<std::ptrdiff_t>(first), changes_.end(),
                   [](const RowChange& a, const RowChange& b) { return a.change.strength > b.change.strength; });
  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (row.norm == SIZE_MAX || !IsHere(i) || !std::isfinite(row.now[row.norm])) continue;
    row.highest = std::max(row.highest, row.now[row.norm]);
  }
  last_step_ = step;
  ++step_count_;
}

}  // namespace msprobe
