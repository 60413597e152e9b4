// The blocks of a monitor.series, put into a judge.
#pragma once

#include <cstddef>
#include <vector>

#include "judge/run_judge.h"
#include "monitor/series_reader.h"

namespace msprobe {

class SeriesFeed {
 public:
  explicit SeriesFeed(size_t rank) : rank_(rank) {}
  void Put(const SeriesFile& file, size_t block, RunJudge* judge);

 private:
  size_t rank_;
  std::vector<size_t> rows_;  // by series
};

}  // namespace msprobe
