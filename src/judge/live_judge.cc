#include "judge/live_judge.h"

#include <algorithm>
#include <utility>

#include "judge/judge_directory.h"
#include "judge/who_began.h"

namespace msprobe {
namespace {

constexpr size_t kMostChanges = 4096;  // beyond, those that no event refers to any more are forgotten

}  // namespace

StatusOr<std::unique_ptr<LiveJudge>> LiveJudge::Open(const std::string& path, size_t rank, JudgeOptions options) {
  MSP_ASSIGN_OR_RETURN(SeriesFile file, SeriesFile::Open(path));
  return std::unique_ptr<LiveJudge>(new LiveJudge(std::move(file), rank, options));
}

void LiveJudge::EndStep(int64_t step, std::vector<std::string>* told) {
  judge_.EndStep(step);
  if (judge_.changes().size() > kMostChanges) {
    const size_t count = judge_.changes().size();
    judge_.ForgetChanges(step - 2 * kEventSpan);
    looked_ -= std::min(looked_, count - judge_.changes().size());
  }
  bool alarm = false;
  for (; looked_ < judge_.changes().size(); ++looked_) alarm |= judge_.IsAlarm(judge_.changes()[looked_]);
  if (!alarm) return;
  const bool goes_on = last_alarm_ >= 0 && step <= last_alarm_ + kEventSpan;
  last_alarm_ = step;
  if (goes_on) return;
  JudgedDirectory judgement;
  judgement.ranks = 1;
  judgement.events = WhoBegan(judge_, step);
  judgement.rows.assign(judge_.rows().begin(), judge_.rows().end());
  if (JudgedLoss loss(judge_); !loss.watches.empty()) judgement.loss.emplace(std::move(loss));
  if (!judgement.events.empty()) told->push_back(EventJson(judgement.events.back(), judgement));
}

StatusOr<std::vector<std::string>> LiveJudge::Advance() {
  MSP_RETURN_IF_ERROR(file_.Follow().status());
  std::vector<std::string> told;
  for (size_t block = 0; block < file_.blocks(); ++block) {
    const int64_t step = file_.block(block).step;
    if (step > judge_.last_step()) feed_.Put(file_, block, &judge_);
    const bool ends = block + 1 == file_.blocks() || file_.block(block + 1).step != step;
    if (ends && step > judge_.last_step()) EndStep(step, &told);
  }
  file_.ForgetBlocks();
  return told;
}

}  // namespace msprobe
