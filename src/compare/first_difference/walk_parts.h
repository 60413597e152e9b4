// Questions of the walk that need nothing of what it has seen.
#pragma once

#include <optional>

#include "compare/first_difference/walk_types.h"

namespace msprobe {

/// False for the first part of a comparison that still runs.
bool IsComplete(const WalkInput& in);

/// The outermost call around what came in, or around an op that one run lacks, to which only one run gives a tensor.
/// `seen` is the op at which the difference shows.
std::optional<size_t> GivenOnOneSide(const WalkInput& in, const FirstDifference& found, size_t seen);

/// Whether the op is a module of another class than its partner, as one with adapters, and gives the same all the same.
bool IsExactInOtherClass(const WalkInput& in, size_t op);

/// A module that is given the same numbers and no tensor.
bool IsOfNumbers(std::string_view name, const OpDistance& d);

/// Their statistics agree to the round-off of the dtype; those of indices to the last digit.
bool OnlyChecksumsDiffer(const WalkInput& in, const OpDistance& d, float error);

/// Whether a number that differs by this ratio only follows how the shapes are split.
bool FollowsSplit(float ratio, float split);

}  // namespace msprobe
