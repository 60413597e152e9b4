// Kinds that move values to other places.
#pragma once

#include <functional>
#include <optional>

#include "diagnose/anatomy/anatomy.h"
#include "diagnose/anatomy/value_pair.h"

namespace msprobe {

/// Where the golden run has what should stand in one place of the target.
struct PlaceOf {
  int64_t at = -1;  // -1: nothing is said of this place
  bool minus = false;
};
using PlaceMap = std::function<PlaceOf(int64_t)>;

/// What is left when the target is put back by `map`; nothing when that is more than rounding, or too little is said.
/// `few`: that many differing places do where values are too alike to tell.
std::optional<double> PutBack(const ValuePair& pair, const PlaceMap& map, size_t few = SIZE_MAX);

/// Axes exchanged, halves of a head against pairs, shifted along an axis.
Anatomy ExplainByPlace(const ValuePair& pair);
/// Entries of one axis in another order, repeated or lost.
Anatomy ExplainByEntries(const ValuePair& pair);
/// Shapes that differ: axes exchanged, the first entries only, entries repeated.
Anatomy ExplainShapes(const ElementsOf& target, const ElementsOf& golden);

}  // namespace msprobe
