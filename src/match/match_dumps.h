// The plan for two dumps under the user's mapping.
#pragma once

#include <string_view>
#include <vector>

#include "dump/reader.h"
#include "match/mapping.h"
#include "match/match_plan.h"

namespace msprobe {

enum class Framework : uint8_t { kPyTorch, kMindSpore };

/// By the member "framework" of the dump; dumps of older releases have none and tell it by the types and prefixes of
/// their first ops.
StatusOr<Framework> FrameworkOf(const DumpFile& dump);
std::string_view FrameworkName(Framework framework);

std::vector<std::string_view> OpNames(const DumpFile& dump);

/// kUsage when the mapping does not fit the frameworks; kBadInput when a mapping names nothing that is in the dumps, or
/// a file that it needs (construct.json of -lm) is not there.
StatusOr<MatchPlan> MatchDumps(const DumpFile& target, const DumpFile& golden, const Mapping& mapping);

}  // namespace msprobe
