// The one term, or the two, that explain why weights are not as their rule says.
#pragma once

#include <string>
#include <vector>

#include "optimizer/optimizer_findings.h"
#include "optimizer/optimizer_record.h"

namespace msprobe {

/// Findings for the weights at `wrong` (places in the weights of each step). All of one cause are one finding.
std::vector<TermFinding> NameTerms(const OptimizerRecord& record, const std::vector<StepNorm>& norms,
                                   const std::vector<ReplayedWeight>& weights, const std::vector<size_t>& wrong);

/// Of a step, what counts where the optimizer keeps no count of steps: as if the record began with the training.
inline double CountOfStep(const RecordedStep& step) { return static_cast<double>(step.step) + 1; }

/// The weight of that name; null where the step does not have it.
const RecordedWeight* FindWeight(const RecordedStep& step, const std::string& name, size_t likely);

}  // namespace msprobe
