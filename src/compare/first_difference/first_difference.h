// Where two runs part ways: the first op whose output differs although its inputs agree.
#pragma once

#include <string>
#include <vector>

#include "compare/describe/differences.h"
#include "compare/pair/dump_pair.h"

namespace msprobe {

/// "op", "communication", "input", "parameter", "argument", "shape", "missing_op", "extra_op", "dtype", "grows",
/// "none".
std::string_view DifferenceKindText(FirstDifference::Kind kind);

/// As long as everything before is bit-equal, an op is to blame when its inputs are bit-equal and its outputs are
/// further apart than its own rounding explains (RoundOff). Where both runs have rounded before, an op is to blame when
/// its output is further apart than round-off (RowDistance > 1, enlarged by the op's condition), its inputs are not,
/// and the output is at least 10 times further apart than they. Behind a difference that came in from outside it must
/// be 1000 times round-off, because statistics of inputs may hide that difference (a rotation keeps every norm).
/// Round-off travels: it is that of the coarsest dtype so far, bfloat16 at most. Ops around an earlier difference (a
/// module whose child differs) and backward ops whose forward differs, or that have none and follow a difference, only
/// pass it on. Arguments that are not tensors, ops that one run has more, and a dtype that only some ops have, are to
/// blame when the difference starts there. Where names cannot pair the ops because one run has more, their order does.
/// `calibrated` holds, for each golden op, its relative error between two golden runs.
StatusOr<Differences> FindDifferences(const DumpPair& pair, OpDistances distances,
                                      const BigArray<float>* calibrated = nullptr);

/// "modeling_llama.py:112" and the function, from the innermost frame that is not the framework's own.
bool UserFrame(const std::vector<std::string>& frames, std::string* place, std::string* function);

}  // namespace msprobe
