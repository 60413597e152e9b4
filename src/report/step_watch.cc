#include "report/step_watch.h"

#include <chrono>
#include <string_view>
#include <unordered_map>

#include "base/file.h"

namespace msprobe {

Status StepWatch::Add(PairFindings findings) {
  if (findings.divergence.files.step != step_) MSP_RETURN_IF_ERROR(EndStep());
  step_ = findings.divergence.files.step;
  suspects_.push_back(std::move(findings.suspects));
  return finder_.Add(std::move(findings.divergence));
}

Status StepWatch::EndStep() {
  if (settings_.diff_analyze && !suspects_.empty()) MSP_RETURN_IF_ERROR(Analyze());
  suspects_.clear();
  return OkStatus();
}

Status StepWatch::End() {
  MSP_RETURN_IF_ERROR(EndStep());
  MSP_RETURN_IF_ERROR(finder_.End());
  finder_.Explain();
  report_->story = finder_.Tell();
  report_->divergence = std::move(finder_.divergence());
  std::unordered_map<std::string_view, PairReport*> pair_of;
  for (PairReport& pair : report_->pairs) pair_of.emplace(pair.files.target, &pair);
  for (const Carrier& carrier : report_->divergence.carriers) {
    const auto pair = pair_of.find(carrier.target_dump);
    if (pair != pair_of.end()) pair->second->differences.ruler.Inherit(carrier.op.verdict);
  }
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
