// The temporary files of this process, for signal handlers that end it.
#pragma once

#include <string>

namespace msprobe {

/// To be called before the file exists: a signal may come in between.
void RememberTemp(const std::string& name);
void ForgetTemp(const std::string& name);
/// Removes what is remembered and nothing else; may be called in a signal handler.
void RemoveTempFiles() noexcept;

}  // namespace msprobe
