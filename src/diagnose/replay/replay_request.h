// The question to python/msprobe/_replay.py: an op of both sides as one line of JSON.
#pragma once

#include <string>

#include "diagnose/replay/op_call.h"
#include "json/writer.h"
#include "ops/op_traits.h"

namespace msprobe {

/// {"owner": .., "function": .., "args": .., "tensors": [[key, path, requires_grad], ..], ..}. kBadInput, one line,
/// when a tensor that the call needs has no readable file.
StatusOr<std::string> ReplaySideJson(const DumpFile& dump, const OpSide& side);

/// "elementwise", "product", ...: as the program knows it.
std::string_view ArithmeticText(Arithmetic kind);

/// Members of the open object that say which function is called and with what: owner, function, in_place, args, kwargs.
void WriteCallMembers(const OpCall& call, JsonWriter* json);

}  // namespace msprobe
