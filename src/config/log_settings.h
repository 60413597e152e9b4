// The configuration that a training prints into its log.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "config/settings.h"

namespace msprobe {

inline constexpr size_t kMaxLogBytes = 256 << 20;

/// Megatron's list between "--- arguments ---" and "--- end of arguments ---", one name and value a line. Of several
/// lists the first counts, as it does for slime. Values are True, False, numbers, else texts. kBadInput without one.
StatusOr<ConfigValue> ReadArgumentList(std::string_view log, const std::string& path);

/// The dict that verl prints, whose first key is actor_rollout_ref; of several the last. What Ray puts before each line
/// is taken off, and lines of other processes between are left out. kBadInput without one.
StatusOr<ConfigValue> ReadVerlConfig(std::string_view log, const std::string& path);

/// Whatever of the above, TrainingArguments(...), Namespace(...), DeepSpeed's json, the groups of an optimizer as
/// PyTorch prints it, and Megatron's line about the world size it holds.
StatusOr<std::vector<ConfigSource>> ReadLogSettings(std::string_view log, const std::string& path);

/// Name and version of each line of `pip freeze` or `pip list`; empty for another text.
std::vector<std::pair<std::string, std::string>> ReadPackageList(std::string_view text);

}  // namespace msprobe
