#include "judge/series_feed.h"

namespace msprobe {

void SeriesFeed::Put(const SeriesFile& file, size_t block, RunJudge* judge) {
  const SeriesFile::Values values = file.block(block);
  const SeriesFile::Table& table = file.tables()[values.table];
  rows_.resize(file.series().size(), SIZE_MAX);
  std::vector<double> row_values(table.columns.size());
  for (size_t r = 0; r < values.series.size(); ++r) {
    size_t& row = rows_[values.series[r]];
    if (row == SIZE_MAX) {
      const SeriesFile::Series& series = file.series()[values.series[r]];
      row = judge->AddRow({rank_, table.name, series.vpp_stage, series.name, series.micro_step}, table.columns);
    }
    for (size_t c = 0; c < row_values.size(); ++c) row_values[c] = file.Value(block, r, c);
    judge->Put(row, row_values);
  }
}

}  // namespace msprobe
