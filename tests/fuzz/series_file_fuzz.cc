// monitor.series: nothing crashes, and what is read lies within the file.
#include <string>

#include "fuzz_file.h"
#include "monitor/series_reader.h"
#include "view/run/open_rank.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const fuzz::MemoryFile input(data, size);
  auto file = SeriesFile::Open(input.path());
  if (!file.ok()) {
    fuzz::CheckRefusal(file.status());
    return 0;
  }
  fuzz::Check(file->whole_bytes() <= size, "what is whole is within the file");
  fuzz::Check(file->blocks() * 40 <= size, "each block takes its bytes");
  for (size_t i = 0; i < file->series().size() && i < 100; ++i) {
    const auto& table = file->tables().at(file->series()[i].table);
    for (size_t column = 0; column < table.columns.size() && column < 10; ++column) {
      fuzz::Check(file->Read(i, column).size() <= file->blocks(), "a block has one value of a series");
    }
  }
  fuzz::Check(file->Follow().ok(), "what was read is read on");
  auto series = view::RankSeries::OpenFile(input.path());
  fuzz::Check(series.ok(), "what opens once opens again");
  view::OpenRank rank(*std::move(series));
  const view::Deadline until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  const auto info = rank.Info(until);
  if (!info.ok()) return 0;
  for (size_t m = 0; m < info->metrics.size() && m < 10; ++m) {
    view::RunTileQuery query;
    query.rows.metric = info->metrics[m].name;
    query.rows.stat = info->metrics[m].stats.empty() ? "" : info->metrics[m].stats.front();
    const auto rows = rank.Rows(query.rows, until);
    if (!rows.ok()) continue;
    query.from = view::FloorDiv(info->first_step, info->interval);
    for (const int level : {0, 12}) {
      query.level = level;
      const auto tile = rank.Tile(query, until);
      if (tile.ok()) fuzz::Check(tile->cells.size() == tile->rows.size() * tile->bins, "a cell for each place");
    }
  }
  return 0;
}
