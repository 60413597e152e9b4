// Questions of the walk that need nothing of what it has seen.
#pragma once

#include <optional>

#include "compare/first_difference/walk_types.h"

namespace msprobe {

/// Arguments that differ and did not show in what their own call gave. Of calls of one function that follow each other
/// the first is told, and how many there are behind it.
struct IdleArguments {
  size_t first = SIZE_MAX, last = SIZE_MAX, more_calls = 0;
  bool empty() const { return last == SIZE_MAX; }
  void Note(const OpList& ops, size_t i);
  void SetOn(const WalkInput& in, FirstDifference* found) const;
};

/// False for the first part of a comparison that still runs.
bool IsComplete(const WalkInput& in);

/// The outermost call around what came in, or around an op that one run lacks, to which only one run gives a tensor.
/// `seen` is the op at which the difference shows.
std::optional<size_t> GivenOnOneSide(const WalkInput& in, const FirstDifference& found, size_t seen);

/// Whether the op is a module of another class than its partner, as one with adapters, and gives the same all the same.
bool IsExactInOtherClass(const WalkInput& in, size_t op);

/// Whether the op is inside of a module that holds its weights in another form than its partner.
bool IsInOtherForm(const WalkInput& in, std::string_view op, bool golden = false);

/// Of two programs: whether what takes the result of the op, which differs, is given the same as in the other run, or
/// far closer to it. Then the other run only does at another place what this op does.
bool IsMadeGood(const WalkInput& in, size_t op);

/// Whether only one run's call gives a gradient of the shape of its forward input: the other one is that of a node
/// which autograd put between, as it does for other memory formats.
bool IsOfOtherNode(const WalkInput& in, size_t op);

/// Whether inputs of the op have the same extremes and no more than the last digits of their sums differ: these are the
/// same values in other places, where nothing in front of the op rounds.
bool IsReordered(const WalkInput& in, size_t op);

/// Either of that, or whether only one run shows the gradient of all places at each place of one tensor.
bool IsOtherGradient(const WalkInput& in, size_t op);

/// Of a function that is given what its partner is given, in another order: its inputs agree where its results do; else
/// exchanged operands came in, which are no data that is split otherwise.
void TakeInOtherOrder(const WalkInput& in, size_t op, OpDistance* d);

/// Of a parameter's gradient the backward call of its module, which is given another one. Else the outermost module
/// around the op that is given other ids or another mask: modules stand behind what is in them, so
/// it came in there before. Other values would show in the ops that take them.
std::optional<size_t> EnteredAround(const WalkInput& in, size_t op);

/// Whether its forward op is computed another way, such as at another place: what arrives is another gradient then.
bool IsBackwardOfRewritten(const WalkInput& in, const BigArray<RulerVerdict>& verdicts, size_t op);

/// Where what comes in to an op inside of a module is made of a parameter that the module itself holds and that
/// differs, that is the place: modules stand behind what is in them.
void MoveToParameter(const WalkInput& in, WalkResult* walk);

/// Where what comes in was put into a tensor in front of it (assigned_values.h), that is the place.
Status MoveToAssignment(const WalkInput& in, WalkResult* walk);

/// A module that is given the same numbers and no tensor.
bool IsOfNumbers(std::string_view name, const OpDistance& d);

/// Their statistics agree to the round-off of the dtype; those of indices to the last digit.
bool OnlyChecksumsDiffer(const WalkInput& in, const OpDistance& d, float error);

/// More than any drift before it and its own rounding, though still near the tolerance.
bool JumpsFromDrift(const OpDistance& d, float drift);

/// The error of a norm of its results; exp() makes a factor of an error.
float NormOf(std::string_view name, const OpDistance& d);

/// Whether a number that differs by this ratio only follows how the shapes are split.
bool FollowsSplit(float ratio, float split);

/// The first op with other dtypes, and how many; true when they are so many that the runs are of other precision, or
/// when all products are of another: that is what autocast does to a model of which little else is recorded.
bool CountDTypes(const OpList& ops, const OpDistances& distances, Differences* out);

}  // namespace msprobe
