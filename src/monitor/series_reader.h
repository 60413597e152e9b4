// Reads monitor.series, also while it grows and after the run was killed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace msprobe {

class SeriesFile {
 public:
  struct Table {
    std::string name;
    std::vector<std::string> columns;
    bool micro_steps = false;
  };
  struct Series {
    size_t table = 0;  // index of tables()
    int64_t vpp_stage = 0;
    std::string name;
    int64_t micro_step = -1;
  };
  struct Point {
    int64_t step;
    double value;
  };

  /// One step of a table.
  struct Values {
    int64_t step;
    size_t table, columns, layout;   // blocks of one layout have the same series
    std::span<const size_t> series;  // of the rows
    const double* values;            // column by column
  };

  /// kBadInput when it is no such file. A file that ends in the middle of a block is read up to there; of a long one
  /// about `most_bytes`.
  static StatusOr<SeriesFile> Open(const std::string& path, size_t most_bytes = SIZE_MAX);
  /// Reads about `most_bytes` of what is new; true when there is more. kBadInput when the file was replaced.
  StatusOr<bool> Follow(size_t most_bytes = SIZE_MAX);

  /// Forgets the blocks that were read, for who follows a file that grows for weeks.
  void ForgetBlocks() { blocks_.clear(); }

  const std::vector<Table>& tables() const { return tables_; }
  const std::vector<Series>& series() const { return series_; }
  size_t blocks() const { return blocks_.size(); }
  Values block(size_t i) const;
  size_t layouts() const { return layouts_.size(); }
  /// How much of the file is whole.
  size_t whole_bytes() const { return whole_; }
  bool cut_off() const { return whole_ < file_.text().size(); }
  /// -1 without any.
  int64_t last_step() const { return last_step_; }

  double Value(size_t block, size_t row, size_t column) const;

  /// The points of a column of a series, in the order they were written.
  std::vector<Point> Read(size_t series, size_t column) const;

 private:
  struct Rows {
    std::unordered_map<size_t, uint32_t> place;  // series -> row
    std::vector<size_t> series;
  };
  struct Block {
    int64_t step;
    size_t table, rows, columns, values;  // values: where they begin in the file
    size_t layout;                        // index of layouts_
  };
  // Of the process that writes at this place of the file.
  struct Session {
    std::vector<size_t> tables, series, layouts;
  };
  static constexpr size_t kNone = SIZE_MAX;

  explicit SeriesFile(MappedFile file) : file_(std::move(file)) {}
  bool Scan(size_t most_bytes);
  bool Take(uint32_t type, std::string_view payload, size_t at, Session* session);
  bool TakeTable(std::string_view payload, Session* session);
  bool TakeSeries(std::string_view payload, Session* session);
  bool TakeValues(std::string_view payload, size_t at, Session* session);
  bool TakeRows(std::string_view bytes, size_t count, size_t table, Session* session);

  MappedFile file_;
  std::vector<Table> tables_;
  std::vector<Series> series_;
  std::unordered_map<std::string, size_t> table_ids_, series_ids_;
  std::vector<Rows> layouts_;
  std::vector<Block> blocks_;
  Session session_;
  size_t whole_ = 0;
  int64_t last_step_ = -1;
};

}  // namespace msprobe
