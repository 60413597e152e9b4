// Where two runs part ways: the first op whose output differs although its inputs agree.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compare/dump_pair.h"
#include "compare/op_at.h"
#include "compare/ruler.h"

namespace msprobe {

class ModuleTree;

/// One entry for each op of the target, in dump order.
using OpDistances = BigArray<OpDistance>;

struct FirstDifference {
  enum class Kind : uint8_t {
    kNone,           // everything that has a partner agrees
    kOp,             // output differs, inputs agree: the op itself
    kCommunication,  // as kOp, but of a communication: look at the other ranks
    kInput,          // the first difference is in an input: no recorded op made it (data, or code between ops)
    kParameter,      // as kInput, and the input is a parameter or buffer
    kArgument,       // an argument that is no tensor (eps, dim, scale, reduction, ...) differs
    kShape,          // data of another shape: the runs are split differently, values cannot be compared
    kMissingOp,      // the golden run has an op here that the target lacks
    kExtraOp,        // the target has an op here that the golden run lacks
    kDType,          // a tensor has another dtype than its partner
    kGrows,          // differences exist but no op stands out: they add up from op to op
  };
  Kind kind = Kind::kNone;
  size_t op = 0;               // index in the target; of kMissingOp the op before which it is missing
  uint32_t golden_op = kNoOp;  // index in the golden dump
  std::string name;            // of the op; of kMissingOp its name in the golden run
  std::string golden_name;     // "" without partner
  std::string frame;           // "modeling_llama.py:112", the user's innermost line; "" if not known
  std::string function;        // of that line
  std::string module;          // "Module.model.layers.1.mlp.down_proj.Linear.forward.0", around an API; "" if not known
  /// Of kInput: the innermost module whose own inputs agree, so its code made the difference, and the last op in it
  /// that agrees; "" if there is none.
  std::string inside, after;
  std::string item;                            // ".output.0": the item that is furthest apart
  std::string detail;                          // "Norm differs by 12.3 %", "CRC-32 differs"
  std::string inputs;                          // "are equal", "agree to 3.1e-07"; "" for ops without inputs
  double input_error = -1, output_error = -1;  // largest relative error of the inputs and of the results; -1: unknown
  double units = 0;                            // output_error in units of what rounding explains here; may be infinite
  RulerVerdict verdict = RulerVerdict::kNone;
};

/// "op", "communication", "input", "parameter", "argument", "shape", "missing_op", "extra_op", "dtype", "grows",
/// "none".
std::string_view DifferenceKindText(FirstDifference::Kind kind);

/// Ops behind the first difference that differ, too, by the innermost module around them.
struct InfectedModule {
  std::string module;  // "" for ops outside all modules
  uint64_t ops = 0;
};

struct Differences {
  /// The one answer: what made the first difference. kNone when all agrees.
  const FirstDifference& Answer() const { return source.kind == FirstDifference::Kind::kNone ? first : source; }

  FirstDifference first;                   // the first op whose own output differs, or why there is none
  FirstDifference source;                  // kInput: an earlier difference that came in from outside; kNone otherwise
  FirstDifference dtype;                   // the first op with a tensor of another dtype; kNone if there is none
  size_t dtype_ops = 0;                    // ops with such tensors
  BigArray<RulerVerdict> verdicts;         // of each target op
  RulerContexts contexts;                  // with which its rows are measured
  RulerCounts ruler;                       // of the target's ops
  uint64_t infected_ops = 0;               // ops that differ behind the answer
  std::vector<InfectedModule> infected;    // of them, in the order in which they first differ
  std::shared_ptr<const ModuleTree> tree;  // of the target
  std::string warning;                     // construct.json could not be used; the paths of modules were, instead
};

/// As long as everything before is bit-equal, an op is to blame when its inputs are bit-equal and its outputs are
/// further apart than its own rounding explains (RoundOff). Where both runs have rounded before, an op is to blame when
/// its output is further apart than round-off (RowDistance > 1, enlarged by the op's condition), its inputs are not,
/// and the output is at least 10 times further apart than they. Behind a difference that came in from outside it must
/// be 1000 times round-off, because statistics of inputs may hide that difference (a rotation keeps every norm).
/// Round-off travels: it is that of the coarsest dtype so far, bfloat16 at most. Ops around an earlier difference (a
/// module whose child differs) and backward ops whose forward differs, or that have none and follow a difference, only
/// pass it on. Arguments that are no tensors, ops that one run has more, and a dtype that only some ops have, are to
/// blame when the difference starts there. Where names cannot pair the ops because one run has more, their order does.
/// `calibrated` holds, for each golden op, its relative error between two golden runs.
StatusOr<Differences> FindDifferences(const DumpPair& pair, OpDistances distances,
                                      const BigArray<float>* calibrated = nullptr);

/// "modeling_llama.py:112" and the function, from the innermost frame that is not the framework's own.
bool UserFrame(const std::vector<std::string>& frames, std::string* place, std::string* function);

}  // namespace msprobe
