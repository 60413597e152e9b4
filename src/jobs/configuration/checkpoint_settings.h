// What the files of a checkpoint say about the training that wrote it.
#pragma once

#include <string>

#include "base/status.h"
#include "config/settings.h"

namespace msprobe {

/// A directory with launch files and no checkpoint.
bool HoldsConfigurationOnly(const std::string& path);

/// Whether `path` is a directory, or a file with the ending of a checkpoint.
bool MayBeCheckpoint(const std::string& path);

/// Megatron's arguments, the TrainingArguments of transformers (training_args.bin, trainer_state.json) and the model's
/// config.json, as far as they are there. kBadInput where there is none of them. Nothing in a pickle is executed.
Status AddCheckpointSettings(const std::string& path, Configuration* out);

}  // namespace msprobe
