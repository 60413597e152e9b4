#include "view/trend/trend_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_set>

#include "base/message.h"
#include "view/trend/trend_cells.h"

namespace msprobe::view {
namespace {

// Column names go into SQL, so only these do.
constexpr std::array<std::string_view, 14> kStats{
    "norm",        "min", "max",         "zeros", "nans",     "mean",  "entropy",
    "softmax_max", "sr",  "kernel_norm", "std_x", "jacobian", "proxy", "token_similarity"};
constexpr std::array<std::string_view, 4> kKey{"rank", "step", "target_id", "metric_id"};
constexpr size_t kMaxTargets = 4'000'000;
constexpr size_t kMaxNameBytes = 4096;
constexpr size_t kMaxTagged = 50'000'000;
constexpr uint64_t kMaxCells = 400'000;      // of one answer
constexpr uint64_t kMaxSorted = 16'000'000;  // cells: 128 MB while they are sorted
constexpr size_t kMaxColumns = 20'000;
constexpr uint64_t kSparse = 16;  // a range with this many times more targets than wanted is not walked

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool Holds(std::string_view name, std::string_view part) {
  return std::search(name.begin(), name.end(), part.begin(), part.end(),
                     [](char a, char b) { return Lower(a) == Lower(b); }) != name.end();
}

std::vector<int64_t> Common(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> out;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

template <typename T>
std::vector<T> Page(const std::vector<T>& all, uint64_t offset, uint64_t limit) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(std::min<uint64_t>(offset, all.size()));
  const auto left = static_cast<uint64_t>(all.end() - begin);
  return std::vector<T>(begin, begin + static_cast<std::ptrdiff_t>(std::min(limit, left)));
}

// Rows of `width` in this order.
template <typename T>
std::vector<T> Picked(const std::vector<T>& all, const std::vector<size_t>& order, size_t width) {
  std::vector<T> out;
  out.reserve(order.size() * width);
  for (const size_t row : order) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * width);
    out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  return out;
}

void SortOnce(std::vector<int64_t>* ids) {
  std::sort(ids->begin(), ids->end());
  ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
}

}  // namespace

StatusOr<std::shared_ptr<TrendFile>> TrendFile::Open(const std::string& path, std::string_view shown) {
  MSP_ASSIGN_OR_RETURN(SqliteDb db, SqliteDb::OpenImmutable(path, shown));
  std::shared_ptr<TrendFile> file(new TrendFile(std::move(db), shown));
  MSP_RETURN_IF_ERROR(file->Load());
  return file;
}

Status TrendFile::Load() {
  MSP_RETURN_IF_ERROR(LoadMetrics());
  MSP_RETURN_IF_ERROR(LoadTargets());
  MSP_RETURN_IF_ERROR(LoadTags());
  return LoadExtent();
}

// A view or a virtual table of that name could run anything; only plain tables are read.
StatusOr<bool> TrendFile::HasTables(const char* names, int64_t count) {
  MSP_ASSIGN_OR_RETURN(SqliteStatement tables,
                       db_.Prepare(fmt::format("SELECT count(*) FROM sqlite_master WHERE type='table' AND name IN ({})"
                                               " AND rootpage>0",
                                               names)));
  MSP_ASSIGN_OR_RETURN(const bool counted, tables.Step());
  return counted && tables.Int(0) == count;
}

// Without this key each cell of a map would be looked for in the whole table.
StatusOr<bool> TrendFile::HasKey(const char* table) {
  MSP_ASSIGN_OR_RETURN(SqliteStatement columns,
                       db_.Prepare(fmt::format("SELECT name, pk FROM pragma_table_info('{}')", table)));
  std::array<std::string, kKey.size()> key;
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, columns.Step());
    if (!more) break;
    const int64_t at = columns.Int(1);
    if (at > 0 && at <= static_cast<int64_t>(key.size())) key[static_cast<size_t>(at - 1)] = columns.Text(0);
  }
  return std::equal(key.begin(), key.end(), kKey.begin());
}

Status TrendFile::LoadMetrics() {
  MSP_ASSIGN_OR_RETURN(const bool whole, HasTables("'monitoring_targets','monitoring_metrics','trend_data'", 3));
  MSP_ASSIGN_OR_RETURN(const bool keyed, HasKey("trend_data"));
  MSP_ASSIGN_OR_RETURN(SqliteStatement columns, db_.Prepare("SELECT name FROM pragma_table_info('trend_data')"));
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, columns.Step());
    if (!more) break;
    if (std::find(kStats.begin(), kStats.end(), columns.Text(0)) != kStats.end())
      columns_.emplace_back(columns.Text(0));
  }
  if (!whole || columns_.empty() || !keyed) {
    return BadInput(Msg("{} is not a trend file: msprobe data2db writes such files", shown_));
  }
  MSP_ASSIGN_OR_RETURN(const bool marks, HasTables("'msprobe_absent'", 1));
  MSP_ASSIGN_OR_RETURN(const bool marks_keyed, HasKey("msprobe_absent"));
  marks_absent_ = marks && marks_keyed;
  MSP_ASSIGN_OR_RETURN(
      SqliteStatement metrics,
      db_.Prepare("SELECT metric_id, metric_name FROM monitoring_metrics ORDER BY metric_id LIMIT 1000"));
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, metrics.Step());
    if (!more) break;
    info_.metrics.push_back({metrics.Int(0), std::string(metrics.Text(1)), columns_, {}});
  }
  return LoadStats();
}

// Which statistics a metric has: the column of its name in the last row of global_stats, "norm,max". Where that is not
// said, all.
Status TrendFile::LoadStats() {
  MSP_ASSIGN_OR_RETURN(const bool known, HasTables("'global_stats'", 1));
  if (!known) return OkStatus();
  MSP_ASSIGN_OR_RETURN(SqliteStatement names, db_.Prepare("SELECT name FROM pragma_table_info('global_stats')"));
  std::vector<std::string> columns;
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, names.Step());
    if (!more) break;
    columns.emplace_back(names.Text(0));
  }
  MSP_ASSIGN_OR_RETURN(SqliteStatement said, db_.Prepare("SELECT * FROM global_stats ORDER BY rowid DESC LIMIT 1"));
  MSP_ASSIGN_OR_RETURN(const bool there, said.Step());
  for (size_t i = 0; there && i < columns.size(); ++i) {
    const std::string own = fmt::format(",{},", said.Text(static_cast<int>(i)));
    for (TrendMetric& metric : info_.metrics) {
      if (metric.name != columns[i]) continue;
      std::vector<std::string> stats = metric.stats;
      std::erase_if(stats, [&](const std::string& stat) { return own.find("," + stat + ",") == std::string::npos; });
      if (!stats.empty()) metric.stats = std::move(stats);
    }
  }
  return OkStatus();
}

Status TrendFile::LoadTargets() {
  MSP_ASSIGN_OR_RETURN(SqliteStatement rows,
                       db_.Prepare("SELECT target_id, target_name, vpp_stage, micro_step FROM monitoring_targets"));
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) break;
    if (targets_.size() == kMaxTargets) {
      return BadInput(Msg("{} holds more than {} targets: collect fewer steps or modules", shown_, kMaxTargets));
    }
    const std::string_view name = rows.Text(1).substr(0, kMaxNameBytes);
    targets_[rows.Int(0)] = {names_.size(), static_cast<uint32_t>(name.size()), rows.Int(2), rows.Int(3)};
    names_.append(name);
  }
  return OkStatus();
}

// Files without tags are shown without them.
Status TrendFile::LoadTags() {
  MSP_ASSIGN_OR_RETURN(const bool tagged_at_all, HasTables("'monitoring_tags','tag_target_mapping'", 2));
  if (!tagged_at_all) return OkStatus();
  std::unordered_map<int64_t, std::string> keys;
  MSP_ASSIGN_OR_RETURN(SqliteStatement tags,
                       db_.Prepare("SELECT tag_id, tag_name, category, metric_id FROM monitoring_tags"
                                   " ORDER BY category, tag_name LIMIT 1000000"));
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, tags.Step());
    if (!more) break;
    const std::string_view name = tags.Text(1).substr(0, kMaxNameBytes);
    keys[tags.Int(0)] = fmt::format("{}\n{}", tags.Int(3), name);
    for (TrendMetric& metric : info_.metrics) {
      if (metric.id != tags.Int(3)) continue;
      metric.tags.emplace_back(name, tags.Text(2));
      break;  // a damaged file may have several of one id
    }
  }
  MSP_ASSIGN_OR_RETURN(SqliteStatement tagged, db_.Prepare("SELECT tag_id, target_id FROM tag_target_mapping"));
  for (size_t i = 0; i < kMaxTagged; ++i) {
    MSP_ASSIGN_OR_RETURN(const bool more, tagged.Step());
    if (!more) break;
    const auto key = keys.find(tagged.Int(0));
    if (key != keys.end()) of_tag_[key->second].push_back(tagged.Int(1));
  }
  for (auto& [key, ids] : of_tag_) SortOnce(&ids);
  return OkStatus();
}

// One walk over the table, in its order: by rank and step.
Status TrendFile::LoadExtent() {
  MSP_ASSIGN_OR_RETURN(SqliteStatement rows, db_.Prepare("SELECT rank, step, target_id, metric_id FROM trend_data"));
  std::set<int64_t> ranks, steps;
  std::unordered_map<int64_t, std::unordered_set<int64_t>> seen;
  for (const TrendMetric& metric : info_.metrics) seen.try_emplace(metric.id);
  int64_t rank = -1, step = -1;
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) break;
    if (rows.Int(0) != rank || ranks.empty()) ranks.insert(rank = rows.Int(0));
    if (rows.Int(1) != step || steps.empty()) steps.insert(step = rows.Int(1));
    if (ranks.size() > kMaxColumns || steps.size() > kMaxColumns) {
      return BadInput(Msg("{} holds more than {} ranks or steps: collect fewer of them", shown_, kMaxColumns));
    }
    const auto targets = seen.find(rows.Int(3));  // of the metrics there are: rows may name any
    if (targets == seen.end() || targets_.count(rows.Int(2)) == 0) continue;
    if (targets->second.insert(rows.Int(2)).second) of_metric_[rows.Int(3)].push_back(rows.Int(2));
  }
  info_.ranks.assign(ranks.begin(), ranks.end());
  info_.steps.assign(steps.begin(), steps.end());
  for (auto& [metric, ids] : of_metric_) SortOnce(&ids);
  // Metrics without a row have nothing to show.
  info_.metrics.erase(std::remove_if(info_.metrics.begin(), info_.metrics.end(),
                                     [this](const TrendMetric& m) { return of_metric_.count(m.id) == 0; }),
                      info_.metrics.end());
  return OkStatus();
}

StatusOr<const TrendMetric*> TrendFile::FindMetric(std::string_view metric, std::string_view stat) const {
  for (const TrendMetric& m : info_.metrics) {
    if (m.name != metric) continue;
    if (std::find(m.stats.begin(), m.stats.end(), stat) != m.stats.end()) return &m;
    return BadInput(Msg("{} has no statistic {} of {}: choose one that the file has", shown_, stat, metric));
  }
  return BadInput(Msg("{} has no metric {}: choose one that the file has", shown_, metric));
}

TrendTargetName TrendFile::NameOf(int64_t id) const {
  const Target& target = targets_.at(id);
  return {id, target.vpp_stage, target.micro_step, names_.substr(target.name, target.length)};
}

// Targets with all tags and the text, by their ids.
StatusOr<std::vector<int64_t>> TrendFile::Chosen(const TrendQuery& query, int64_t metric) const {
  std::vector<int64_t> ids = of_metric_.at(metric);
  for (const std::string& tag : query.tags) {
    const auto tagged = of_tag_.find(fmt::format("{}\n{}", metric, tag));
    if (tagged == of_tag_.end()) {
      return BadInput(Msg("{} has no tag {}: choose one that the file has", shown_, tag));
    }
    ids = Common(ids, tagged->second);
  }
  if (query.text.empty()) return ids;
  const std::string_view names = names_;
  ids.erase(std::remove_if(ids.begin(), ids.end(),
                           [&](int64_t id) {
                             const Target& target = targets_.at(id);
                             return !Holds(names.substr(target.name, target.length), query.text);
                           }),
            ids.end());
  return ids;
}

// The value, and bits of what is not there although there is a row.
std::string TrendFile::ValueColumns(std::string_view stat) const {
  if (!marks_absent_) return fmt::format("t.\"{}\", 0", stat);
  return fmt::format(
      "t.\"{0}\", CASE WHEN t.\"{0}\" IS NULL THEN (SELECT a.stats FROM msprobe_absent a WHERE a.rank=t.rank"
      " AND a.step=t.step AND a.target_id=t.target_id AND a.metric_id=t.metric_id) ELSE 0 END",
      stat);
}

StatusOr<SqliteStatement*> TrendFile::Values(const std::string& stat) {
  const auto found = statements_.find(stat);
  if (found != statements_.end()) {
    found->second.Reset();
    return &found->second;
  }
  MSP_ASSIGN_OR_RETURN(SqliteStatement made,
                       db_.Prepare(fmt::format("SELECT t.target_id, {} FROM trend_data t WHERE t.rank=? AND t.step=?"
                                               " AND t.target_id>=? AND t.target_id<=? AND t.metric_id=?",
                                               ValueColumns(stat))));
  return &statements_.emplace(stat, std::move(made)).first->second;
}

template <typename Take>
Status TrendFile::Walk(const Cells& cells, int64_t first, int64_t last, const Take& take) {
  MSP_ASSIGN_OR_RETURN(SqliteStatement * values, Values(cells.stat));
  values->Bind(1, cells.rank);
  values->Bind(2, cells.step);
  values->Bind(3, first);
  values->Bind(4, last);
  values->Bind(5, cells.metric);
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, values->Step());
    if (!more) break;
    const double value = TrendCell(*values, 1, StatColumn(columns_, cells.stat));
    if (value != kNoTrendCell) take(values->Int(0), value);
  }
  values->Reset();
  return OkStatus();
}

Status TrendFile::FillColumn(const Cells& cells, const std::vector<int64_t>& targets, size_t column, TrendGrid* grid) {
  const auto put = [&](int64_t id, double value) {
    const auto at = std::lower_bound(targets.begin(), targets.end(), id);
    if (at == targets.end() || *at != id) return;
    grid->values[static_cast<size_t>(at - targets.begin()) * grid->columns.size() + column] = value;
  };
  const int64_t first = targets.front(), last = targets.back();
  const uint64_t range = static_cast<uint64_t>(last) - static_cast<uint64_t>(first);
  if (range / kSparse <= targets.size()) return Walk(cells, first, last, put);
  for (const int64_t id : targets) MSP_RETURN_IF_ERROR(Walk(cells, id, id, put));
  return OkStatus();
}

Status TrendFile::CheckSortable(uint64_t rows, uint64_t columns) const {
  if (rows * columns <= kMaxSorted) return OkStatus();
  return BadInput(
      Msg("{} has {} rows of {} values here, too many to sort: narrow them by a name or a tag", shown_, rows, columns));
}

Status TrendFile::FillTargets(const TrendQuery& query, int64_t metric, const std::vector<int64_t>& targets,
                              TrendGrid* grid) {
  grid->values.assign(targets.size() * grid->columns.size(), kNoTrendCell);
  if (targets.empty()) return OkStatus();
  for (size_t i = 0; i < grid->columns.size(); ++i) {
    Cells cells{query.stat, metric, query.value, query.value};
    (query.dimension == TrendDimension::kStep ? cells.rank : cells.step) = grid->columns[i];
    MSP_RETURN_IF_ERROR(FillColumn(cells, targets, i, grid));
  }
  return OkStatus();
}

StatusOr<TrendGrid> TrendFile::Grid(const TrendQuery& query) {
  MSP_ASSIGN_OR_RETURN(const TrendMetric* metric, FindMetric(query.metric, query.stat));
  const std::lock_guard lock(mutex_);
  TrendGrid grid;
  grid.columns = query.dimension == TrendDimension::kStep ? info_.ranks : info_.steps;
  const uint64_t limit = std::min<uint64_t>(query.limit, std::max<uint64_t>(1, kMaxCells / grid.columns.size()));
  if (query.dimension == TrendDimension::kTarget) return TargetGrid(query, metric->id, limit, std::move(grid));
  const std::vector<int64_t>& known = query.dimension == TrendDimension::kStep ? info_.steps : info_.ranks;
  if (!std::binary_search(known.begin(), known.end(), query.value)) {
    return BadInput(Msg("{} has no such step or rank ({}): choose one that the file has", shown_, query.value));
  }
  MSP_ASSIGN_OR_RETURN(std::vector<int64_t> targets, Chosen(query, metric->id));
  grid.total = targets.size();
  if (!query.outliers_first) {
    targets = Page(targets, query.offset, limit);
    MSP_RETURN_IF_ERROR(FillTargets(query, metric->id, targets, &grid));
  } else {
    MSP_RETURN_IF_ERROR(CheckSortable(targets.size(), grid.columns.size()));
    MSP_RETURN_IF_ERROR(FillTargets(query, metric->id, targets, &grid));
    const auto order = Page(OutlierOrder(grid.values, grid.columns.size(), OutlierLine::kRow), query.offset, limit);
    targets = Picked(targets, order, 1);
    grid.values = Picked(grid.values, order, grid.columns.size());
  }
  for (const int64_t id : targets) grid.rows.push_back(NameOf(id));
  return grid;
}

StatusOr<TrendGrid> TrendFile::TargetGrid(const TrendQuery& query, int64_t metric, uint64_t limit, TrendGrid grid) {
  if (targets_.count(query.value) == 0) {
    return BadInput(Msg("{} has no target {}: choose one that the file has", shown_, query.value));
  }
  grid.total = info_.ranks.size();
  grid.ranks = info_.ranks;
  if (query.outliers_first) {
    MSP_RETURN_IF_ERROR(CheckSortable(grid.ranks.size(), grid.columns.size()));
  } else {
    grid.ranks = Page(grid.ranks, query.offset, limit);
  }
  grid.values.assign(grid.ranks.size() * grid.columns.size(), kNoTrendCell);
  for (size_t r = 0; r < grid.ranks.size(); ++r) {
    for (size_t s = 0; s < grid.columns.size(); ++s) {
      double& cell = grid.values[r * grid.columns.size() + s];
      MSP_RETURN_IF_ERROR(Walk({query.stat, metric, grid.ranks[r], grid.columns[s]}, query.value, query.value,
                               [&](int64_t, double value) { cell = value; }));
    }
  }
  if (!query.outliers_first) return grid;
  const auto order = Page(OutlierOrder(grid.values, grid.columns.size(), OutlierLine::kColumn), query.offset, limit);
  grid.ranks = Picked(grid.ranks, order, 1);
  grid.values = Picked(grid.values, order, grid.columns.size());
  return grid;
}

StatusOr<std::vector<TrendPoint>> TrendFile::Line(const TrendLineQuery& query) {
  if (query.rank.has_value() == query.step.has_value()) {
    return UsageError(Msg("a line follows the steps of a rank or the ranks of a step: give rank or step"));
  }
  MSP_ASSIGN_OR_RETURN(const TrendMetric* metric, FindMetric(query.metric, query.stat));
  const std::lock_guard lock(mutex_);
  int64_t target = -1;
  for (const int64_t id : of_metric_.at(metric->id)) {
    const Target& t = targets_.at(id);
    if (t.vpp_stage == query.vpp_stage && t.micro_step == query.micro_step &&
        std::string_view(names_).substr(t.name, t.length) == query.name) {
      target = id;
    }
  }
  if (target < 0) return BadInput(Msg("{} has no target {} with {}", shown_, query.name, query.metric));
  std::vector<TrendPoint> line;
  for (const int64_t at : query.rank ? info_.steps : info_.ranks) {
    MSP_RETURN_IF_ERROR(Walk({query.stat, metric->id, query.rank.value_or(at), query.step.value_or(at)}, target, target,
                             [&](int64_t, double value) {
                               line.push_back({at, value});
                             }));
  }
  return line;
}

}  // namespace msprobe::view
