// The gradients of one call of a module, as they come at the edges of its graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/backward/graph_walk.h"
#include "bindings/monitor/monitor_journal.h"
#include "bindings/monitor/torch/gradient_sum.h"
#include "bindings/python/py.h"

namespace msprobe {

class TapCall;
struct TapSite;

/// A gradient of a call: what was read when it came, so that its memory can be used again, or itself where only Python
/// can read it. Neither: none came.
struct TapGradient {
  std::optional<TensorReading> reading;
  Ref tensor;
};

/// What calls of modules give their gradients to.
class TapOwner {
 public:
  virtual ~TapOwner() = default;
  /// The gradients of a call have begun to come, are all there, and are to be waited for no more.
  virtual void Begun(std::shared_ptr<TapCall> call) = 0;
  /// A gradient has come: what is not hooked yet is hooked now.
  virtual void PassBegins() = 0;
  virtual TapGradient Read(PyObject* gradient) = 0;
  virtual TensorReading ReadMemory(const TensorView& sum) = 0;
  virtual void TakeGradients(TapSite* site, const std::vector<TapGradient>& inputs,
                             const std::vector<TapGradient>& outputs) = 0;
  virtual void Forget(const TapCall* call) = 0;

  bool armed = true;
};

class TapCall : public std::enable_shared_from_this<TapCall> {
 public:
  TapCall(std::shared_ptr<TapOwner> taps, TapSite* site, size_t inputs, size_t outputs)
      : taps_(std::move(taps)), site_(site), inputs_(inputs), outputs_(outputs) {}

  /// Gradients of the inputs at these positions leave the module by `edges`.
  void HookInputs(const std::vector<InputEdge>& edges, const std::vector<size_t>& positions);
  /// Of the output with this edge. Of modules that return the same tensor the outermost is reported first.
  void HookOutput(const GradEdge& edge, size_t position);

  /// A backward pass has come to the call.
  void PassBegins();
  void OutputGradient(size_t position, PyObject* gradient);
  void InputGradient(size_t position, PyObject* gradient);
  /// All are there, or those that come at all.
  void Finish();

 private:
  std::shared_ptr<TapOwner> taps_;
  TapSite* site_;  // of taps_
  struct Input {
    TapGradient gradient;
    GradientSum sum;
    size_t edges = 0, seen = 0;  // by which it comes in parts
    bool summed = false;         // the tensor is ours
    bool lost = false;           // a part is unlike the others: nobody knows the sum
  };
  void AddTo(Input* input, PyObject* gradient);
  /// All parts are there, or those that come at all.
  void Close(Input* input);

  std::vector<Input> inputs_;
  std::vector<TapGradient> outputs_;
  size_t edges_ = 0, wanted_ = 0, seen_ = 0;
  // A gradient is being read, without the lock of the interpreter: another thread that ends the call leaves that to
  // this one.
  struct Busy {
    explicit Busy(TapCall* call) : call(call) { ++call->busy_; }
    ~Busy() { --call->busy_; }
    TapCall* call;
  };
  int busy_ = 0;
  bool begun_ = false, done_ = false;
};

/// Of this thread; its places for hooks are those of taps.
GraphWalk& TapWalk();

}  // namespace msprobe
