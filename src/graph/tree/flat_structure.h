// A structure for dumps that hold none (level L1): the calls of the model in one module.
#pragma once

#include <string_view>

#include "dump/construct_lines.h"
#include "dump/reader.h"

namespace msprobe {

/// The calls of the forward pass are those of one module, the calls of the backward pass those of its backward call.
inline constexpr std::string_view kAllCallsForward = "Module.all_calls.Calls.forward.0";
inline constexpr std::string_view kAllCallsBackward = "Module.all_calls.Calls.backward.0";

/// Fills `lines`, which is empty, with the ops of the dump, in their order. What comes behind the last backward call is
/// of the optimizer, and in no module.
void PutCallsInOneModule(const DumpFile& dump, ConstructLines* lines);

bool IsOneModuleOfCalls(const ConstructLines& lines);

}  // namespace msprobe
