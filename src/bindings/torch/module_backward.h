// The backward of one call of a module: what its returned tensors received, and what went through the call to its
// arguments.
//
// The graph is not changed, and the module gets and gives the objects that it would without us. A node of our own at an
// input would collect the gradients of all uses within the module before they join those from outside, and (a + b) + c
// is not a + (b + c) in floating point: the training would compute other bits. So gradients are read where they flow:
// at the node of an output, and, where that sees more than the call, at each edge that brings a part of it
// (gradient_paths.h), and are summed up here.
//
// Each is read when it is there, before the next node runs: backwards work in place, some without telling autograd.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bindings/python/name_counts.h"
#include "bindings/python/py.h"
#include "bindings/torch/backward_order.h"
#include "bindings/torch/node_notes.h"
#include "capture/op_name.h"
#include "capture/record.h"

namespace msprobe {

/// How the gradient of an output is told.
enum class OutputPath : uint8_t {
  kWhole,    // all that its node receives
  kByEdges,  // by the edges from nodes that got it from the caller of the module
  kUnknown,  // by none: the same tensor has come to its users by another way, too
};

class ModuleBackward final : public PortOwner, public OrderedCall, public std::enable_shared_from_this<ModuleBackward> {
 public:
  ModuleBackward(OpName name, NameCounts* counts);

  /// Tensors among the arguments that need a gradient, right before the forward.
  void SetInputs(const std::vector<PyObject*>& tensors);
  /// Those among what is returned, right after it.
  void SetOutputs(const std::vector<PyObject*>& tensors);
  /// Of what was returned the first that was there before the call, as an argument is; null: none was.
  PyObject* ReturnedAsItWas(const std::vector<PyObject*>& tensors) const;
  /// Such may be used from now on by others than those who have it from the module.
  void SetUsedPast() { used_past_ = true; }

  /// Whether the call made the node of this number.
  bool Made(uint64_t sequence) const { return sequence >= first_ && sequence < last_; }
  /// Whether the node of this number is older, or younger than all of the call.
  bool IsOlder(uint64_t sequence) const { return sequence < first_; }
  bool IsYounger(uint64_t sequence) const { return sequence >= last_; }
  /// Whether it is a call of the same module that began when `other` had ended.
  bool Follows(const ModuleBackward& other) const {
    return name_.base == other.name_.base && began() > other.began() && first_ >= other.last_;
  }
  /// Which input an output is; -1: none.
  int ArgumentOf(size_t output) const { return outputs_[output].argument; }
  /// Whether it was there before the call.
  bool IsOld(size_t output) const { return outputs_[output].old; }
  bool used_past() const { return used_past_; }
  bool Fresh() const;

  /// A pass begins. What it does not reach is not expected.
  void ExpectNothing();
  /// How many edges lead to an argument, and how the gradient of an output comes. `given`: that of an
  /// output that the pass begins with; null: it does not. `of_base`: edges bring that of the tensor of which it is a
  /// view.
  void ExpectInput(size_t index, size_t edges, bool of_base);
  void ExpectOutput(size_t index, OutputPath path, size_t edges, PyObject* given, bool of_base);

  void OnOutputGrad(size_t index, PyObject* grad) override;
  void OnEdge(bool output, size_t index, PyObject* grad) override;
  void Open() override;
  void End() override;

 private:
  // One of the gradients, in one pass.
  struct Gradient {
    uint64_t id = 0;  // of the notes of its node
    Py_ssize_t number = 0;
    int places = 1;     // at which the tensor stands
    int argument = -1;  // of an output: the input that it is
    bool old = false;
    bool unknown = false, reached = false;
    Ref shape;             // of a view
    bool of_base = false;  // what comes may have that of another tensor
    OutputPath path = OutputPath::kWhole;
    size_t expected = 0, seen = 0;  // edges
    Ref given;
    // What has come.
    bool told = false;
    bool owned = false;  // the sum has memory of its own
    Ref sum;
    std::unique_ptr<Record> part;
  };

  void Place(const std::vector<PyObject*>& tensors, bool outputs);
  void PlaceAtBase(Gradient* g, size_t index, bool output, PyObject* tensor, PyObject* node);
  void LetGo();
  void Reset();
  bool Arrive(const Gradient* whole);
  void Begin();
  void WaitForEnd();
  void Add(Gradient* g, PyObject* grad);
  void AddGiven();
  void Tell(bool output, size_t index);
  void RecordPart(Gradient* g, bool output, size_t place, PyObject* grad);
  void RecordAll(Record* record, bool outputs);
  void NoteUnknown() const;
  bool AllIsTold() const;

  static constexpr size_t kNowhere = SIZE_MAX;

  OpName name_, pass_name_;
  NameCounts* counts_;
  uint64_t generation_;
  uint64_t first_ = 0, last_ = 0;  // of the nodes of the forward; behind the last
  std::vector<Gradient> inputs_, outputs_;
  std::vector<size_t> input_places_, output_places_;  // of each tensor: index of the above
  int64_t pass_ = -1;
  uint32_t passes_ = 0;
  bool begun_ = false, open_ = false, waits_ = false, ended_ = false, used_past_ = false;
};

using ModuleBackwardPtr = std::shared_ptr<ModuleBackward>;

}  // namespace msprobe
