#include "judge/judge_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "judge/law_events.h"
#include "judge/law_file.h"
#include "judge/series_feed.h"
#include "monitor/run_status.h"
#include "monitor/series_reader.h"

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

// One file of a rank, and where its rows are in the judge.
struct Source {
  size_t rank = 0;
  std::string directory;
  SeriesFile file;
  SeriesFeed feed;
};

// The directory itself, or of each rank the newest directory in it: an output directory keeps earlier runs.
StatusOr<std::vector<std::string>> Places(const std::string& directory) {
  if (IsRegularFile(JoinPath(directory, kSeriesName))) return std::vector<std::string>{directory};
  std::vector<std::string> places;
  if (const auto status = ReadRunStatus(directory, 0); status.ok()) {
    for (const RankStatus& rank : status->ranks) places.push_back(rank.directory);
    return places;
  }
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) places.push_back(JoinPath(directory, name));
  return places;
}

StatusOr<std::vector<Source>> OpenSources(const std::string& directory) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> places, Places(directory));
  std::vector<Source> sources;
  for (const std::string& place : places) {
    const std::string path = JoinPath(place, kSeriesName);
    if (!IsRegularFile(path)) continue;
    MSP_ASSIGN_OR_RETURN(SeriesFile file, SeriesFile::Open(path));
    sources.push_back({RankOf(place), place, std::move(file), SeriesFeed(RankOf(place))});
  }
  if (sources.empty()) {
    return BadInput(
        Msg("no monitor.series in {} or in a directory of it: give the output directory of a monitor", directory));
  }
  return sources;
}

// (step, source, block) of all, in the order of steps.
struct Place {
  int64_t step;
  size_t source, block;
};

std::vector<Place> PlacesInOrder(const std::vector<Source>& sources) {
  std::vector<Place> places;
  for (size_t s = 0; s < sources.size(); ++s) {
    for (size_t b = 0; b < sources[s].file.blocks(); ++b) places.push_back({sources[s].file.block(b).step, s, b});
  }
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.step < b.step; });
  return places;
}

// What the laws of all ranks found. A file that cannot be read is named, and judges nothing.
RankLaws LawsOf(const std::vector<Source>& sources, size_t ranks, std::vector<Message>* notes) {
  RankLaws laws;
  for (const Source& source : sources) {
    if (const Status read = ReadLaws(JoinPath(source.directory, "laws.json"), source.rank, &laws); !read.ok()) {
      notes->push_back(Msg("laws are left out: {}", read.text()));
    }
  }
  laws.broken = TogetherOf(std::move(laws.broken), ranks);
  return laws;
}

}  // namespace

std::vector<Judgement> JudgementsOf(const JudgedDirectory& judgement) {
  const Message basis = Msg("what a healthy training does");
  std::vector<Judgement> out(1);
  out[0].about = Msg("the series of the run");
  out[0].basis = basis;
  out[0].kind = judgement.too_early() ? JudgementKind::kTooEarly : JudgementKind::kRoundOff;
  for (const JudgedEvent& event : judgement.events) {
    Judgement& one = out.emplace_back();
    one.kind = event.by_law ? JudgementKind::kBug : JudgementKind::kSuspicious;
    one.evidence.push_back(EventText(event, judgement));
    one.basis = basis;
  }
  for (const UnseenLaw& law : judgement.unseen_laws) {
    Judgement& one = out.emplace_back();
    one.about = Msg("law {}", OneLine(law.law));
    one.not_seen.emplace_back(OneLine(law.why));
    one.asked = law.in_part;  // what does not occur in a training breaks no law
  }
  return out;
}

StatusOr<JudgedDirectory> JudgeDirectory(const JudgeRequest& request) {
  MSP_ASSIGN_OR_RETURN(std::vector<Source> sources, OpenSources(request.directory));
  RunJudge judge(request.options);
  JudgedDirectory out;
  out.directory = request.directory;
  std::set<size_t> ranks;
  for (const Source& source : sources) {
    ranks.insert(source.rank);
  }
  std::map<int64_t, double> loss(request.loss.begin(), request.loss.end());
  const std::map<int64_t, double> rates(request.rates.begin(), request.rates.end());
  const bool own_loss = !loss.empty();
  const std::vector<std::string> value{"value"};
  const std::vector<Place> places = PlacesInOrder(sources);
  for (size_t i = 0; i < places.size(); ++i) {
    Source& source = sources[places[i].source];
    source.feed.Put(source.file, places[i].block, &judge);
    const int64_t step = places[i].step;
    if (i + 1 < places.size() && places[i + 1].step == step) continue;
    if (const auto found = loss.find(step); own_loss && found != loss.end()) {
      judge.Put(judge.AddRow({0, "loss", 0, "loss", -1}, value), {&found->second, 1});
    }
    if (const auto found = rates.find(step); found != rates.end()) judge.PutRate(found->second);
    judge.EndStep(step);
  }
  out.ranks = ranks.size();
  out.watched = judge.watched();
  out.steps = judge.steps();
  out.last_step = judge.last_step();
  out.alarm_strength = judge.alarm_strength(RunJudge::Family::kSingle);
  out.events = WhoBegan(judge);
  RankLaws laws = LawsOf(sources, out.ranks, &out.notes);
  out.held_laws = laws.held;
  out.unseen_laws = std::move(laws.unseen);
  AddLaws(laws.broken, request.options.from_step, &out.events);
  if (JudgedLoss judged(judge); !judged.watches.empty()) out.loss.emplace(std::move(judged));
  out.rows.assign(judge.rows().begin(), judge.rows().end());
  out.changes = judge.changes();
  if (!out.loss) out.notes.emplace_back(Msg("no series of the loss: give a log or a csv file with --loss"));
  return out;
}

}  // namespace msprobe
