#include "bindings/python/module_record.h"

#include <string>

#include "bindings/python/frames.h"
#include "bindings/python/kept.h"
#include "bindings/python/runtime.h"
#include "bindings/python/values.h"

namespace msprobe {

int InterpreterDepth() {
  const PyThreadState* state = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030c0000
  return state->py_recursion_limit - state->py_recursion_remaining;
#elif PY_VERSION_HEX >= 0x030b0000
  return state->recursion_limit - state->recursion_remaining;
#else
  return state->recursion_depth;
#endif
}

void BeginParent(const OpName& name) {
  {
    auto lock = rt().recorder->lock();
    rt().recorder->construct().BeginModule(name);
  }
  rt().filter.BeginModule(name);
}

void EndParent(const OpName& name) {
  {
    auto lock = rt().recorder->lock();
    rt().recorder->construct().EndModule(name);
  }
  rt().filter.EndModule(name);
}

Record* BeginModuleRecord(const OpName& name, PyObject* args, PyObject* kwargs, bool in_place) {
  Runtime& r = rt();
  if (!ShouldCollect(name, Risk::kFocus)) return nullptr;
  Record* record = !r.options.structure && r.options.forward ? r.recorder->Acquire(name) : nullptr;
  RecordStack(name, record);
  if (record == nullptr) return nullptr;
  record->keep_unfinished = !r.trigger.active();
  if (!r.options.output && !r.trigger.active()) r.recorder->Reserve(record);
  record->copy_held = r.trigger.active() && in_place;
  if (r.options.input) {
    record->KeyLiteral("input_args");
    RecordAsList(record, args);
    record->KeyLiteral("input_kwargs");
    RecordKeywords(record, kwargs);
  }
  record->copy_held = false;
  return record;
}

namespace {

/// How frameworks say what a parameter is over ranks: Megatron's attributes. Members of its tensor, where one is set.
void RecordShare(Record* record, PyObject* parameter) {
  static PyObject* const split = PyUnicode_InternFromString("tensor_model_parallel");
  static PyObject* const dim = PyUnicode_InternFromString("partition_dim");
  static PyObject* const reduce = PyUnicode_InternFromString("allreduce");
  static PyObject* const sequence = PyUnicode_InternFromString("sequence_parallel");
  // Most have no attributes of their own: to ask for one would raise an exception each time.
  PyObject** const own = _PyObject_GetDictPtr(parameter);
  if (own == nullptr || *own == nullptr) return;
  const auto is = [&](PyObject* name, PyObject* value) { return PyDict_GetItem(*own, name) == value; };
  std::string members;
  if (is(split, Py_True)) {
    const int64_t at = AttrAsInteger(parameter, dim);
    if (at >= 0) members = "\"tensor_model_parallel\": true, \"partition_dim\": " + std::to_string(at);
  }
  if (is(sequence, Py_True)) members += members.empty() ? "" : ", ", members += "\"sequence_parallel\": true";
  // Of an expert: it has ranks of its own.
  if (!members.empty() && is(reduce, Py_False)) members += ", \"allreduce\": false";
  TensorRecord& tensor = record->tensors.back();
  if (!members.empty() && tensor.extra_length == 0) record->Extra(&tensor, members);
}

}  // namespace

void RecordParameterDict(Record* record, PyObject* parameters) {
  record->KeyLiteral("parameters");
  record->BeginDict();
  PyObject *name, *parameter;
  Py_ssize_t position = 0;
  while (PyDict_Next(parameters, &position, &name, &parameter)) {
    if (parameter == Py_None) continue;
    const Ref held_name = Ref::Borrow(name), held = Ref::Borrow(parameter);
    RecordKey(record, name);
    const size_t tensors = record->tensors.size();
    RecordValue(record, parameter, name, 1);
    if (record->tensors.size() == tensors + 1) RecordShare(record, parameter);
  }
  record->EndDict();
}

}  // namespace msprobe
