#include "bindings/monitor/torch/parameter_reader.h"

#include <array>
#include <vector>

#include "bindings/python/framework.h"
#include "bindings/python/host_tensor.h"
#include "bindings/python/tensor_record.h"
#include "bindings/torch/torch_objects.h"

namespace nb = nanobind;

namespace msprobe {

ParameterReader::ParameterReader(nb::object journal, int threads)
    : owner_(Ref::Borrow(journal.ptr())), journal_(nb::cast<MonitorJournal*>(journal)), threads_(threads) {}

void ParameterReader::Add(nb::handle parameter, int64_t gradient, int64_t first, int64_t second, int64_t before,
                          int64_t after) {
  entries_[parameter.ptr()] = {Ref::Borrow(parameter.ptr()), gradient, first, second, before, after};
}

const ParameterReader::Entry* ParameterReader::Find(nb::handle parameter) const {
  const auto found = entries_.find(parameter.ptr());
  return found != entries_.end() ? &found->second : nullptr;
}

bool ParameterReader::Take(const int64_t* numbers, PyObject* const* tensors, size_t count) {
  std::array<TensorLook, 4> looks;
  std::vector<uint32_t> series;
  std::vector<TensorView> views;
  int64_t elements = 0;
  for (size_t i = 0; i < count; ++i) {
    if (numbers[i] < 0 || tensors[i] == nullptr || tensors[i] == Py_None) continue;
    if (!IsPlainTensor(tensors[i]) || !framework().LookAt(tensors[i], &looks[i])) return false;
    elements += looks[i].count;
    series.push_back(static_cast<uint32_t>(numbers[i]));
    views.push_back(looks[i].view());
  }
  journal_->journal().Announce(series);
  WithoutGilFor(elements, [&] { journal_->journal().Take(series, views, threads_); });
  return true;
}

bool ParameterReader::Before(nb::handle parameter, nb::handle state) {
  static PyObject* const first = PyUnicode_InternFromString("exp_avg");
  static PyObject* const second = PyUnicode_InternFromString("exp_avg_sq");
  const Entry* e = Find(parameter);
  if (e == nullptr) return false;
  Ref gradient(e->gradient >= 0 ? PyObject_GetAttr(parameter.ptr(), torch_names.grad) : nullptr);
  Ref own;
  if ((e->first >= 0 || e->second >= 0) && PyDict_Check(state.ptr())) {
    own = Ref::Borrow(PyDict_GetItemWithError(state.ptr(), parameter.ptr()));
  }
  // Held: others may run while the memory is read.
  const auto of = [&](PyObject* key) {
    return own && PyDict_Check(own.get()) ? Ref::Borrow(PyDict_GetItemWithError(own.get(), key)) : Ref();
  };
  const Ref mean = of(first), square = of(second);
  if (PyErr_Occurred()) return PyErr_Clear(), false;
  // Last what an optimizer uses first: it lies nearest in the cache then.
  PyObject* const tensors[] = {square.get(), mean.get(), gradient.get(), parameter.ptr()};
  const int64_t numbers[] = {e->second, e->first, e->gradient, e->before};
  return Take(numbers, tensors, 4);
}

bool ParameterReader::After(nb::handle parameter) {
  const Entry* e = Find(parameter);
  PyObject* const tensor = parameter.ptr();
  return e != nullptr && Take(&e->after, &tensor, 1);
}

void BindParameterReader(nb::module_& m) {
  nb::class_<ParameterReader>(m, "ParameterReader", "Reads parameters around their updates into a journal.")
      .def(nb::init<nb::object, int>(), nb::arg("journal"), nb::arg("threads"))
      .def("add", &ParameterReader::Add, nb::arg("parameter"), nb::arg("gradient"), nb::arg("first"), nb::arg("second"),
           nb::arg("before"), nb::arg("after"),
           "The series of its gradient, moments, value before and after; -1: not wanted.")
      .def("before", &ParameterReader::Before, nb::arg("parameter"), nb::arg("state"),
           "Takes what there is before the update; False: nothing, for something cannot be read here.")
      .def("after", &ParameterReader::After, nb::arg("parameter"), "Takes its value after the update.");
}

}  // namespace msprobe
