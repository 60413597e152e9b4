#include "parity/result.h"

#include <algorithm>
#include <set>

namespace msprobe {

Message PhaseWords(std::string_view phase) {
  if (phase == "parameter") return Msg("the parameter before the step");
  if (phase == "input") return Msg("the input of the model");
  if (phase == "forward") return Msg("the result of the module");
  if (phase == "loss") return Msg("the loss");
  if (phase == "backward") return Msg("the gradient of the result of the module");
  if (phase == "gradient") return Msg("the gradient of the parameter");
  if (phase == "norm") return Msg("the norm of the gradients");
  if (phase == "clipped") return Msg("the clipped gradient of the parameter");
  if (phase == "dropout") return Msg("what is dropped");
  if (phase == "state") return Msg("the state of the optimizer");
  return Msg("the parameter after the step");
}

Message ParityFinding::About() const {
  return name.empty() ? PhaseWords(phase) : Msg("{} {}", PhaseWords(phase), name);
}

Message ParityFinding::Sentence() const { return Msg("step {}: {}: {}", step, About(), cause.text); }

void TakeNotes(const ParityRun& run, ParityResult* result) {
  std::set<std::string> unknown;
  for (const ParityRank& rank : run) {
    for (const ParityEntry& entry : rank.phase(0, "parameter").entries) {
      if (entry.unknown.empty() || !unknown.insert(entry.name).second) continue;
      result->notes.push_back(
          Msg("{} says that it is split, and not along which dimension: it is taken by its size", entry.name));
    }
    if (!rank.lost.empty() && result->findings.empty() && !result->cannot_say) {
      result->cannot_say = Msg("msprobe failed on rank {} while it looked at the training ({}): see its messages",
                               rank.rank, rank.lost.front());
    }
    for (const auto& [why, what] : rank.notes) {
      std::vector<std::string>& list = result->not_compared[why];
      for (const std::string& one : what) {
        if (std::find(list.begin(), list.end(), one) == list.end()) list.push_back(one);
      }
    }
  }
}

}  // namespace msprobe
