// The backward of one call, of a function or of a Cell: what its outputs received and what it passed on to its inputs.
//
// No operator is put into the graph. The nodes of the call that lead to its inputs are found after its forward, and one
// hook at each node tells all calls that end or begin there: calls of functions and the Cells around them share it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bindings/backward/graph_walk.h"
#include "bindings/python/py.h"
#include "capture/op_filter.h"
#include "capture/op_name.h"
#include "capture/record.h"

namespace msprobe {

class CallBackward : public std::enable_shared_from_this<CallBackward> {
 public:
  /// `arguments` are those before the call, in their order. Lists among them are left out, as in dumps of the earlier
  /// tool.
  explicit CallBackward(const std::vector<PyObject*>& arguments);

  /// After the forward, before Hook(): what the call made and keeps in attributes of its Cell, as an auxiliary loss: it
  /// leaves by them. `inner`: the same of the calls within.
  void AddKept(PyObject* cell, const std::vector<GradEdge>& inner);
  const std::vector<GradEdge>& kept() const { return kept_; }

  /// After the forward: hooks the nodes behind `output`. `only_gradients`: arguments without a gradient are left out
  /// instead of shown as null. `parent`: the backward of the Cell around it.
  void Hook(PyObject* output, const OpName& name, Risk risk, const OpName& parent, bool only_gradients);

  /// The gradient of an output is there, or that of an edge that leads to an input; None: there is none.
  void OnOutputGrad(size_t output, PyObject* grad);
  void OnInputGrad(size_t input, PyObject* grad);
  /// Nothing more will come in this pass.
  void Finish();

 private:
  bool Fresh() const;
  void Begin();
  void RecordOutputs();
  void RecordInputs();
  void Told();
  bool IsKnown(int input) const;
  /// Of a function: where one tensor stands at several of its positions and one node passes on as many gradients of it,
  /// each position gets its own, in their order; else none of them is known.
  void TellPlacesApart(std::vector<InputEdge>* edges);

  OpName name_, parent_;
  Risk risk_ = Risk::kFocus;
  uint64_t generation_, since_;
  std::vector<GradEdge> inputs_;  // without repetition; empty after the forward
  std::vector<GradEdge> kept_;    // in attributes; empty after the forward, too
  bool keeps_ = false;
  std::vector<int> positions_;  // of each tensor among the arguments: index of inputs_, or -1 for one without gradient
  std::vector<Ref> input_grads_, output_grads_;
  size_t expected_ = 0, told_ = 0, outputs_expected_ = 0, outputs_told_ = 0, outputs_unknown_ = 0;
  std::vector<bool> unknown_;  // of input_grads_: several uses of it have one gradient, and nothing tells their shares
  bool only_gradients_ = false, begun_ = false, outputs_recorded_ = false;
  Record* record_ = nullptr;
};
using CallBackwardPtr = std::shared_ptr<CallBackward>;

/// What is still open when a backward pass is over, or all is at stop().
void FinishOpenBackwards();

}  // namespace msprobe
