#include "judge/run_sources.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "monitor/run_status.h"

namespace msprobe {
namespace {

constexpr size_t kMostRanks = 65536;
constexpr const char* kSeriesName = "monitor.series";

// Of "Nov25_23-30-32-rank0-e32088e2"; 0 for another name.
size_t RankOf(const std::string& directory) {
  const std::string name(BaseName(directory));
  const size_t at = name.rfind("-rank");
  if (at == std::string::npos) return 0;
  size_t rank = 0;
  const char* begin = name.data() + at + 5;
  std::from_chars(begin, name.data() + name.size(), rank);
  return std::min(rank, kMostRanks);
}

// The directory itself, or all in it that have series.
StatusOr<std::vector<std::string>> DirectoriesOf(const std::string& directory) {
  if (IsRegularFile(JoinPath(directory, kSeriesName))) return std::vector<std::string>{directory};
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  std::vector<std::string> found;
  for (const std::string& name : names) {
    std::string path = JoinPath(directory, name);
    if (IsRegularFile(JoinPath(path, kSeriesName))) found.push_back(std::move(path));
  }
  return found;
}

// 0 without a heartbeat.
double StartOf(const std::string& directory, std::string* command) {
  const auto status = ReadRunStatus(directory, 0);
  if (!status.ok() || status->ranks.empty()) return 0;
  if (!status->ranks.front().command.empty()) *command = status->ranks.front().command;
  return status->ranks.front().started;
}

int64_t FirstStep(const SeriesFile& file) { return file.blocks() > 0 ? file.block(0).step : INT64_MAX; }

// Steps from one that was monitored to the next.
int64_t IntervalOf(const SeriesFile& file) {
  for (size_t b = 1; b < file.blocks(); ++b) {
    if (file.block(b).step > file.block(0).step) return file.block(b).step - file.block(0).step;
  }
  return 1;
}

bool GoesOnFrom(const RunSource& before, const RunSource& next) {
  const int64_t first = FirstStep(next.file);
  if (before.file.blocks() == 0 || first == INT64_MAX) return false;
  return first > FirstStep(before.file) && first <= before.file.last_step() + IntervalOf(before.file);
}

// Of one rank, by when they started; without any heartbeat nobody knows, and all are one run by their steps.
void TakeRank(std::vector<std::pair<double, RunSource>> all, RunSources* out) {
  const bool known = std::any_of(all.begin(), all.end(), [](const auto& one) { return one.first > 0; });
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<RunSource> run;  // the newest first
  for (auto& [started, source] : all) {
    if (known && !run.empty()) {
      if (!GoesOnFrom(source, run.back())) break;
      source.until = FirstStep(run.back().file);
      ++out->resumed;
    }
    run.push_back(std::move(source));
  }
  for (size_t i = run.size(); i < all.size(); ++i) out->left_out.emplace_back(BaseName(all[i].second.directory));
  std::reverse(run.begin(), run.end());
  std::move(run.begin(), run.end(), std::back_inserter(out->sources));
}

}  // namespace

StatusOr<RunSources> OpenRunSources(const std::string& directory) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> places, DirectoriesOf(directory));
  RunSources out;
  std::map<size_t, std::vector<std::pair<double, RunSource>>> ranks;
  for (const std::string& place : places) {
    MSP_ASSIGN_OR_RETURN(SeriesFile file, SeriesFile::Open(JoinPath(place, kSeriesName)));
    const size_t rank = RankOf(place);
    ranks[rank].emplace_back(StartOf(place, &out.command), RunSource{rank, place, std::move(file), SeriesFeed(rank)});
  }
  if (ranks.empty()) {
    return BadInput(
        Msg("no monitor.series in {} or in a directory of it: give the output directory of a monitor", directory));
  }
  for (auto& [rank, all] : ranks) TakeRank(std::move(all), &out);
  return out;
}

std::vector<RunPlace> PlacesInOrder(const std::vector<RunSource>& sources) {
  std::vector<RunPlace> places;
  for (size_t s = 0; s < sources.size(); ++s) {
    for (size_t b = 0; b < sources[s].file.blocks(); ++b) {
      const int64_t step = sources[s].file.block(b).step;
      if (step < sources[s].until) places.push_back({step, s, b});
    }
  }
  std::stable_sort(places.begin(), places.end(), [](const RunPlace& a, const RunPlace& b) { return a.step < b.step; });
  return places;
}

}  // namespace msprobe
