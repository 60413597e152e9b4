// What Python computes with values that a file says, for the reader of its expressions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/value.h"

namespace msprobe {

/// A call is a map: its name under kPythonCall, its arguments by their names or from "0" on.
inline constexpr std::string_view kPythonCall = "_call_";

/// What a value takes: its parts, and its texts by 32 bytes; SIZE_MAX where it is nested too deeply to be kept.
size_t SizeOf(const ConfigValue& value, int depth = 0);

/// Whether a value, or a part of it, is left to the run.
bool IsOpenValue(const ConfigValue& value);

namespace python {

/// What only a run knows: the text "$(...)".
ConfigValue Open(std::string_view text);
bool IsOpenText(const ConfigValue& value);

ConfigValue ListOf(std::vector<ConfigValue> items);
bool Whole(const ConfigValue& value);
/// Of numbers and truths, not of texts.
std::optional<double> NumberOf(const ConfigValue& value);
ConfigValue Numeric(double value, bool whole);
std::optional<bool> Truthy(const ConfigValue& value);
/// The last of this name; null.
const ConfigValue* MemberOf(const ConfigValue& map, std::string_view name);
/// Whether this is the name of a class, or of a constant of a library: torch.bfloat16.
bool IsConstant(std::string_view name);
/// Whether it stands for a call of what it is given first: run.Config(X, a=1), partial(X, a=1).
bool StandsForCall(std::string_view name);
/// list * times.
ConfigValue Repeated(const ConfigValue& list, int64_t times);
/// value[index].
ConfigValue Item(const ConfigValue& value, const ConfigValue& index);
/// name(...) with the arguments as a map: dict(), int(), max(), field(), ...; of others the map with the name in it.
ConfigValue Called(const std::string& name, ConfigValue given);

}  // namespace python
}  // namespace msprobe
