// Values of the dumps of two runs, without regard to the op that has them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "json/value.h"

namespace msprobe {

/// dump.json of one rank of a step: what holds for all of them is read there; "" if there is none.
std::string FirstDumpFile(const std::string& step);

/// Whether an item of an op holds whole numbers or truths: data, masks and positions, but nothing that is computed.
bool IsWhole(const JsonValue& item);

/// Labels, ids or a mask that an op of both runs is given, that no recorded op made and that differ, so that what the
/// op gives differs.
struct GivenData {
  std::string op, item;  // "Functional.cross_entropy.0.forward", "input.1"
  std::string a, b;      // "Max 95, Min -100, Norm 921.676"
};
std::optional<GivenData> FindGivenData(const std::string& dump_a, const std::string& dump_b);

/// Whether all that an op gives is somewhere in another dump, as far as statistics tell and but for rounding.
bool HoldsOutputs(const std::string& dump, const std::string& op, const std::string& other);

}  // namespace msprobe
