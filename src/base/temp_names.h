// The temporary files of this process, for signal handlers that end it.
#pragma once

#include <string>
#include <string_view>

namespace msprobe {

/// "{path}.tmp{process}.{counter}.{place}", where the place stands for the host and its numbers of processes.
std::string TempName(const std::string& path);
/// Whether `name` is of that form, or of the older one without a place; with what SQLite appends to it as well.
bool IsTempName(std::string_view name);

/// From now on this process is a command: where it makes its output directory it removes the temporary files that
/// commands on this host left there when they were killed.
void TidyOutputDirectories();
/// Does so where this process is a command; only names of ours whose process is gone.
void RemoveDeadTemps(const std::string& directory);

/// To be called before the file exists: a signal may come in between.
void RememberTemp(const std::string& name);
void ForgetTemp(const std::string& name);
/// Removes what is remembered and nothing else; may be called in a signal handler.
void RemoveTempFiles() noexcept;

}  // namespace msprobe
