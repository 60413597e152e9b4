// What ${name#pattern} and its kin make of a value, and what tests say.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

/// The text of a word whose value only a run knows.
bool IsOpen(std::string_view word);

/// A op B of [ ] and [[ ]]; nullopt where it compares numbers and these are none.
std::optional<bool> TestHolds(const std::string& a, const std::string& op, const std::string& b);

/// -z A, -n A, A op B and ! before them; nullopt if it is anything else, or a side is not known.
std::optional<bool> ConditionHolds(std::vector<std::string> words);

/// What the "#SBATCH" lines of a script ask for; 0: they do not say.
struct SlurmJob {
  int nodes = 0, tasks_per_node = 0, gpus_per_node = 0;
};
SlurmJob SlurmJobOf(std::string_view text);

/// What follows the name in ${name...}: #, ##, % and %% cut an end off, / and // replace, ^ and , change the case, :1:2
/// is a part; nullopt for anything else.
std::optional<std::string> ChangedBy(std::string_view text, std::string_view operation);

}  // namespace msprobe
