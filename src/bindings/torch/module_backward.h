// The backward of one call of a module: what its outputs received, what it passed on to its inputs, and where it stands
// in the order of the backward pass.
//
// The graph is not changed at the inputs. A node of our own there would collect the gradients of all uses of an input
// within the module before they join those from outside, and (a + b) + c is not a + (b + c) in floating point: the
// training would compute other bits with the tool than without it. So the gradients are read where they flow, at each
// edge that leads from the module to its input, and are summed up here. When such a node would have run is told by the
// sequence numbers of the nodes: autograd runs the highest that is ready.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "bindings/python/py.h"
#include "bindings/torch/autograd_graph.h"
#include "capture/op_name.h"
#include "capture/record.h"

namespace msprobe {

class ModuleBackward : public std::enable_shared_from_this<ModuleBackward> {
 public:
  ModuleBackward(OpName name, uint64_t first_sequence);

  /// The tensors among the inputs that need a gradient; the same one may stand at several positions.
  void SetInputs(const std::vector<PyObject*>& tensors);
  const std::vector<GradEdge>& inputs() const { return inputs_; }
  uint64_t first_sequence() const { return first_; }
  const OpName& name() const { return name_; }

  /// Call after the forward: hooks the edges from the nodes behind `outputs` to the inputs and lets go of the graph.
  void HookInputEdges(const std::vector<GradEdge>& outputs);
  /// The only output is input `input` itself.
  void SetPassesThrough(size_t input) { passes_through_ = static_cast<int>(input); }

  /// Several outputs; `last_sequence` is the number of the first node after the forward.
  void SetOutputs(size_t count, uint64_t last_sequence) { output_grads_.resize(count), last_ = last_sequence; }
  /// The gradient of one of several outputs.
  void OnOutputGrad(size_t output, PyObject* grad);

  /// The gradient of the only output; `sequence` is that of the node which is about to run.
  void Begin(PyObject* grad, uint64_t sequence);
  void OnInputGrad(size_t input, PyObject* grad);

 private:
  friend class BackwardOrder;
  void LetGo();
  bool Fresh() const;
  void BeginWith(const std::vector<Ref>& grads, uint64_t sequence);
  void BeginWithOutputs();
  void End();
  void RecordInputGrads();

  OpName name_;
  uint64_t generation_, serial_, thread_;  // that of the forward
  uint64_t first_, last_ = kNoSequence;    // of the nodes of the forward
  std::vector<GradEdge> inputs_;           // without repetition; empty after the forward
  std::vector<size_t> positions_;          // of each input that needs a gradient: index of inputs_
  std::vector<Ref> input_grads_, output_grads_;
  size_t edges_ = 0, seen_ = 0;
  int passes_through_ = -1;
  Record* record_ = nullptr;
  bool begun_ = false, outputs_wait_ = false, inputs_recorded_ = false;
};
using ModuleBackwardPtr = std::shared_ptr<ModuleBackward>;

/// Runs before the node of a module's only output, whose gradient is number `number` there. Several modules may end at
/// one node: the outermost comes first. New reference, or null with an error.
PyObject* NewOutputHook(ModuleBackwardPtr backward, Py_ssize_t number, uint64_t sequence);
void AddOuterModule(PyObject* output_hook, ModuleBackwardPtr backward, Py_ssize_t number);
/// Runs before the node of one of several outputs.
PyObject* NewOneOutputHook(ModuleBackwardPtr backward, size_t output, uint64_t sequence);

/// What waits for its turn in the backward pass. Each thread that runs nodes has an order of its own, for autograd has
/// a queue for each: several passes at a time, or devices, know nothing of each other.
class BackwardOrder {
 public:
  static BackwardOrder& Get();

  /// A node of this number is running: what comes before it in the order of autograd has had its turn.
  void Reach(uint64_t sequence) { Reach(sequence, 0); }
  /// The gradient of a parameter is there: the node before it has this number if the forward ran on `thread`. Numbers
  /// of other threads say nothing, and other forwards may have used the parameter since.
  void ReachParameter(uint64_t sequence, uint64_t thread) { Reach(sequence, thread); }
  /// An op begins, maybe within a backward (recomputation, custom functions), maybe after it.
  void OnForward();
  /// This backward pass is over.
  void EndPass(int64_t pass);
  /// All are.
  void Finish();

 private:
  friend class ModuleBackward;
  struct Turn {
    uint64_t sequence, serial;
    ModuleBackwardPtr module;
    bool begins;
    int64_t pass = -1;
  };
  using Turns = std::vector<Turn>;  // the next one last
  void Add(Turn turn);
  void Reach(uint64_t sequence, uint64_t thread);
  template <typename Wanted>
  bool RunLast(uint64_t thread, Wanted wanted);

  size_t waiting_ = 0;
  std::map<uint64_t, Turns> turns_;  // by thread
  std::set<int64_t> passes_;         // that tell when they are over
};

}  // namespace msprobe
