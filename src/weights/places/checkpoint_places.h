// Where checkpoints lie, by the names of files and directories.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace msprobe {

using FileNames = std::set<std::string, std::less<>>;

/// Whether a directory with these names is one checkpoint, whatever its format.
bool IsCheckpointDirectory(const std::string& path, const FileNames& names);

/// By words of its path below what was given: "init", "step_10", "iter_0000010", "checkpoint-10". Without one, the
/// directory that was given, or one above it, says it if it is called as steps are: "run/global_step_7" of
/// "run/global_step_7/actor". -1 where none says.
int StepOfCheckpoint(std::string_view path, std::string_view given);

/// The last whole number in a text; -1 without one.
int LastNumber(std::string_view text);

}  // namespace msprobe
