// Where two runs part ways, as it is told to the user.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/message.h"
#include "compare/pair/op_at.h"
#include "compare/round_off/ruler.h"

namespace msprobe {

class ModuleTree;

/// What differs in an item: its Norm, 12.65 against 10.12, 25 % of that.
struct ItemDifference {
  std::string what;            // "Norm", "values", "shape", "checksum", "dtype", "value"; "" for none
  std::string target, golden;  // what it is on both sides, in the words of the dumps; "" if not known
  double percent = -1;         // relative to the golden side; -1: it has no size
};

struct FirstDifference {
  enum class Kind : uint8_t {
    kNone,           // everything that has a partner agrees
    kOp,             // output differs, inputs agree: the op itself
    kCommunication,  // as kOp, but of a communication: look at the other ranks
    kInput,          // the first difference is in an input: no recorded op made it (data, or code between ops)
    kParameter,      // as kInput, and the input is a parameter or buffer
    kArgument,       // an argument that is not a tensor (eps, dim, scale, reduction, ...) differs
    kShape,          // data of another shape: the runs are split differently, values cannot be compared
    kMissingOp,      // the golden run has an op here that the target lacks
    kExtraOp,        // the target has an op here that the golden run lacks
    kDType,          // a tensor has another dtype than its partner
    kGrows,          // differences exist but no op stands out: they add up from op to op
    kDraw,           // the runs drew other random numbers: nothing behind it can be compared, and nothing is wrong
  };
  Kind kind = Kind::kNone;
  size_t op = 0;               // index in the target; of kMissingOp the op before which it is missing
  uint32_t golden_op = kNoOp;  // index in the golden dump
  std::string name;            // of the op; of kMissingOp its name in the golden run
  std::string golden_name;     // "" without partner
  std::string frame;           // "modeling_llama.py:112", the user's innermost line; "" if not known
  std::string function;        // of that line
  std::string module;          // "Module.model.layers.1.mlp.down_proj.Linear.forward.0", around an API; "" if not known
  /// Of kInput without such a module, of two programs: the function that made it, and its place in the source. Else:
  /// the innermost module whose own inputs agree, so its code made the difference, and the last op in it that agrees;
  /// "" if there is none.
  std::string inside, after;
  /// Of a lone op: the one function that the other run calls in the same module, and this one does not. "" if none.
  std::string instead;
  bool of_step = false;     // of kArgument: what the optimizer takes in (optimizer_intake.h), no argument of a call
  size_t more_calls = 0;    // of kArgument: calls of the same function behind it whose arguments differ, too
  bool clips = false;       // of a lone op: it is the norm by which only that run scales its gradients
  std::string drawn;        // an op in front of it that drew other random numbers; "" if none did
  std::string item;         // ".output.0": the item that is furthest apart
  std::string argument;     // "eps": the name that the function has for it; "" if not known
  bool buffer = false;      // of kParameter: the module keeps it beside its parameters
  bool other_call = false;  // of a module: its arguments are others, so that only what it gives was compared
  bool other_mode = false;  // of kOp: a batch norm that in one run computes with the statistics that it keeps
  bool evaluates = false;   // of `other_mode`: that is the target
  bool alone = false;       // of kShape: one process made each dump, so no ranks share the work
  double factor = 0;        // of `pieces`: the gradients of most parameters over those of the golden run; 0: not known
  bool pieces = false;      // of kShape: the same data in micro batches of another size
  bool recomputed = false;  // in a part of the forward pass that runs once more for the backward pass
  /// Of kGrows: rounding adds up to so much by itself, as half precision does, or the loss and all gradients agree.
  bool coarse = false;
  /// Of kInput: the recorded ops whose results came in on both sides, where they are not partners; "" where none is
  /// known.
  std::string made_by, golden_made_by;
  bool gradient = false;    // of kInput: a gradient that comes to a backward call, or to what follows the backward pass
  bool reordered = false;   // of an input: its statistics are those of the same values in other places
  std::string exchanged;    // of an input: the other one of the call with which it changed its place; "" for none
  bool hidden = false;      // of kInput: it holds infinities, and statistics do not show where
  bool state = false;       // of kInput: what an optimizer changes in place, so it comes from the steps before
  std::vector<int> copies;  // of kParameter: ranks that had the same a step before, and no longer have
  std::vector<int> ranks;   // of merged ranks: those whose part is wrong, as far as it shows
  std::string owner;        // of an op of the optimizer: the parameter that it changes, by its path; "" if not known
  std::vector<std::string> fused;  // other ops of the target that the golden run computes as one with it
  /// Of kParameter: "weight"; of a lone op: the one that only this side's optimizer updates. "" if not known.
  std::string parameter;
  ItemDifference difference;                   // in the item
  std::string detail;                          // the same as text: "Norm differs by 12.3 %"
  std::string inputs;                          // "are equal", "agree to 3.1e-07"; "" for ops without inputs
  double input_error = -1, output_error = -1;  // largest ShownError of the inputs and of the results; -1: unknown
  double units = 0;                            // output_error in units of what rounding explains here; may be infinite
  RulerVerdict verdict = RulerVerdict::kNone;
};

/// Ops behind the first difference that differ, too, by the innermost module around them.
struct InfectedModule {
  std::string module;  // "" for ops outside all modules
  uint64_t ops = 0;
};

struct Differences {
  /// The one answer: what made the first difference. kNone when all agrees.
  const FirstDifference& Answer() const {
    using enum FirstDifference::Kind;
    return source.kind == kNone || (source.kind == kDraw && first.kind != kNone) ? first : source;
  }

  FirstDifference first;                   // the first op whose own output differs, or why there is none
  FirstDifference source;                  // kInput: an earlier difference that came in from outside; kNone otherwise
  std::vector<FirstDifference> others;     // that begin behind the answer and cannot come from it
  FirstDifference dtype;                   // the first op with a tensor of another dtype; kNone if there is none
  size_t dtype_ops = 0;                    // ops with such tensors
  bool implementations = false;            // of two programs for one model, where a dtype alone is no difference
  BigArray<RulerVerdict> verdicts;         // of each target op
  RulerContexts contexts;                  // with which its rows are measured
  RulerCounts ruler;                       // of the target's ops
  bool draws_alike = false;                // some random numbers are the same in both runs
  bool rounds_parameters = false;          // some parameter differs by no more than round-off
  uint64_t infected_ops = 0;               // ops that differ behind the answer
  size_t seen_op = 0;                      // where the difference is first seen: behind an op that one run lacks
  uint32_t seen_golden = kNoOp;            // and its partner
  std::vector<InfectedModule> infected;    // of them, in the order in which they first differ
  std::shared_ptr<const ModuleTree> tree;  // of the target
  /// Forward calls of modules with parameters that only one run calls.
  std::vector<std::string> target_modules, golden_modules;
  uint64_t unrecorded = 0;       // modules of the target in which nothing was recorded, and that change their input
  std::string first_unrecorded;  // the first of them
  uint64_t other_forms = 0;      // modules of the target that hold their weights in another form (other_form.h)
  std::string first_other_form;  // the first of them
  uint64_t divided = 0;  // ops on gradients that only one run divides so (divided_step.h): they are not compared
  Message warning;       // construct.json could not be used; the paths of modules were, instead
};

}  // namespace msprobe
