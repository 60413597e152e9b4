#include "bindings/monitor/torch/step_visits.h"

#include <new>
#include <utility>

#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"
#include "bindings/torch/torch_objects.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

int64_t VersionOf(PyObject* tensor) { return AttrAsInteger(tensor, torch_names.version); }

/// Gives what another iterator gives, and tells who watches what is reached and left.
class VisitedItems {
 public:
  VisitedItems(nb::object items, nb::list watches) : items_(std::move(items)) {
    for (const nb::handle watch : watches) {
      owners_.push_back(nb::borrow(watch));
      watches_.push_back(nb::cast<StepVisits*>(watch));
    }
  }

  /// Null at the end, or with an error of Python.
  nb::object Next() {
    for (StepVisits* watch : std::exchange(reading_, {})) watch->Leave(item_.ptr());
    item_ = nb::steal(PyIter_Next(items_.ptr()));
    if (!item_.is_valid()) return {};
    for (StepVisits* watch : watches_) {
      if (watch->Reach(item_.ptr())) reading_.push_back(watch);
    }
    return item_;
  }

 private:
  nb::object items_, item_;
  std::vector<nb::object> owners_;
  std::vector<StepVisits*> watches_, reading_;
};

PyObject* NextItem(PyObject* self) {
  try {
    return nb::inst_ptr<VisitedItems>(self)->Next().release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return nullptr;
}

// Slots of the type: a method would end with an exception of C++ in each step.
PyType_Slot visited_slots[] = {{Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
                               {Py_tp_iternext, reinterpret_cast<void*>(NextItem)},
                               {0, nullptr}};

}  // namespace

bool StepVisits::Begin(nb::sequence parameters, nb::object reader, nb::object state) {
  Clear();
  for (const nb::handle parameter : parameters) {
    if (!IsPlainTensor(parameter.ptr()) || !AttrIsTrue(parameter.ptr(), torch_names.is_cpu)) {
      Clear();
      return false;
    }
    left_.emplace(parameter.ptr(), Waiting{Ref::Borrow(parameter.ptr()), VersionOf(parameter.ptr())});
  }
  native_ = nb::cast<ParameterReader*>(reader);
  reader_ = Ref::Borrow(reader.ptr());
  state_ = Ref::Borrow(state.ptr());
  return true;
}

nb::tuple StepVisits::Left() {
  nb::list alone, changed;
  for (const auto& [parameter, waiting] : left_) {
    (VersionOf(parameter) == waiting.version ? alone : changed).append(nb::handle(parameter));
  }
  return nb::make_tuple(alone, changed);
}

void StepVisits::Clear() {
  left_.clear();
  native_ = nullptr;
  reader_ = state_ = Ref();
}

void StepVisits::Call(const Ref& callback, PyObject* parameter, bool taken) const {
  if (taken && !always_) return;
  Ref done(PyObject_CallFunctionObjArgs(callback.get(), parameter, taken ? Py_True : Py_False, nullptr));
  if (!done) throw nb::python_error();  // it is guarded there: what comes from it is to come
}

bool StepVisits::Reach(PyObject* parameter) {
  if (left_.erase(parameter) == 0) return false;
  bool taken = false;
  Shielded([&] { taken = native_ != nullptr && native_->Before(parameter, state_.get()); });
  Call(before_, parameter, taken);
  return true;
}

void StepVisits::Leave(PyObject* parameter) {
  bool taken = false;
  Shielded([&] { taken = native_ != nullptr && native_->After(parameter); });
  Call(after_, parameter, taken);
}

void BindStepVisits(nb::module_& m) {
  nb::class_<StepVisits>(m, "StepVisits", "Reads parameters while an optimizer goes through them one after another.")
      .def(
          nb::init<nb::object, nb::object, bool>(), nb::arg("before"), nb::arg("after"), nb::arg("always"),
          "before(parameter, taken) and after(parameter, taken) take what the reader has not; always: every parameter.")
      .def("begin", &StepVisits::Begin, nb::arg("parameters"), nb::arg("reader"), nb::arg("state"),
           "Right before a step; False: one of the parameters is no plain tensor in host memory.")
      .def("left", &StepVisits::Left,
           "(parameters that the step has left alone, those that it has changed without a visit), in no order.")
      .def("clear", &StepVisits::Clear, "Reads nothing more until begin().");
  nb::class_<VisitedItems>(m, "VisitedItems", nb::type_slots(visited_slots),
                           "An iterator over what another gives, which tells StepVisits of it.")
      .def(nb::init<nb::object, nb::list>(), nb::arg("items"), nb::arg("watches"));
}

}  // namespace msprobe
