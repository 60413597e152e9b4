#include "report/step_watch.h"

#include <chrono>

#include "base/file.h"

namespace msprobe {

Status StepWatch::Add(PairFindings findings) {
  if (!ranks_.empty() && findings.divergence.files.step != ranks_.front().files.step) MSP_RETURN_IF_ERROR(EndStep());
  ranks_.push_back(std::move(findings.divergence));
  suspects_.push_back(std::move(findings.suspects));
  return OkStatus();
}

Status StepWatch::EndStep() {
  std::vector<RankFindings> ranks;
  ranks.swap(ranks_);
  if (ranks.empty()) return OkStatus();
  if (settings_.diff_analyze) MSP_RETURN_IF_ERROR(Analyze());
  suspects_.clear();
  // What starts in one step goes on in those behind it.
  if (report_->divergence.found) return OkStatus();
  const int step = ranks.front().files.step;
  MSP_ASSIGN_OR_RETURN(report_->divergence, FindDivergence(step, std::move(ranks)));
  return OkStatus();
}

Status StepWatch::Analyze() {
  const std::vector<Suspect> suspects = FirstSuspects(std::move(suspects_));
  suspects_ = {};
  if (suspects.empty()) return OkStatus();
  MSP_ASSIGN_OR_RETURN(const std::string text, SuspectsJson(suspects, mapping_));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  const std::string path = JoinPath(settings_.output, "diff_analyze_" + std::to_string(ns) + ".json");
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(text));
  MSP_RETURN_IF_ERROR(file.CommitResult());
  report_->diff_analyze.push_back(file.path());
  return OkStatus();
}

}  // namespace msprobe
