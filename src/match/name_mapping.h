// Names of the target's ops as the golden run would have them: by cell mapping, by path of modules, by api mapping.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dump/reader.h"
#include "match/mapping.h"
#include "match/match_plan.h"

namespace msprobe {

/// The part between the first dot and the direction is looked up in `cells`; when it is not there, each entry that
/// occurs in it replaces its first occurrence, in the order of the file.
std::vector<std::string> MapCells(const std::vector<std::string_view>& target,
                                  const std::vector<std::pair<std::string, std::string>>& cells);

/// Modules of another framework ("Cell.fc.Dense") under the golden run's prefix ("Module") and, where its module of
/// that path has another class, under that class ("Module.fc.Linear"). Other ops keep their names.
std::vector<std::string> MapModules(const std::vector<std::string_view>& target,
                                    const std::vector<std::string_view>& golden, std::string_view golden_prefix);

/// MindSpore's APIs under PyTorch's names. Which of torch, torch.nn.functional and Tensor holds a function is decided
/// by what the golden run called, and how often; APIs that `rules` name get the name they say.
std::vector<std::string> MapApis(const std::vector<std::string_view>& target,
                                 const std::vector<std::string_view>& golden, const std::vector<ApiRule>& rules);

/// The items of the ops that `rules` name: only those listed have partners.
void LinkApiItems(const std::vector<std::string_view>& target, const std::vector<ApiRule>& rules, MatchPlan* plan);

/// PyTorch's names of a function that MindSpore calls `function`, other than that one.
std::vector<std::string_view> FunctionAliases(std::string_view function);

/// "Functional.linear" of "Functional.linear.0.forward"; the whole name when it has fewer than two dots.
std::string_view ApiOfOp(std::string_view op);

/// The names of the target's ops as the golden run would have them, where one of them recorded its model as a list of
/// one: "Module.0.x" is "Module.x". Empty where the modules of both sides are named alike.
std::vector<std::string> NamesWithoutChunk(const DumpFile& target, const DumpFile& golden);

/// The names of the target's ops as the golden run would have them: without what a wrapper puts in front of the paths
/// of its modules (or with it), and with the golden run's class where the two have other classes at one path. Empty
/// where the modules of both sides are named alike, and where nothing is gained.
std::vector<std::string> NamesOfWrapped(const DumpFile& target, const DumpFile& golden);

}  // namespace msprobe
