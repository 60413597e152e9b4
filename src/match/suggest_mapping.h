// A layer mapping for the names that two models have in common by content only, for the user to confirm.
#pragma once

#include <string>
#include <vector>

#include "match/structure_diff.h"

namespace msprobe {

/// The suggestion, and how far it carries.
struct SuggestedMapping {
  std::vector<LayerRule> rules;
  std::vector<std::string> left_out;  // renamed modules that no rule can tell from others, with the reason
  std::vector<std::string> joined;    // layers that the other run computes as one, of which a line names one part
  size_t modules = 0;                 // that have a partner
  size_t calls = 0;                   // calls of modules and functions in the target
  size_t matched_without = 0, matched_with = 0;
};

/// `given`, a mapping that is in use already, is part of the result.
SuggestedMapping SuggestMapping(const Structure& target, const Structure& golden, const StructureDiff& diff,
                                const std::vector<LayerRule>& given);

/// The file for -lm: rules with what speaks for each, as comments.
std::string SuggestedMappingYaml(const SuggestedMapping& mapping, std::string_view target, std::string_view golden);

}  // namespace msprobe
