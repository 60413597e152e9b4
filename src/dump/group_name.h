// MindSpore's communications name the group of ranks, where PyTorch's list its members.
#pragma once

#include <string>

#include "json/value.h"

namespace msprobe {

/// Name of the group that a call gives as a text, by keyword or at a position; "" for the group of all ranks.
std::string GroupNameOf(const JsonValue& op);

/// Whether a text is the reduction of a call ("sum"), which stands beside the group.
bool IsReductionText(std::string_view text);

}  // namespace msprobe
