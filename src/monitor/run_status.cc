#include "monitor/run_status.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "json/parser.h"
#include "json/writer.h"

namespace msprobe {
namespace {

constexpr double kLeastSilence = 30;      // seconds without a heartbeat that say nothing
constexpr double kSilentSteps = 10;       // or so many steps of the monitor
constexpr size_t kShownSilent = 5;        // series of a rank in the text
constexpr uint64_t kMostBytes = 1 << 20;  // of a heartbeat

std::string OwnHost() {
  char host[256] = "";
  (void)gethostname(host, sizeof host - 1);
  return host;
}

bool ProcessIsGone(const RankStatus& rank) {
  if (rank.pid <= 0 || rank.host != OwnHost()) return false;
  if (kill(static_cast<pid_t>(rank.pid), 0) != 0) return errno == ESRCH;
  const auto stat =
      MappedFile::Open(fmt::format("/proc/{}/stat", rank.pid));  // one that nobody waits for is left there
  return stat.ok() && Contains(stat->text(), ") Z ");
}

StatusOr<RankStatus> ReadHeartbeat(const std::string& directory) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(JoinPath(directory, "heartbeat.json")));
  if (file.text().size() > kMostBytes) return BadInput(Msg("{} is too large for a heartbeat", file.path()));
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(file.text(), file.path(), &doc));
  if (!doc["rank"].IsInt() || !doc["state"].IsString()) return BadInput(Msg("{} is not a heartbeat", file.path()));
  RankStatus rank;
  rank.directory = directory;
  rank.rank = doc["rank"].Int();
  rank.pid = doc["pid"].Int();
  rank.host = doc["host"].Text();
  rank.state = doc["state"].Text();
  rank.command = doc["command"].Text();
  rank.step = doc["step"].Int();
  rank.interval = std::max<int64_t>(doc["interval"].Int(), 1);
  rank.requested = doc["requested"].UInt();
  rank.reported = doc["reported"].UInt();
  rank.started = doc["started"].Number();
  rank.beat = doc["beat"].Number();
  rank.seconds_per_step = doc["seconds_per_step"].Number();
  for (const JsonValue& text : doc["laws"].Items()) rank.laws.emplace_back(text.Text());
  for (const JsonValue& text : doc["silent"].Items()) rank.silent.emplace_back(text.Text());
  return rank;
}

void JudgeRank(RankStatus* rank, int64_t farthest, double now) {
  const double age = now - rank->beat;
  const double patience =
      std::max(kLeastSilence, kSilentSteps * rank->seconds_per_step * static_cast<double>(rank->interval));
  const int64_t behind = farthest - rank->step;
  rank->health = behind > rank->interval ? RankHealth::kBehind : RankHealth::kRunning;
  if (rank->state == "running") {
    if (ProcessIsGone(*rank)) {
      rank->health = RankHealth::kKilled;
      rank->findings.push_back(Msg("its process is gone without an end report: it was killed or it crashed"));
    } else if (age > patience) {
      rank->health = RankHealth::kHung;
      rank->findings.push_back(Msg("no heartbeat for {:.0f} s: it hangs, or its machine does", age));
    }
  } else if (rank->state == "ended") {
    if (rank->health == RankHealth::kRunning) rank->health = RankHealth::kEnded;
  } else {
    rank->health = RankHealth::kFailed;
    rank->findings.push_back(Msg("the monitor ended with an error: see the log of the rank"));
  }
  if (behind > rank->interval) {
    rank->findings.push_back(Msg("{} steps behind the farthest rank", behind));
  }
  for (const std::string& law : rank->laws) rank->findings.push_back(Message(law));
  if (!rank->silent.empty()) {
    rank->findings.push_back(Msg("{} of {} series without a value", rank->silent.size(), rank->requested));
  }
}

}  // namespace

std::string_view NameOf(RankHealth health) {
  switch (health) {
    case RankHealth::kEnded: return "ended";
    case RankHealth::kRunning: return "running";
    case RankHealth::kBehind: return "behind";
    case RankHealth::kHung: return "hung";
    case RankHealth::kFailed: return "failed";
    case RankHealth::kKilled: return "killed";
  }
  return "";
}

size_t RunStatus::findings() const {
  size_t count = 0;
  for (const RankStatus& rank : ranks) count += rank.findings.size();
  return count;
}

StatusOr<RunStatus> ReadRunStatus(const std::string& directory, double now) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  std::vector<std::string> places{directory};
  for (const std::string& name : names) places.push_back(JoinPath(directory, name));
  std::map<int64_t, RankStatus> newest;
  for (const std::string& place : places) {
    if (!IsRegularFile(JoinPath(place, "heartbeat.json"))) continue;
    MSP_ASSIGN_OR_RETURN(RankStatus rank, ReadHeartbeat(place));
    const auto known = newest.find(rank.rank);
    if (known == newest.end()) {
      newest.emplace(rank.rank, std::move(rank));
    } else if (known->second.started < rank.started) {
      known->second = std::move(rank);
    }
  }
  if (newest.empty()) {
    return BadInput(
        Msg("no heartbeat.json in {} or in a directory of it: give the output directory of a monitor", directory));
  }
  RunStatus run;
  for (auto& [number, rank] : newest) {
    run.step = std::max(run.step, rank.step);
    run.ranks.push_back(std::move(rank));
  }
  for (RankStatus& rank : run.ranks) JudgeRank(&rank, run.step, now);
  return run;
}

namespace {

Message RankLine(const RankStatus& rank, double now) {
  const double age = std::max(now - rank.beat, 0.0);
  const std::string place = OneLine(BaseName(rank.directory));
  if (rank.state == "running") {
    return Msg("rank {}: running, step {}, {} of {} series, last heartbeat {:.0f} s ago, {}\n", rank.rank, rank.step,
               rank.reported, rank.requested, age, place);
  }
  if (rank.state == "ended") {
    return Msg("rank {}: ended, step {}, {} of {} series, last heartbeat {:.0f} s ago, {}\n", rank.rank, rank.step,
               rank.reported, rank.requested, age, place);
  }
  if (rank.state == "failed") {
    return Msg("rank {}: failed, step {}, {} of {} series, last heartbeat {:.0f} s ago, {}\n", rank.rank, rank.step,
               rank.reported, rank.requested, age, place);
  }
  return Msg("rank {}: {}, step {}, {} of {} series, last heartbeat {:.0f} s ago, {}\n", rank.rank, OneLine(rank.state),
             rank.step, rank.reported, rank.requested, age, place);
}

}  // namespace

Message RunStatusText(const RunStatus& run, double now) {
  Message text = Msg("{} ranks, farthest step {}\n", run.ranks.size(), run.step);
  for (const RankStatus& rank : run.ranks) {
    text += RankLine(rank, now);
    for (const Message& finding : rank.findings) text += Msg("  {}\n", OneLined(finding));
    for (size_t i = 0; i < rank.silent.size() && i < kShownSilent; ++i) {
      text += Message("    " + OneLine(rank.silent[i]) + "\n");
    }
    if (rank.silent.size() > kShownSilent) text += Msg("    and {} more\n", rank.silent.size() - kShownSilent);
  }
  return text;
}

std::string RunStatusJson(const RunStatus& run, double now) {
  JsonWriter json(kJsonIndented);
  json.Object([&] {
    json.Member("step", run.step);
    json.Member("findings", run.findings());
    json.ArrayMember("ranks", run.ranks, [&](const RankStatus& rank) {
      json.Object([&] {
        json.Member("rank", rank.rank);
        json.Member("state", rank.state);
        json.Member("health", NameOf(rank.health));
        json.Member("step", rank.step);
        json.Member("requested", rank.requested);
        json.Member("reported", rank.reported);
        json.Member("seconds_since_heartbeat", now - rank.beat);
        json.Member("directory", rank.directory);
        json.Member("findings", rank.findings);
        json.Member("laws", rank.laws);
        json.Member("silent", rank.silent);
      });
    });
  });
  return json.Take() + "\n";
}

}  // namespace msprobe
