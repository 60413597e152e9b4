#include "view/run/run_findings.h"

#include <sys/stat.h>

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <optional>
#include <thread>
#include <tuple>

#include "base/file.h"
#include "base/words/translate.h"
#include "judge/judge_directory.h"
#include "view/run/run_rows.h"

namespace msprobe::view {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLeastRest = std::chrono::seconds(4);
constexpr int kRestTimes = 10;  // a run is judged for a tenth of the time at most
constexpr size_t kMostRunsJudged = 64;

int64_t ChangedSeconds(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0 ? static_cast<int64_t>(st.st_mtim.tv_sec) : 0;
}

RunEvent EventOf(const JudgedEvent& event, const JudgedDirectory& judgement) {
  const Message text = EventText(event, judgement);
  RunEvent out;
  out.step = event.onset;
  out.text = text.English();
  out.text_zh = InLanguage(text, Language::kChinese);
  out.source = "judgement";
  if (event.culprit) {
    out.rank = *event.culprit;
  } else if (event.ranks.size() == 1) {
    out.rank = static_cast<int64_t>(event.ranks.front());
  }
  out.metric = event.by_law ? "" : event.table;
  out.stat = event.by_law ? "" : event.column;
  if (event.by_law && event.column == "lr_schedule" && judgement.HasTable("learning_rate")) {
    out.metric = "learning_rate";
    out.stat = "value";
  }
  for (const RowChange& change : event.evidence) {
    const RowName& row = judgement.rows[change.row];
    if (row.together || row.key.table != event.table) continue;
    if (row.columns[change.column] != event.column) continue;
    std::string label = SeriesLabel(row.key.name, row.key.vpp_stage, row.key.micro_step);
    if (std::find(out.rows.begin(), out.rows.end(), label) == out.rows.end()) out.rows.push_back(std::move(label));
  }
  out.series = !event.place.empty() ? event.place : out.rows.empty() ? event.table : out.rows.front();
  return out;
}

RunFindings JudgeRun(const std::string& path) {
  JudgeRequest request;
  request.directory = path;
  RunFindings out;
  const auto judgement = JudgeDirectory(request);
  if (!judgement.ok()) {
    out.unjudged = Msg("The series could not be judged: {}", judgement.status().text());
    return out;
  }
  for (const JudgedEvent& event : judgement->events) out.events.push_back(EventOf(event, *judgement));
  if (!out.events.empty()) out.events.front().leads = true;
  out.unjudged = NotJudgedText(*judgement);
  return out;
}

}  // namespace

struct RunJudgements::Shared {
  struct Run {
    RunFindings found;
    std::optional<uint64_t> judged;  // the version
    Clock::time_point next{};
    bool busy = false;
  };
  std::mutex mutex;
  std::condition_variable done;
  std::map<std::string, Run> runs;
};

RunJudgements::RunJudgements() : shared_(std::make_shared<Shared>()) {}
// A thread that is at work needs what the program has until it ends; a long run is not waited for.
RunJudgements::~RunJudgements() {
  constexpr auto kPatience = std::chrono::seconds(2);
  std::unique_lock lock(shared_->mutex);
  shared_->done.wait_for(lock, kPatience, [&] {
    return std::none_of(shared_->runs.begin(), shared_->runs.end(), [](const auto& run) { return run.second.busy; });
  });
}

RunFindings RunJudgements::Of(const std::string& path, uint64_t version, std::chrono::milliseconds patience) {
  RunFindings out;
  const std::string written = JoinPath(path, "judgement.json");
  const bool own = ChangedSeconds(written) > 0;
  out.events = ReadRunEvents(path, own);
  if (own) return out;
  std::unique_lock lock(shared_->mutex);
  if (shared_->runs.size() >= kMostRunsJudged && !shared_->runs.contains(path)) return out;
  Shared::Run& run = shared_->runs[path];
  if (!run.busy && run.judged != version && Clock::now() >= run.next) {
    run.busy = true;
    std::thread([shared = shared_, path, version] {
      const Clock::time_point begin = Clock::now();
      RunFindings found = JudgeRun(path);
      const Clock::time_point end = Clock::now();
      const std::lock_guard held(shared->mutex);
      Shared::Run& judged = shared->runs[path];
      judged.found = std::move(found);
      judged.judged = version;
      judged.next = end + std::max<Clock::duration>(kLeastRest, (end - begin) * kRestTimes);
      judged.busy = false;
      shared->done.notify_all();
    }).detach();
  }
  if (!run.judged) shared_->done.wait_for(lock, patience, [&] { return run.judged.has_value(); });
  out.judging = run.busy || run.judged != version;
  out.unjudged = run.found.unjudged;
  std::copy(run.found.events.begin(), run.found.events.end(), std::back_inserter(out.events));
  std::stable_sort(out.events.begin(), out.events.end(), [](const RunEvent& a, const RunEvent& b) {
    return std::tie(a.step, a.rank) < std::tie(b.step, b.rank);
  });
  if (out.events.size() > kMostEvents) out.events.resize(kMostEvents);
  return out;
}

}  // namespace msprobe::view
