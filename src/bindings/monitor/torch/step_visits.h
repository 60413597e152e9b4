// Parameters that an optimizer goes through one after another: each is read right before and right after its update.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "bindings/monitor/torch/parameter_reader.h"
#include "bindings/python/py.h"

namespace msprobe {

/// Of the steps of one optimizer.
class StepVisits {
 public:
  /// Called with a parameter, before its update and after it: `before(parameter, taken)`, where `taken` says that the
  /// reader has taken all that it takes. `always`: also of parameters that were taken.
  StepVisits(nanobind::object before, nanobind::object after, bool always)
      : before_(Ref::Borrow(before.ptr())), after_(Ref::Borrow(after.ptr())), always_(always) {}

  /// Right before a step. False: one of the parameters is no plain tensor in host memory. `state`: of the optimizer, by
  /// parameter.
  bool Begin(nanobind::sequence parameters, nanobind::object reader, nanobind::object state);
  /// (parameters that the step has not visited and not changed, those that it has changed in another way).
  nanobind::tuple Left();
  void Clear();

  /// The optimizer asks for one; whether it is read. May throw what a callback raises.
  bool Reach(PyObject* parameter);
  void Leave(PyObject* parameter);

 private:
  void Call(const Ref& callback, PyObject* parameter, bool taken) const;

  Ref before_, after_;
  bool always_;
  Ref reader_, state_;
  ParameterReader* native_ = nullptr;
  struct Waiting {
    Ref parameter;
    int64_t version;
  };
  // Those that the step has not visited yet. By address: the hash of a tensor is a function in Python.
  std::unordered_map<PyObject*, Waiting> left_;
};

void BindStepVisits(nanobind::module_& m);

}  // namespace msprobe
