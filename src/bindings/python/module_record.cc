#include "bindings/python/module_record.h"

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

void RecordParameterDict(Record* record, PyObject* parameters) {
  record->KeyLiteral("parameters");
  record->BeginDict();
  PyObject *name, *parameter;
  Py_ssize_t position = 0;
  while (PyDict_Next(parameters, &position, &name, &parameter)) {
    if (parameter == Py_None) continue;
    const Ref held_name = Ref::Borrow(name), held = Ref::Borrow(parameter);
    RecordKey(record, name);
    RecordValue(record, parameter, name, 1);
  }
  record->EndDict();
}

}  // namespace msprobe
