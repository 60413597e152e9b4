// Appends to monitor.series: the values of all series, exactly, one block a step and table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "monitor/series_format.h"

namespace msprobe {

struct SeriesName {
  uint32_t table = 0;
  int64_t vpp_stage = 0;
  std::string name;
  int64_t micro_step = -1;  // -1: none
};

/// Holds the rows of each table's last block and nothing else, however long the run is. What Flush() wrote is readable
/// after the process was killed.
class SeriesWriter {
 public:
  SeriesWriter() = default;
  SeriesWriter(const SeriesWriter&) = delete;
  SeriesWriter& operator=(const SeriesWriter&) = delete;
  ~SeriesWriter();

  /// Makes the file or continues it behind its last whole block.
  Status Open(const std::string& path);
  bool is_open() const { return fd_ >= 0; }

  void AddTable(std::string_view name, std::span<const std::string> columns, bool micro_steps);
  void AddSeries(std::span<const SeriesName> series);
  /// `values` column by column; rows are numbers of series.
  void AddValues(int64_t step, uint32_t table, std::span<const uint32_t> rows, std::span<const double> values);
  size_t pending_bytes() const { return pending_.size(); }
  /// Writes what was added. After an error the file is whole up to the last Flush() and takes nothing more.
  Status Flush();
  void Close();

 private:
  void AddBlock(SeriesBlockType type, std::string_view payload);

  int fd_ = -1;
  std::string path_, pending_, payload_;
  std::vector<std::vector<uint32_t>> last_rows_;  // by table
};

}  // namespace msprobe
