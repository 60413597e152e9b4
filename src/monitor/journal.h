// The values of all series of one process: taken while a step runs, written when it has ended.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "monitor/alert_rules.h"
#include "monitor/csv_table.h"
#include "monitor/event_file.h"
#include "monitor/series_writer.h"
#include "monitor/tensor_summary.h"

namespace msprobe {

struct JournalOptions {
  std::string directory;
  double eps = 1e-8;  // of the statistic "zeros"
  int digits = 6;     // decimals in csv files
  int64_t steps_per_file = 1;
  bool csv = true, events = false, series = true;  // which files are written
  std::vector<AlertRule> rules;
  /// How the column `dtype` names a type of elements.
  std::string (*dtype_name)(DType) = nullptr;  // null: "torch.float32"
};

/// A value that a rule of the configuration calls an anomaly.
struct SeriesAlarm {
  std::string tag, statistic, rule;
  double value = 0, mean = 0;
};

/// What became of a step.
struct StepReport {
  size_t rows = 0;
  uint64_t bytes = 0;  // that the files have grown
  std::vector<SeriesAlarm> alarms;
  bool same_rows = false;  // of the same series as the step before
  Status status;           // of writing; csv files are tried again at the next step, the others are written no more
};

class Journal {
 public:
  /// How the rows of a table are ordered, within their groups.
  enum class Order { kDeclared, kArrival };

  /// kBadInput: the directory cannot be written.
  static StatusOr<std::unique_ptr<Journal>> Open(JournalOptions options);

  /// Tables are written in the order they are added. Columns are statistics (norm, min, max, zeros, nans, id, mean,
  /// shape, dtype) or names of values that Put() gets.
  uint32_t AddTable(const std::string& name, std::vector<std::string> columns, bool micro_steps, Order order);
  /// `tag` is the name by which alarms and TensorBoard know the series. Rows of one group are one block of the csv
  /// file.
  uint32_t AddSeries(SeriesName name, uint32_t group, std::string tag);

  /// Values of these come in this order, which is that of their rows the first time.
  void Announce(std::span<const uint32_t> series);
  /// The statistics of tensors[i] are the values of series[i] in this step; what it had before is replaced.
  /// `summaries`: also returned there.
  void Take(std::span<const uint32_t> series, std::span<const TensorView> tensors, int threads,
            std::vector<TensorSummary>* summaries = nullptr);
  /// The statistics that a value of this tensor consists of, for PutSummary().
  TensorSummary Summarize(const TensorView& tensor, int threads) const;
  /// Statistics that were computed before, or by a device.
  void PutSummary(uint32_t series, const TensorSummary& summary, const TensorView& like);
  /// Values of the columns, as they are. Fewer are missing ones.
  void Put(uint32_t series, std::vector<CsvCell> cells);
  /// Instead of the shape that was seen: of what stands for a larger tensor.
  void SetShape(uint32_t series, std::string shape);
  /// Forgets what was taken in this step.
  void Drop();

  /// Writes the step and begins the next.
  StepReport Write(int64_t step);

  /// (series, numbers of the columns) of the open step; if it has none yet, of the last one.
  struct Row {
    SeriesName name;
    std::vector<double> values;
  };
  std::vector<Row> LastRows(uint32_t table) const;
  /// Series that the last written step has values of, or that had any so far.
  std::vector<uint32_t> Heard(bool ever) const;

 private:
  enum class Column : uint8_t { kNorm, kMin, kMax, kZeros, kNans, kId, kMean, kShape, kDType, kGiven };
  struct Table {
    std::string name;
    std::vector<std::string> columns;
    std::vector<Column> kinds;    // of the columns
    std::vector<size_t> numbers;  // of the columns that hold numbers
    bool micro_steps = false;
    bool zeros = false;  // among the columns
    Order order = Order::kArrival;
    std::vector<uint32_t> series;  // in the order of rows
    std::optional<CsvTable> csv;
    bool sorted = true;
    size_t arrived = 0;
    std::vector<uint32_t> last_rows;
  };
  struct Series {
    SeriesName name;
    std::string head;  // of its rows in a csv file
    uint32_t group = 0;
    std::string tag;
    int64_t arrival = -1;  // -1: never
    int64_t step = -1;     // counts Write()s; the one it has values of
    std::vector<CsvCell> cells;
    std::vector<int64_t> shape;  // that the cells show, with this type; kUnknown: they show none yet
    DType dtype = DType::kUnknown;
  };

  explicit Journal(JournalOptions options) : options_(std::move(options)), rules_(options_.rules) {}
  static Column KindOf(const std::string& column);
  static void SetStatistic(Column column, const TensorSummary& summary, const TensorView& view, CsvCell* cell);
  void Rank(uint32_t number);
  void Arrive(uint32_t number);
  void ArriveSummary(uint32_t number, const TensorSummary& summary, const TensorView& view);
  void SortRows(Table* table);
  Status WriteCsv(Table* table, int64_t step, std::span<const uint32_t> rows, uint64_t* bytes);
  void WriteSeries(uint32_t number, int64_t step, std::span<const uint32_t> rows);
  void WriteEvents(const Table& table, int64_t step, std::span<const uint32_t> rows);
  void Judge(const Table& table, std::span<const uint32_t> rows, std::vector<SeriesAlarm>* alarms);
  void Describe();

  JournalOptions options_;
  mutable std::mutex mutex_;
  std::vector<Table> tables_;
  std::vector<Series> series_;
  size_t described_ = 0, tables_described_ = 0;  // in the file of series
  int64_t current_ = 0;
  AlertRules rules_;
  SeriesWriter writer_;
  std::optional<EventFile> events_;
};

}  // namespace msprobe
