#include "bindings/api_call.h"

#include <algorithm>
#include <unordered_map>

#include "bindings/backward.h"
#include "bindings/frames.h"
#include "bindings/kept.h"
#include "bindings/values.h"
#include "bindings/works.h"

namespace msprobe {
namespace {

bool Has(const std::vector<int>& positions, Py_ssize_t i) {
  return std::find(positions.begin(), positions.end(), static_cast<int>(i)) != positions.end();
}

template <typename Visit>
void EachPositional(const CallArgs& a, Visit visit) {
  Py_ssize_t i = 0;
  if (a.self != nullptr) visit(i++, a.self);
  if (a.tuple != nullptr) {
    for (Py_ssize_t k = a.skip; k < PyTuple_GET_SIZE(a.tuple); ++k) visit(i++, PyTuple_GET_ITEM(a.tuple, k));
  } else {
    for (Py_ssize_t k = 0; k < a.count; ++k) visit(i++, a.vector[k]);
  }
}

template <typename Visit>
void EachKeyword(const CallArgs& a, Visit visit) {
  if (a.kwargs != nullptr) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(a.kwargs, &position, &key, &value)) {
      const Ref held_key = Ref::Borrow(key), held = Ref::Borrow(value);
      visit(key, value);
    }
  } else if (a.names != nullptr) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(a.names); ++k)
      visit(PyTuple_GET_ITEM(a.names, k), a.vector[a.count + k]);
  }
}

void RecordInputs(const ApiSpec& spec, const CallArgs& args, Record* record) {
  record->KeyLiteral("input_args");
  record->BeginList();
  EachPositional(args, [&](Py_ssize_t i, PyObject* value) {
    Has(spec.ignored_args, i) ? record->Null() : RecordValue(record, value, nullptr, 1);
  });
  record->EndList();
  record->KeyLiteral("input_kwargs");
  record->BeginDict();
  EachKeyword(args, [&](PyObject* key, PyObject* value) {
    RecordKey(record, key);
    const bool ignored = !spec.ignored_keyword.empty() && PyUnicode_Check(key) &&
                         PyUnicode_CompareWithASCIIString(key, spec.ignored_keyword.c_str()) == 0;
    ignored ? record->Null() : RecordValue(record, value, key, 1);
  });
  record->EndDict();
}

// `inplace=True` or `out=tensor`.
bool AsksForInPlace(const CallArgs& args) {
  bool asks = false;
  EachKeyword(args, [&](PyObject* key, PyObject* value) {
    if (!PyUnicode_Check(key)) return;
    asks |= value == Py_True && PyUnicode_CompareWithASCIIString(key, "inplace") == 0;
    asks |= value != Py_None && PyUnicode_CompareWithASCIIString(key, "out") == 0;
  });
  return asks;
}

bool DropsNothing(const CallArgs& args) {
  PyObject* p = nullptr;
  EachKeyword(args, [&](PyObject* key, PyObject* value) {
    if (PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, "p") == 0) p = value;
  });
  EachPositional(args, [&](Py_ssize_t i, PyObject* value) {
    if (i == 1) p = value;
  });
  if (p == nullptr || !PyNumber_Check(p)) return false;
  const double value = PyFloat_AsDouble(p);
  if (PyErr_Occurred()) PyErr_Clear();
  return value == 0;
}

PyObject* FirstArgument(const CallArgs& a) {
  if (a.self != nullptr) return a.self;
  if (a.tuple != nullptr) return PyTuple_GET_SIZE(a.tuple) > 0 ? PyTuple_GET_ITEM(a.tuple, 0) : nullptr;
  return a.count > 0 ? a.vector[0] : nullptr;
}

// The name of what a function that runs many ops is about to run; null: none.
const std::string* Resolve(const ApiSite* site, const CallArgs& args) {
  PyObject* first = FirstArgument(args);
  if (first == nullptr) first = Py_None;
  InTool guard;
  Ref name(PyObject_CallOneArg(site->spec.resolve.get(), first));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  if (text == nullptr) return PyErr_Clear(), nullptr;
  return InternName(text);
}

}  // namespace

void RecordOutput(const ApiSpec& spec, const CallArgs& args, PyObject* result, Record* record) {
  record->KeyLiteral("output");
  if (spec.distributed) {
    // Collectives write into their arguments.
    record->BeginList();
    EachPositional(args, [&](Py_ssize_t i, PyObject* value) {
      Has(spec.ignored_outputs, i) ? record->Null() : RecordValue(record, value, nullptr, 1);
    });
    EachKeyword(args, [&](PyObject*, PyObject* value) { RecordValue(record, value, nullptr, 1); });
    record->EndList();
  } else if (!spec.ignored_outputs.empty() && PyTuple_CheckExact(result)) {
    record->BeginList();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i) {
      Has(spec.ignored_outputs, i) ? record->Null() : RecordValue(record, PyTuple_GET_ITEM(result, i), nullptr, 1);
    }
    record->EndList();
  } else {
    RecordAsList(record, result);
  }
}

const std::string* SetPhase(const std::string* phase) {
  Runtime& r = rt();
  if (!r.step_open) return nullptr;
  auto lock = r.recorder->lock();
  return r.recorder->construct().SetPhase(phase);
}

bool IsBeingCompiled(const ApiSite* site) {
  if (!rt().Compiling()) return false;
  Shielded([&] { NoteSkip("a function was not run but compiled", *site->base); });
  return true;
}

void NoteLeftAlone(const ApiSite* site, const CallArgs& args) {
  const std::string* name = site->spec.resolve ? Resolve(site, args) : site->base;
  if (name != nullptr) NoteSkip(*name, *name);
}

bool BeginApi(ApiEvent* event, const CallArgs& args) {
  Runtime& r = rt();
  ApiSite* site = event->site;
  const std::string* base = site->base;
  if (site->spec.resolve && (base = Resolve(site, args)) == nullptr) return false;
  event->generation = r.generation;
  const int32_t number = (site->spec.resolve ? CountsOf(base) : site->counts)->forwards.Next();
  event->name = {base, number, NameForm::kApiForward};
  BackwardOrder::Get().OnForward();  // may fail; the number is taken by then
  event->collect = ShouldCollect(event->name, site->spec.risk);
  if (!event->collect) return true;
  InTool guard;
  const bool record = !r.options.structure && r.options.forward;
  if (record) event->record = r.recorder->Acquire(event->name);
  RecordStack(event->name, event->record);
  if (!record) return true;
  if (!r.trigger.active()) r.recorder->Reserve(event->record);
  event->record->copy_held = site->changes_arguments || (r.trigger.active() && AsksForInPlace(args));
  if (r.options.input) RecordInputs(site->spec, args, event->record);
  event->record->copy_held = false;
  return true;
}

void EndApi(ApiEvent* event, const CallArgs& args, PyObject* result) {
  Runtime& r = rt();
  if (event->generation != r.generation) return;  // step() was called meanwhile: the recorder has closed the record
  if (result == nullptr) {                        // an exception is on its way: nothing of Python may be called
    if (event->record != nullptr) FinishRaised(event->record);
    return;
  }
  InTool guard;
  const ApiSpec& spec = event->site->spec;
  const bool list_backward = r.options.modules && r.options.extra_info;
  if ((event->collect || list_backward || r.filter.has_names()) && r.options.backward &&
      !(spec.dropout && DropsNothing(args))) {
    HookApiBackward(result, {event->name.base, event->name.index, NameForm::kApiBackward}, spec.risk);
  }
  AddParent(event->name);
  if (event->record == nullptr) return;
  if (r.options.output) {
    if (spec.distributed && KeepUntilDone(*event, args, result)) return;
    RecordOutput(spec, args, result, event->record);
  }
  FinishRecord(event->record);
}

}  // namespace msprobe
