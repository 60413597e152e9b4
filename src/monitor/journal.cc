#include "monitor/journal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace msprobe {
namespace {

std::string ShapeText(const TensorView& view) {
  std::string text = "[";
  for (int i = 0; i < view.ndim; ++i) {
    if (i > 0) text += ", ";
    AppendInt(text, view.shape[i]);
  }
  return text + "]";
}

void SetExtreme(DType dtype, const Stats& s, bool largest, CsvCell* cell) {
  if (s.count == 0) return cell->SetMissing();
  if (dtype == DType::kBool) return cell->SetText((largest ? s.max : s.min) != 0 ? "True" : "False");
  if (!IsInteger(dtype)) return cell->SetReal(largest ? s.max : s.min);
  if (dtype < DType::kUInt8 || dtype > DType::kUInt64) return cell->SetInteger(largest ? s.int_max : s.int_min);
  const uint64_t v = largest ? s.uint_max : s.uint_min;
  if (v > INT64_MAX) return cell->SetReal(static_cast<double>(v));
  cell->SetInteger(static_cast<int64_t>(v));
}

double NumberOf(const CsvCell& cell) {
  switch (cell.kind) {
    case CsvCell::Kind::kReal: return cell.real;
    case CsvCell::Kind::kInteger: return static_cast<double>(cell.integer);
    case CsvCell::Kind::kText: return cell.text == "True" ? 1 : cell.text == "False" ? 0 : std::nan("");
    case CsvCell::Kind::kMissing: break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

Journal::Column Journal::KindOf(const std::string& column) {
  static constexpr std::array<std::string_view, 9> kNames{"norm", "min",  "max",   "zeros", "nans",
                                                          "id",   "mean", "shape", "dtype"};
  return static_cast<Column>(std::find(kNames.begin(), kNames.end(), column) - kNames.begin());
}

void Journal::SetStatistic(Column column, const TensorSummary& summary, const TensorView& view, CsvCell* cell) {
  const Stats& s = summary.stats;
  if (!summary.readable) return cell->SetMissing();
  switch (column) {
    case Column::kNorm: return cell->SetReal(s.norm);
    case Column::kMin: return SetExtreme(view.dtype, s, false, cell);
    case Column::kMax: return SetExtreme(view.dtype, s, true, cell);
    case Column::kNans: return cell->SetInteger(s.nan_count);
    case Column::kMean: return s.count > 0 ? cell->SetReal(s.mean) : cell->SetMissing();
    case Column::kId: return view.ndim == 0 ? SetExtreme(view.dtype, s, true, cell) : cell->SetMissing();
    case Column::kZeros:
      if (s.count == 0 || summary.near_zero < 0 || view.dtype == DType::kBool) return cell->SetMissing();
      return cell->SetReal(static_cast<double>(summary.near_zero) / static_cast<double>(s.count));
    default: return cell->SetMissing();
  }
}

StatusOr<std::unique_ptr<Journal>> Journal::Open(JournalOptions options) {
  MSP_RETURN_IF_ERROR(MakeOutputDir(options.directory));
  std::unique_ptr<Journal> journal(new Journal(std::move(options)));
  const JournalOptions& o = journal->options_;
  if (o.series) MSP_RETURN_IF_ERROR(journal->writer_.Open(JoinPath(o.directory, "monitor.series")));
  if (o.events) {
    MSP_ASSIGN_OR_RETURN(EventFile events, EventFile::Create(o.directory));
    journal->events_.emplace(std::move(events));
  }
  return journal;
}

uint32_t Journal::AddTable(const std::string& name, std::vector<std::string> columns, bool micro_steps, Order order) {
  const std::lock_guard lock(mutex_);
  Table table;
  table.name = name;
  table.micro_steps = micro_steps;
  table.order = order;
  for (size_t i = 0; i < columns.size(); ++i) {
    const Column kind = KindOf(columns[i]);
    table.kinds.push_back(kind);
    table.zeros |= kind == Column::kZeros;
    if (kind != Column::kShape && kind != Column::kDType) table.numbers.push_back(i);
  }
  if (options_.csv) {
    table.csv.emplace(options_.directory, name, columns, micro_steps, options_.digits, options_.steps_per_file);
  }
  table.columns = std::move(columns);
  tables_.push_back(std::move(table));
  return static_cast<uint32_t>(tables_.size() - 1);
}

uint32_t Journal::AddSeries(SeriesName name, uint32_t group, std::string tag) {
  const std::lock_guard lock(mutex_);
  Table& table = tables_[name.table];
  const auto number = static_cast<uint32_t>(series_.size());
  Series series;
  series.name = std::move(name);
  if (table.csv) series.head = CsvRowHead(series.name.vpp_stage, series.name.name);
  series.group = group;
  series.tag = std::move(tag);
  series_.push_back(std::move(series));
  table.series.push_back(number);
  return number;
}

void Journal::Rank(uint32_t number) {
  Series& series = series_[number];
  if (series.arrival >= 0) return;
  Table& table = tables_[series.name.table];
  series.arrival = static_cast<int64_t>(table.arrived++);
  table.sorted = false;
}

void Journal::Announce(std::span<const uint32_t> series) {
  const std::lock_guard lock(mutex_);
  for (const uint32_t number : series) Rank(number);
}

void Journal::Arrive(uint32_t number) {
  Rank(number);
  series_[number].step = current_;
}

void Journal::ArriveSummary(uint32_t number, const TensorSummary& summary, const TensorView& view) {
  Arrive(number);
  Series& series = series_[number];
  const Table& table = tables_[series.name.table];
  // Texts are made anew only where the tensor is not like the last one.
  const bool alike = series.dtype == view.dtype && series.cells.size() == table.kinds.size() &&
                     std::equal(series.shape.begin(), series.shape.end(), view.shape, view.shape + view.ndim);
  if (!alike) {
    series.dtype = view.dtype;
    series.shape.assign(view.shape, view.shape + view.ndim);
    series.cells.assign(table.kinds.size(), {});
  }
  for (size_t i = 0; i < table.kinds.size(); ++i) {
    if (table.kinds[i] == Column::kShape) {
      if (!alike) series.cells[i] = CsvCell::Text(ShapeText(view));
    } else if (table.kinds[i] == Column::kDType) {
      if (!alike)
        series.cells[i] = CsvCell::Text(options_.dtype_name != nullptr ? options_.dtype_name(view.dtype)
                                                                       : "torch." + std::string(DTypeName(view.dtype)));
    } else {
      SetStatistic(table.kinds[i], summary, view, &series.cells[i]);
    }
  }
}

void Journal::Take(std::span<const uint32_t> series, std::span<const TensorView> tensors, int threads,
                   std::vector<TensorSummary>* out) {
  bool zeros = false;
  {
    const std::lock_guard lock(mutex_);
    for (const uint32_t number : series) zeros |= tables_[series_[number].name.table].zeros;
  }
  std::vector<TensorSummary> summaries(tensors.size());
  SummarizeTensors(tensors, zeros ? options_.eps : -1, threads, summaries.data());
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < series.size(); ++i) ArriveSummary(series[i], summaries[i], tensors[i]);
  if (out != nullptr) *out = std::move(summaries);
}

TensorSummary Journal::Summarize(const TensorView& tensor, int threads) const {
  bool zeros = false;
  {
    const std::lock_guard lock(mutex_);
    for (const Table& table : tables_) zeros |= table.zeros;
  }
  TensorSummary summary;
  SummarizeTensors({&tensor, 1}, zeros ? options_.eps : -1, threads, &summary);
  return summary;
}

void Journal::PutSummary(uint32_t series, const TensorSummary& summary, const TensorView& like) {
  const std::lock_guard lock(mutex_);
  ArriveSummary(series, summary, like);
}

void Journal::Put(uint32_t series, std::vector<CsvCell> cells) {
  const std::lock_guard lock(mutex_);
  Arrive(series);
  series_[series].cells = std::move(cells);
  series_[series].dtype = DType::kUnknown;
}

void Journal::SetShape(uint32_t series, std::string shape) {
  const std::lock_guard lock(mutex_);
  Series& one = series_[series];
  const auto& kinds = tables_[one.name.table].kinds;
  const auto at = static_cast<size_t>(std::find(kinds.begin(), kinds.end(), Column::kShape) - kinds.begin());
  if (at >= one.cells.size()) return;
  one.cells[at] = CsvCell::Text(std::move(shape));
  one.dtype = DType::kUnknown;  // the cells show no longer what was seen
}

void Journal::Drop() {
  const std::lock_guard lock(mutex_);
  ++current_;
}

void Journal::SortRows(Table* table) {
  if (table->sorted) return;
  table->sorted = true;
  std::stable_sort(table->series.begin(), table->series.end(), [&](uint32_t a, uint32_t b) {
    const Series &x = series_[a], &y = series_[b];
    if (x.group != y.group) return x.group < y.group;
    if (table->order == Order::kDeclared) return a < b;
    return static_cast<uint64_t>(x.arrival) < static_cast<uint64_t>(y.arrival);  // what never came is last
  });
}

Status Journal::WriteCsv(Table* table, int64_t step, std::span<const uint32_t> rows, uint64_t* bytes) {
  if (!table->csv) return OkStatus();
  std::vector<CsvRow> block;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Series& series = series_[rows[i]];
    block.push_back({series.head, series.name.micro_step, &series.cells});
    if (i + 1 < rows.size() && series_[rows[i + 1]].group == series.group) continue;
    table->csv->Add(step, block);
    block.clear();
  }
  return table->csv->Flush(step, bytes);
}

// The tables and series that the file does not know yet.
void Journal::Describe() {
  for (; tables_described_ < tables_.size(); ++tables_described_) {
    const Table& table = tables_[tables_described_];
    std::vector<std::string> columns;
    for (const size_t i : table.numbers) columns.push_back(table.columns[i]);
    writer_.AddTable(table.name, columns, table.micro_steps);
  }
  std::vector<SeriesName> fresh;
  for (; described_ < series_.size(); ++described_) fresh.push_back(series_[described_].name);
  writer_.AddSeries(fresh);
}

void Journal::WriteSeries(uint32_t number, int64_t step, std::span<const uint32_t> rows) {
  const Table& table = tables_[number];
  std::vector<double> values;
  values.reserve(rows.size() * table.numbers.size());
  for (const size_t column : table.numbers) {
    for (const uint32_t row : rows) {
      const auto& cells = series_[row].cells;
      values.push_back(column < cells.size() ? NumberOf(cells[column]) : std::nan(""));
    }
  }
  writer_.AddValues(step, number, rows, values);
}

void Journal::WriteEvents(const Table& table, int64_t step, std::span<const uint32_t> rows) {
  for (const uint32_t row : rows) {
    const Series& series = series_[row];
    for (const size_t column : table.numbers) {
      if (column >= series.cells.size() || series.cells[column].kind == CsvCell::Kind::kMissing) continue;
      events_->AddScalar(series.tag + "_" + table.columns[column], step, NumberOf(series.cells[column]));
    }
  }
}

void Journal::Judge(const Table& table, std::span<const uint32_t> rows, std::vector<SeriesAlarm>* alarms) {
  for (const uint32_t row : rows) {
    const Series& series = series_[row];
    for (const size_t column : table.numbers) {
      if (column >= series.cells.size() || series.cells[column].kind == CsvCell::Kind::kMissing) continue;
      const double value = NumberOf(series.cells[column]);
      const auto alarm = rules_.Judge(series.tag, table.columns[column], value);
      if (!alarm) continue;
      alarms->push_back({series.tag, table.columns[column], AlertRuleName(alarm->kind), value, alarm->mean});
    }
  }
}

StepReport Journal::Write(int64_t step) {
  const std::lock_guard lock(mutex_);
  StepReport report;
  report.same_rows = true;
  if (writer_.is_open()) Describe();
  const auto keep = [&](Status status) {
    if (report.status.ok()) report.status = std::move(status);
  };
  for (uint32_t number = 0; number < tables_.size(); ++number) {
    Table& table = tables_[number];
    SortRows(&table);
    std::vector<uint32_t> rows;
    for (const uint32_t series : table.series) {
      if (series_[series].step == current_) rows.push_back(series);
    }
    report.rows += rows.size();
    report.same_rows &= rows == table.last_rows;
    if (!rows.empty()) {
      keep(WriteCsv(&table, step, rows, &report.bytes));
      WriteSeries(number, step, rows);
      if (events_) WriteEvents(table, step, rows);
      if (!rules_.empty()) Judge(table, rows, &report.alarms);
    }
    table.last_rows = std::move(rows);
  }
  report.bytes += writer_.pending_bytes();
  keep(writer_.Flush());
  if (events_) {
    if (Status status = events_->Flush(); !status.ok()) {
      keep(std::move(status));
      events_.reset();
    }
  }
  ++current_;
  return report;
}

std::vector<Journal::Row> Journal::LastRows(uint32_t table) const {
  const std::lock_guard lock(mutex_);
  const auto& all = tables_[table].series;
  const bool open = std::any_of(all.begin(), all.end(), [&](uint32_t n) { return series_[n].step == current_; });
  std::vector<Row> rows;
  for (const uint32_t number : all) {
    const Series& series = series_[number];
    if (series.step != (open ? current_ : current_ - 1)) continue;
    Row row{series.name, {}};
    for (const size_t column : tables_[table].numbers) {
      row.values.push_back(column < series.cells.size() ? NumberOf(series.cells[column]) : std::nan(""));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<uint32_t> Journal::Heard(bool ever) const {
  const std::lock_guard lock(mutex_);
  std::vector<uint32_t> heard;
  for (uint32_t number = 0; number < series_.size(); ++number) {
    if (ever ? series_[number].step >= 0 : series_[number].step == current_ - 1) heard.push_back(number);
  }
  return heard;
}

}  // namespace msprobe
