#include "bindings/monitor/torch/parameter_reader.h"

#include <array>

#include "bindings/python/host_tensor.h"
#include "bindings/python/tensor_record.h"
#include "bindings/torch/tensors.h"
#include "bindings/torch/torch_objects.h"

namespace nb = nanobind;

namespace msprobe {

ParameterReader::ParameterReader(nb::object journal, int threads)
    : owner_(Ref::Borrow(journal.ptr())), journal_(nb::cast<MonitorJournal*>(journal)), threads_(threads) {}

void ParameterReader::Add(nb::handle parameter, int64_t gradient, int64_t first, int64_t second, int64_t before,
                          int64_t after) {
  entries_[parameter.ptr()] = {Ref::Borrow(parameter.ptr()), gradient, first, second, before, after, nullptr};
}

ParameterReader::Entry* ParameterReader::Find(nb::handle parameter) {
  const auto found = entries_.find(parameter.ptr());
  return found != entries_.end() ? &found->second : nullptr;
}

bool ParameterReader::Take(Entry* entry, std::span<const int64_t> numbers, PyObject* const* tensors) {
  std::array<TensorLook, 4> looks;
  std::array<uint32_t, 4> series;
  std::array<TensorView, 4> views;
  size_t count = 0;
  int64_t elements = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    PyObject* const tensor = tensors[i];
    if (numbers[i] < 0 || tensor == nullptr || tensor == Py_None) continue;
    TensorLook& look = looks[i];
    const bool own = tensor == entry->parameter.get();
    if (!IsPlainTensor(tensor) || !LookAgain(tensor, own ? entry->data : nullptr, &look)) return false;
    if (own) entry->data = look.data;
    elements += look.count;
    series[count] = static_cast<uint32_t>(numbers[i]);
    views[count++] = look.view();
  }
  const std::span taken(series.data(), count);
  journal_->journal().Announce(taken);
  WithoutGilFor(elements, [&] { journal_->journal().Take(taken, {views.data(), count}, threads_); });
  return true;
}

bool ParameterReader::Before(nb::handle parameter, nb::handle state) {
  static PyObject* const first = PyUnicode_InternFromString("exp_avg");
  static PyObject* const second = PyUnicode_InternFromString("exp_avg_sq");
  Entry* e = Find(parameter);
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
  return Take(e, numbers, tensors);
}

bool ParameterReader::After(nb::handle parameter) {
  Entry* e = Find(parameter);
  PyObject* const tensor = parameter.ptr();
  return e != nullptr && Take(e, {&e->after, 1}, &tensor);
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
