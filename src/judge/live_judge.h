// Judges a run while it goes on, by the file of its series.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "judge/run_judge.h"
#include "judge/series_feed.h"
#include "monitor/series_reader.h"

namespace msprobe {

/// Of one rank. What it tells at a step is what JudgeDirectory() would tell of the file up to there.
class LiveJudge {
 public:
  /// kBadInput when the file cannot be read.
  static StatusOr<std::unique_ptr<LiveJudge>> Open(const std::string& path, size_t rank, JudgeOptions options);

  /// Judges the steps that were written since: each event that begins, once, as a line of JSON (EventJson).
  StatusOr<std::vector<std::string>> Advance();

 private:
  LiveJudge(SeriesFile file, size_t rank, JudgeOptions options)
      : file_(std::move(file)), feed_(rank), judge_(options) {}
  void EndStep(int64_t step, std::vector<std::string>* told);

  SeriesFile file_;
  SeriesFeed feed_;
  RunJudge judge_;
  size_t looked_ = 0;  // changes of the judge
  int64_t last_alarm_ = -1;
};

}  // namespace msprobe
