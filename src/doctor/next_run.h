// The commands of further runs, as one may paste them.
#pragma once

#include <string>
#include <vector>

#include "doctor/evidence.h"
#include "doctor/stage.h"

namespace msprobe {

/// The file of the settings with which steps are recorded: tensors, since statistics do not show the order of what they
/// are of, within a budget beyond which less is kept.
std::string RecordConfig(const std::string& output);
std::string RecordConfigText();

/// Records these steps of both runs, of a run that has them only the other.
NextRun RecordSteps(const DoctorEvidence& evidence, const std::vector<int>& steps, BothWords why);

/// Runs the reference once more, for its own error.
NextRun RunAgain(const DoctorEvidence& evidence, BothWords why);

/// Both with a learning rate of 0; none where no launch script sets it.
std::optional<NextRun> RunFrozen(const DoctorEvidence& evidence, BothWords why);

/// B with the inputs that A gave a module; needs tensors of A. The configuration is written to the output.
std::optional<NextRun> Graft(const DoctorEvidence& evidence, const std::string& module_call, int step, BothWords why);

/// "0,1,36,37"
std::string StepList(const std::vector<int>& steps);

}  // namespace msprobe
