// MindSpore's communications name the group of ranks, where PyTorch's list its members.
#pragma once

#include <string>

#include "json/value.h"

namespace msprobe {

/// Name of the group that a call gives as a text, by keyword, at a position or as an attribute of its object; "" for
/// the group of all ranks.
std::string GroupNameOf(const JsonValue& op);

/// What an object of MindSpore that communicates was made with ("group", "op", "dest_rank"): its calls do not say it.
const JsonValue* AttributeOf(const JsonValue& op, std::string_view name);

/// Whether a text is the reduction of a call ("sum"), which stands beside the group.
bool IsReductionText(std::string_view text);

}  // namespace msprobe
