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

/// What a run that records steps saves besides, where it is not there yet.
enum class Besides : uint8_t { kNothing, kBatches, kOptimizer };

/// Records these steps of both runs, of a run that has them only the other.
NextRun RecordSteps(const DoctorEvidence& evidence, const std::vector<int>& steps, BothWords why,
                    Besides besides = Besides::kNothing);

/// Saves the batches of both runs, of all their steps; those of a run that has some are kept.
NextRun SaveBatches(const DoctorEvidence& evidence, BothWords why);

/// Saves the gradients of the first steps and what the optimizers make of them, and has them computed again.
NextRun SaveOptimizer(const DoctorEvidence& evidence, BothWords why);

/// Runs the reference once more, for its own error.
NextRun RunAgain(const DoctorEvidence& evidence, BothWords why);

/// Both with a learning rate of 0; none where no launch script sets it.
std::optional<NextRun> RunFrozen(const DoctorEvidence& evidence, BothWords why);

/// B with inputs of A, as `config` says.
NextRun RunGraft(const DoctorEvidence& evidence, const std::string& config, int step, BothWords why);

/// The same, with the inputs of all modules that can be held against each other alone, which are written to the output;
/// nothing where the dumps do not hold them.
std::optional<NextRun> Graft(const DoctorEvidence& evidence, int step, BothWords why);

/// "0,1,36,37"
std::string StepList(const std::vector<int>& steps);

}  // namespace msprobe
