#include "trend/monitor_trend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

#include "base/file.h"
#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "monitor/rank_directory.h"
#include "sheet/sheet_reader.h"
#include "trend/trend_db.h"
#include "trend/trend_tags.h"

namespace msprobe {
namespace {

constexpr std::array<const char*, 9> kMonitorMetrics{"actv",         "actv_grad",      "exp_avg",
                                                     "exp_avg_sq",   "grad_unreduced", "grad_reduced",
                                                     "param_origin", "param_updated",  "other"};
constexpr std::array<const char*, 14> kMonitorStats{
    "norm",        "min", "max",         "zeros", "nans",     "mean",  "entropy",
    "softmax_max", "sr",  "kernel_norm", "std_x", "jacobian", "proxy", "token_similarity"};
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using Stats = std::array<double, kMonitorStats.size()>;

struct MonitorRow {
  uint32_t name = 0;
  int64_t vpp_stage = 0, step = 0, micro_step = 0;
  size_t values = 0;  // where its values begin
};

// One file, read. Values stand one after another, as many a row as the file has columns of statistics.
struct MonitorPart {
  std::vector<MonitorRow> rows;
  std::vector<double> values;
  std::vector<size_t> stats;  // positions in kMonitorStats of its columns
  std::deque<std::string> names;
  std::unordered_map<std::string_view, uint32_t> ids;
  uint64_t skipped = 0, cut = 0;
  std::string failed;

  uint32_t Id(const std::string& name) {
    const auto found = ids.find(name);
    if (found != ids.end()) return found->second;
    names.push_back(name);
    return ids.emplace(names.back(), static_cast<uint32_t>(names.size() - 1)).first->second;
  }
};

// "grad_reduced_0-9.csv" -> "grad_reduced".
std::string MetricOf(std::string_view file) {
  constexpr std::string_view kSuffix = ".csv";
  if (!EndsWith(file, kSuffix)) return "";
  file.remove_suffix(kSuffix.size());
  const size_t steps = file.rfind('_');
  const size_t dash = file.rfind('-');
  if (steps == std::string_view::npos || dash == std::string_view::npos || dash < steps) return "";
  if (!IsDigits(file.substr(steps + 1, dash - steps - 1)) || !IsDigits(file.substr(dash + 1))) return "";
  const std::string_view metric = file.substr(0, steps);
  return std::find(kMonitorMetrics.begin(), kMonitorMetrics.end(), metric) == kMonitorMetrics.end()
             ? ""
             : std::string(metric);
}

std::optional<double> Number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// pandas writes NaN as nothing.
double StatOf(std::string_view text) {
  if (text.empty()) return kNan;
  const std::optional<double> value = Number(text);
  return value ? TrendValue(*value) : kNoTrendValue;
}

// pandas writes whole numbers as 3.0 where a column has gaps.
std::optional<int64_t> Whole(std::string_view text) {
  const std::optional<double> value = Number(text);
  if (!value || !(std::abs(*value) < 1e9) || *value != std::floor(*value)) return std::nullopt;
  return static_cast<int64_t>(*value);
}

// Reads one csv file.
class CsvPart {
 public:
  explicit CsvPart(const TrendMapping& mapping) : mapping_(mapping) {}

  StatusOr<MonitorPart> Read(const std::string& path) {
    const auto take = [this](const std::vector<SheetCell>& cells, bool first) {
      if (first) return Head(cells);
      Row(cells);
      return OkStatus();
    };
    const Status status = ReadCutCsv(path, take, &part_.cut);
    if (!status.ok() && status.code() != Code::kBadInput) return status;
    if (!status.ok()) part_.failed = status.message();
    return std::move(part_);
  }

 private:
  Status Head(const std::vector<SheetCell>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string& name = cells[i].text;
      const auto stat = std::find(kMonitorStats.begin(), kMonitorStats.end(), name);
      if (stat != kMonitorStats.end()) {
        part_.stats.push_back(static_cast<size_t>(stat - kMonitorStats.begin()));
        stat_columns_.push_back(i);
      }
      for (size_t k = 0; k < kKeys.size(); ++k) {
        if (name == kKeys[k]) keys_[k] = i;
      }
    }
    if (keys_[kName] == kAbsent || keys_[kVpp] == kAbsent) {
      return BadInput(Msg("it has no columns name and vpp_stage: is it a file of a training monitor?"));
    }
    return OkStatus();
  }

  void Row(const std::vector<SheetCell>& cells) {
    const auto text = [&](size_t at) {
      return at < cells.size() ? std::string_view(cells[at].text) : std::string_view();
    };
    const auto whole = [&](size_t key) { return keys_[key] == kAbsent ? 0 : Whole(text(keys_[key])); };
    const auto vpp = whole(kVpp), step = whole(kStep), micro = whole(kMicro);
    if (!vpp || !step || !micro || *micro < 0 || text(keys_[kName]).empty()) {
      ++part_.skipped;
      return;
    }
    std::string name(text(keys_[kName]));
    for (const auto& [from, to] : mapping_) ReplaceAll(&name, from, to);
    part_.rows.push_back({part_.Id(name), *vpp, *step, *micro, part_.values.size()});
    for (const size_t column : stat_columns_) part_.values.push_back(StatOf(text(column)));
  }

  static constexpr size_t kAbsent = static_cast<size_t>(-1);
  static constexpr std::array<const char*, 4> kKeys{"name", "vpp_stage", "step", "micro_step"};
  enum Key : size_t { kName, kVpp, kStep, kMicro };

  const TrendMapping& mapping_;
  MonitorPart part_;
  std::array<size_t, kKeys.size()> keys_{kAbsent, kAbsent, kAbsent, kAbsent};
  std::vector<size_t> stat_columns_;
};

// Rows of some blocks of monitor.series.
MonitorPart SeriesPart(const MonitorFile& file, const TrendMapping& mapping) {
  MonitorPart part;
  const SeriesFile& series = *file.series;
  std::vector<size_t> columns;
  const auto& names = series.tables()[file.table].columns;
  for (size_t c = 0; c < names.size(); ++c) {
    const auto stat = std::find(kMonitorStats.begin(), kMonitorStats.end(), names[c]);
    if (stat == kMonitorStats.end()) continue;
    part.stats.push_back(static_cast<size_t>(stat - kMonitorStats.begin()));
    columns.push_back(c);
  }
  for (size_t b = file.first; b < file.end; ++b) {
    const SeriesFile::Values block = series.block(b);
    if (block.table != file.table) continue;
    for (size_t r = 0; r < block.series.size(); ++r) {
      const SeriesFile::Series& of = series.series()[block.series[r]];
      std::string name = of.name;
      for (const auto& [from, to] : mapping) ReplaceAll(&name, from, to);
      const int64_t micro_step = std::max<int64_t>(of.micro_step, 0);
      part.rows.push_back({part.Id(name), of.vpp_stage, block.step, micro_step, part.values.size()});
      for (const size_t c : columns) part.values.push_back(TrendValue(block.values[c * block.series.size() + r]));
    }
  }
  return part;
}

// What must be known before the first row is written.
struct Survey {
  std::array<bool, kMonitorStats.size()> stats{};
  std::map<std::string, std::array<bool, kMonitorStats.size()>> of_metric;
  std::map<int64_t, int64_t> micro_steps;  // step -> how many it has
  TrendExtent extent;
  uint64_t rows = 0;

  void Add(const MonitorFile& file, const MonitorPart& part) {
    if (part.rows.empty()) return;
    auto& own = of_metric[file.metric];
    for (const size_t stat : part.stats) stats[stat] = own[stat] = true;
    for (const MonitorRow& row : part.rows) {
      if (rows++ == 0) extent.min_step = extent.max_step = row.step;
      extent.min_step = std::min(extent.min_step, row.step);
      extent.max_step = std::max(extent.max_step, row.step);
      int64_t& most = micro_steps[row.step];
      most = std::max(most, row.micro_step + 1);
    }
    extent.max_rank = std::max(extent.max_rank, file.rank);
  }

  std::vector<std::string> Names(const std::array<bool, kMonitorStats.size()>& which) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < kMonitorStats.size(); ++i) {
      if (which[i]) names.emplace_back(kMonitorStats[i]);
    }
    return names;
  }
};

class MonitorWriter {
 public:
  MonitorWriter(TrendDb* db, const Survey& survey, bool micro_steps)
      : db_(db), survey_(survey), by_micro_(micro_steps) {
    int64_t sum = 0;
    for (const auto& [step, count] : survey.micro_steps) {
      first_[step] = sum;
      sum += count;
    }
    steps_ = sum;
  }

  Status Take(const MonitorFile& file, const MonitorPart& part) {
    if (part.rows.empty()) return OkStatus();
    MSP_ASSIGN_OR_RETURN(const int64_t metric, db_->Metric(file.metric));
    auto& tagged = tagged_[metric];
    for (const MonitorRow& row : part.rows) {
      // A training that runs adds rows after the survey; they have no place among the steps.
      const auto known = survey_.micro_steps.find(row.step);
      if (known == survey_.micro_steps.end() || row.micro_step >= known->second) continue;
      const std::string& name = part.names[row.name];
      MSP_ASSIGN_OR_RETURN(const int64_t target, db_->Target(name, row.vpp_stage, by_micro_ ? 0 : row.micro_step));
      tagged.try_emplace(target, name);
      // What no file of the metric has, global_stats says once for all rows.
      const auto& of_metric = survey_.of_metric.at(file.metric);
      Stats values;
      for (size_t i = 0; i < kMonitorStats.size(); ++i) values[i] = of_metric[i] ? kNoTrendValue : kNan;
      for (size_t i = 0; i < part.stats.size(); ++i) values[part.stats[i]] = part.values[row.values + i];
      size_t used = 0;
      for (size_t i = 0; i < kMonitorStats.size(); ++i) {
        if (survey_.stats[i]) values[used++] = values[i];
      }
      const int64_t step = by_micro_ ? first_.at(row.step) + row.micro_step : row.step;
      MSP_RETURN_IF_ERROR(db_->Row(file.rank, step, target, metric, values.data()));
    }
    return OkStatus();
  }

  Status Finish(TrendReport* report) {
    for (const auto& [metric, targets] : tagged_) {
      for (const auto& [target, name] : targets) MSP_RETURN_IF_ERROR(db_->Tag(metric, target, MonitorTags(name)));
    }
    TrendExtent extent = survey_.extent;
    if (by_micro_) {
      extent.min_step = 0;
      extent.max_step = steps_ - 1;
    }
    for (const char* metric : kMonitorMetrics) {
      const auto found = survey_.of_metric.find(metric);
      if (found != survey_.of_metric.end()) extent.metrics.push_back({metric, survey_.Names(found->second)});
    }
    report->rows = db_->rows();
    report->targets = db_->targets();
    report->max_rank = extent.max_rank;
    report->min_step = extent.min_step;
    report->max_step = extent.max_step;
    report->path = db_->path();
    return db_->Commit(extent);
  }

 private:
  TrendDb* db_;
  const Survey& survey_;
  bool by_micro_;
  std::map<int64_t, int64_t> first_;  // step -> its first micro step among all
  int64_t steps_ = 0;
  std::map<int64_t, std::map<int64_t, std::string>> tagged_;  // metric -> its targets
};

using TakePart = std::function<Status(size_t, MonitorPart&&)>;

Status ReadParts(const std::vector<MonitorFile>& files, const TrendMapping& mapping, const TakePart& take) {
  return ParallelOrdered<MonitorPart>(
      files.size(), static_cast<size_t>(ThreadCount()) + 1,
      [&](size_t i) -> StatusOr<MonitorPart> {
        if (files[i].series) return SeriesPart(files[i], mapping);
        return CsvPart(mapping).Read(files[i].path);
      },
      take);
}

// In stretches of so many values that one is held in memory; false when the file has none of these metrics.
StatusOr<bool> AddSeries(const std::string& path, int64_t rank, std::vector<MonitorFile>* files) {
  constexpr size_t kValuesOfPart = 2'000'000;
  MSP_ASSIGN_OR_RETURN(SeriesFile opened, SeriesFile::Open(path));
  const auto series = std::make_shared<const SeriesFile>(std::move(opened));
  const size_t before = files->size();
  for (size_t t = 0; t < series->tables().size(); ++t) {
    const std::string& metric = series->tables()[t].name;
    if (std::find(kMonitorMetrics.begin(), kMonitorMetrics.end(), metric) == kMonitorMetrics.end()) continue;
    size_t values = 0, first = 0;
    for (size_t b = 0; b < series->blocks(); ++b) {
      const SeriesFile::Values block = series->block(b);
      if (block.table == t) values += block.series.size() * block.columns;
      if (values == 0 || (values < kValuesOfPart && b + 1 < series->blocks())) continue;
      files->push_back({path, metric, rank, series, t, first, b + 1});
      first = b + 1;
      values = 0;
    }
  }
  return files->size() > before;
}

}  // namespace

StatusOr<std::vector<MonitorFile>> FindMonitorFiles(const std::string& directory) {
  MSP_ASSIGN_OR_RETURN(const std::vector<RankDirectory> runs, FindRankDirectories(directory));
  std::vector<MonitorFile> files;
  for (const RankDirectory& run : runs) {
    if (const std::string series = JoinPath(run.path, "monitor.series"); IsRegularFile(series)) {
      const auto found = AddSeries(series, run.rank, &files);
      if (!found.ok() && found.status().code() != Code::kBadInput) return found.status();
      if (found.ok() && *found) continue;
    }
    MSP_ASSIGN_OR_RETURN(const std::vector<std::string> inside, ListDirectory(run.path));
    for (const std::string& name : inside) {
      std::string metric = MetricOf(name);
      if (!metric.empty()) files.push_back({JoinPath(run.path, name), std::move(metric), run.rank, nullptr, 0, 0, 0});
    }
  }
  // Targets are numbered metric by metric.
  const auto place = [](const MonitorFile& file) {
    return std::find(kMonitorMetrics.begin(), kMonitorMetrics.end(), file.metric);
  };
  std::stable_sort(files.begin(), files.end(),
                   [&](const MonitorFile& a, const MonitorFile& b) { return place(a) < place(b); });
  return files;
}

StatusOr<TrendReport> WriteMonitorTrend(const std::vector<MonitorFile>& files, const TrendSettings& settings) {
  TrendReport report;
  Survey survey;
  MSP_RETURN_IF_ERROR(ReadParts(files, settings.mapping, [&](size_t i, MonitorPart&& part) {
    if (!part.failed.empty()) report.warnings.push_back(Msg("{}: {}", files[i].path, part.failed));
    if (part.skipped > 0) {
      report.warnings.push_back(Msg("{}: {} rows without a name or with steps that are not numbers are left out",
                                    files[i].path, part.skipped));
    }
    if (part.cut > 0) {
      report.warnings.push_back(
          Msg("{}: {} rows that were cut are left out: the training may have been killed", files[i].path, part.cut));
    }
    report.left_out += part.cut + (part.failed.empty() ? 0 : 1);
    survey.Add(files[i], part);
    return OkStatus();
  }));
  if (survey.rows == 0)
    return BadInput(report.warnings.empty() ? Msg("the csv files of the monitor are empty") : report.warnings.front());
  MSP_ASSIGN_OR_RETURN(auto db, TrendDb::Create(settings.output, survey.Names(survey.stats)));
  MonitorWriter writer(db.get(), survey, settings.micro_steps);
  MSP_RETURN_IF_ERROR(
      ReadParts(files, settings.mapping, [&](size_t i, MonitorPart&& part) { return writer.Take(files[i], part); }));
  MSP_RETURN_IF_ERROR(writer.Finish(&report));
  return report;
}

}  // namespace msprobe
