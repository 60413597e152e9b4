// The gradients of one call of a module, as they come at the edges of its graph.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "bindings/backward/graph_walk.h"
#include "bindings/python/py.h"

namespace msprobe {

class TapCall;
struct TapSite;

/// What calls of modules give their gradients to.
class TapOwner {
 public:
  virtual ~TapOwner() = default;
  /// The gradients of a call have begun to come, are all there, and are to be waited for no more.
  virtual void Begun(std::shared_ptr<TapCall> call) = 0;
  virtual void TakeGradients(TapSite* site, const std::vector<Ref>& inputs, const std::vector<Ref>& outputs) = 0;
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

  void OutputGradient(size_t position, PyObject* gradient);
  void InputGradient(size_t position, PyObject* gradient);
  /// All are there, or those that come at all.
  void Finish();

 private:
  std::shared_ptr<TapOwner> taps_;
  TapSite* site_;  // of taps_
  std::vector<Ref> inputs_, outputs_;
  size_t edges_ = 0, wanted_ = 0, seen_ = 0;
  bool begun_ = false, done_ = false;
};

/// Of this thread; its places for hooks are those of taps.
GraphWalk& TapWalk();

}  // namespace msprobe
