// Parts of a run that compute the same in another way.
#pragma once

#include <unordered_set>
#include <vector>

#include "base/big_array.h"
#include "base/slot_table.h"
#include "compare/pair/dump_pair.h"
#include "compare/pair/module_tree.h"
#include "compare/round_off/ruler.h"

namespace msprobe {

/// Where two runs agree behind a part of them: a module whose inputs and outputs agree to round-off, and all gradients
/// of parameters in it; for ops that no module calls, the end of the forward or backward pass. What differs inside says
/// nothing of what comes out: ops that stand against each other by their order alone may be different ones.
class Rewrites {
 public:
  /// All outlive the object; `other_dtype`: the runs are of different precision, and their agreement says too little.
  Rewrites(const DumpPair& pair, const MatchPlan& plan, const OpDistances& distances, const ModuleTree& target,
           const ModuleTree& golden, bool other_dtype)
      : pair_(pair), plan_(plan), distances_(distances), trees_{&target, &golden}, other_dtype_(other_dtype) {}

  /// Whether the op is inside such a part. `at` is its place among the target's ops, for an op that only the golden run
  /// has that of the one behind it. Of communications only those of a module in which both runs have some of their own:
  /// what other ranks do with a single one is not seen here.
  bool Cover(std::string_view op, bool golden, size_t at);
  /// Whether ops of this API, called by modules of this class, were seen to be rewritten in a module that agrees: then
  /// they are in others, too.
  bool Knows(std::string_view op, bool golden) const { return known_.contains(KindOf(op, golden)); }
  void Learn(std::string_view op, bool golden) { known_.insert(KindOf(op, golden)); }
  /// Whether the module that calls the op was given the same as its partner and gives something else. `rounded`: values
  /// before it differ, so that only what is given numbers alone was given the same for sure.
  bool InParting(std::string_view op, bool rounded);
  /// Whether each run has functions of its own where the op is called, beside those that they share: x / (1 + exp(-ax))
  /// for x * sigmoid(ax). Then a number may stand with the other sign, or turned over.
  bool IsOtherFormula(size_t op);
  /// Whether functions that only these runs have make up for another number of the call: one that hardly matters leaves
  /// what is made of it nearly as it was; here it is plainly otherwise, and the loss is not.
  bool IsUndone(size_t op);
  /// Whether an op that no module calls holds nothing but what is zero but for rounding, compared with its likes: the
  /// gradient of a bias that cancels out.
  bool IsRoundedZero(size_t op);
  /// Whether the last results of a forward pass agree.
  bool LossAgrees();
  /// Whether the gradients that the optimizer takes in agree, too.
  bool StepAgrees();
  /// Whether the loss agrees, and no gradient of a parameter stands out as it comes out of the backward pass.
  bool GradientsOfParametersAgree();
  /// Why an op could not be read, if one could not.
  const Status& status() const { return status_; }

 private:
  /// Ops of one direction, one after another.
  struct Pass {
    size_t begin = 0;
    bool backward = false, agrees = false;
  };
  /// Whether a call and its partner add the same to what they change.
  StatusOr<bool> AddsTheSame(size_t at) const;
  /// Whether an op that is given the same gives something else for later steps to read, as a buffer of a module: the
  /// loss of this step says nothing of it.
  bool PartsForLater(std::string_view op, bool golden, size_t at);
  /// A hook of a backward pass that writes in place adds a gradient to memory outside of the module.
  bool WritesInHook(std::string_view op, bool golden, size_t at);
  void Read();
  void FindWrongGradients();
  void FindModules();
  void FindOtherExchanges();
  void FindAmplitudes();
  void FindOwnFunctions();
  void FindPasses();
  /// Of a function of a list: whether the tensors that differ are such zeros beside the largest in it.
  bool OnlyZerosDiffer(size_t op);
  uint64_t KindOf(std::string_view op, bool golden) const;
  bool EndAgrees(size_t begin, size_t end) const;
  bool GradientsAgree(size_t pass);
  bool LastResultAgrees(size_t begin, size_t end) const;
  bool IsMatched(size_t op) const { return distances_[op].matched && plan_.golden_of[op] != kNoOp; }
  bool Agrees(size_t op, bool without_output = false) const;
  /// Of a forward call: it was given the same but for rounding and gives something else.
  bool Parts(size_t op) const;
  static bool IsBackward(OpDirection direction) {
    return direction == OpDirection::kBackward || direction == OpDirection::kParameterGrad;
  }
  bool IsBackward(std::string_view op) const;
  size_t EndOf(size_t pass) const;

  const DumpPair& pair_;
  const MatchPlan& plan_;
  const OpDistances& distances_;
  const ModuleTree* trees_[2];
  const bool other_dtype_;
  Status status_ = OkStatus();
  bool read_ = false;
  TextIds agreeing_[2];    // names of modules, of the target and of the golden run
  TextIds exchanging_[2];  // those of them in which both runs have communications of their own
  TextIds parting_[2];     // those that were given the same and give something else
  TextIds numbers_only_;   // of the target's: given no tensor
  std::unordered_set<uint64_t> known_;
  TextIds own_functions_[2];  // modules that call functions which the other run lacks
  bool sought_own_ = false;
  TextIds graded_;                    // paths of modules around parameters whose gradients are compared
  TextIds wrong_gradient_;            // paths of modules around parameters whose gradients differ
  BigArray<OpDirection> directions_;  // of the target's ops
  TextIds apis_;
  std::vector<float> amplitudes_;  // the largest of each API
  std::vector<Pass> passes_;
  int loss_agrees_ = -1;  // -1: not looked at
  bool sought_lasting_ = false;
  std::vector<bool> lasting_;  // of the target's ops (lasting_writes.h)
};

}  // namespace msprobe
