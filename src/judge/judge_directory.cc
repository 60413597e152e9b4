#include "judge/judge_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "judge/law_events.h"
#include "judge/law_file.h"
#include "judge/run_sources.h"

namespace msprobe {
namespace {

constexpr size_t kLossesBefore = 24, kFewestLosses = 8;

// What the laws of all ranks found. A file that cannot be read is named, and judges nothing.
RankLaws LawsOf(const std::vector<RunSource>& sources, size_t ranks, std::vector<Message>* notes) {
  RankLaws laws;
  for (const RunSource& source : sources) {
    if (const Status read = ReadLaws(JoinPath(source.directory, "laws.json"), source.rank, &laws); !read.ok()) {
      notes->push_back(Msg("laws are left out: {}", read.text()));
    }
  }
  laws.broken = TogetherOf(std::move(laws.broken), ranks);
  return laws;
}

// Of each series of the loss: by step.
using Losses = std::map<size_t, std::map<int64_t, double>>;

// Those of the step that ended.
void KeepLosses(const RunJudge& judge, Losses* losses) {
  for (size_t i = 0; i < judge.rows().size(); ++i) {
    const RunJudge::Row& row = judge.rows()[i];
    if (!row.loss || row.seen != judge.steps() - 1 || !std::isfinite(row.now.front())) continue;
    (*losses)[i][judge.last_step()] = row.now.front();
  }
}

// Of the first of those with the most values.
std::map<int64_t, double> Densest(const Losses& losses) {
  std::map<int64_t, double> best;
  for (const auto& [row, values] : losses) {
    if (values.size() > best.size()) best = values;
  }
  return best;
}

// How many times those before it the loss is at most, from the beginning of an event on.
std::optional<double> TimesFrom(const JudgedEvent& event, const std::map<int64_t, double>& losses) {
  std::vector<double> before;
  for (auto i = losses.lower_bound(event.onset); i != losses.begin() && before.size() < kLossesBefore;) {
    before.push_back((--i)->second);
  }
  double most = 0;
  const auto end = losses.upper_bound(event.told + kEventSpan);
  for (auto i = losses.lower_bound(event.onset); i != end; ++i) most = std::max(most, i->second);
  if (before.size() < kFewestLosses) return std::nullopt;
  const auto middle = before.begin() + static_cast<std::ptrdiff_t>(before.size() / 2);
  std::nth_element(before.begin(), middle, before.end());
  return *middle > 0 && most > 0 ? std::optional(most / *middle) : std::nullopt;
}

}  // namespace

bool JudgedDirectory::HasTable(std::string_view table) const {
  return std::any_of(rows.begin(), rows.end(), [&](const RowName& row) { return row.key.table == table; });
}

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
  MSP_ASSIGN_OR_RETURN(RunSources run, OpenRunSources(request.directory));
  std::vector<RunSource>& sources = run.sources;
  RunJudge judge(request.options);
  JudgedDirectory out;
  out.directory = request.directory;
  std::set<size_t> ranks;
  for (const RunSource& source : sources) {
    ranks.insert(source.rank);
  }
  std::map<int64_t, double> loss(request.loss.begin(), request.loss.end());
  const std::map<int64_t, double> rates(request.rates.begin(), request.rates.end());
  const bool own_loss = !loss.empty();
  Losses losses;
  const std::vector<std::string> value{"value"};
  const std::vector<RunPlace> places = PlacesInOrder(sources);
  for (size_t i = 0; i < places.size(); ++i) {
    RunSource& source = sources[places[i].source];
    source.feed.Put(source.file, places[i].block, &judge);
    const int64_t step = places[i].step;
    if (i + 1 < places.size() && places[i + 1].step == step) continue;
    if (const auto found = loss.find(step); own_loss && found != loss.end()) {
      judge.Put(judge.AddRow({0, "loss", 0, "loss", -1}, value), {&found->second, 1});
    }
    if (const auto found = rates.find(step); found != rates.end()) judge.PutRate(found->second);
    judge.EndStep(step);
    KeepLosses(judge, &losses);
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
  const std::map<int64_t, double> dense = Densest(losses);
  for (JudgedEvent& event : out.events) event.loss_times = TimesFrom(event, dense);
  std::stable_sort(out.events.begin(), out.events.end(),
                   [](const JudgedEvent& a, const JudgedEvent& b) { return a.harm > b.harm; });
  if (JudgedLoss judged(judge); !judged.watches.empty()) out.loss.emplace(std::move(judged));
  out.rows.assign(judge.rows().begin(), judge.rows().end());
  out.changes = judge.changes();
  if (run.resumed > 0) {
    out.notes.push_back(Msg("{} directories go on from others, and are judged as one run", run.resumed));
  }
  out.left_out = std::move(run.left_out);
  out.command = std::move(run.command);
  if (!out.loss) out.notes.emplace_back(Msg("no series of the loss: give a log or a csv file with --loss"));
  return out;
}

}  // namespace msprobe
