#include "bindings/python/api_call.h"

#include "bindings/python/api_values.h"
#include "bindings/python/frames.h"
#include "bindings/python/framework.h"
#include "bindings/python/kept.h"
#include "bindings/python/name_counts.h"
#include "bindings/python/works.h"

namespace msprobe {
namespace {

// The name of what a function that runs many ops is about to run; null: none.
const std::string* Resolve(const ApiSite* site, const CallArgs& args) {
  PyObject* first = FirstArgument(args);
  if (first == nullptr) first = Py_None;
  if (site->spec.name_of != nullptr) return site->spec.name_of(first);
  InTool guard;
  Ref name(PyObject_CallOneArg(site->spec.resolve.get(), first));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  if (text == nullptr) return PyErr_Clear(), nullptr;
  return InternName(text);
}

bool WantsBackward(const ApiEvent& event) {
  const Runtime& r = rt();
  const bool listed = r.options.modules && r.options.extra_info;
  return r.aside == 0 && r.options.backward && (event.collect || listed || r.filter.has_names());
}

}  // namespace

const std::string* SetPhase(const std::string* phase) {
  Runtime& r = rt();
  if (!r.step_open) return nullptr;
  auto lock = r.recorder->lock();
  return r.recorder->construct().SetPhase(phase);
}

bool IsBeingCompiled(const ApiSite* site) {
  if (!framework().Compiling()) return false;
  Shielded([&] { NoteSkip("a function was not run but compiled", *site->base); });
  return true;
}

void NoteLeftAlone(const ApiSite* site, const CallArgs& args) {
  const std::string* name = site->spec.resolve || site->spec.name_of ? Resolve(site, args) : site->base;
  if (name != nullptr) NoteSkip(*name, *name);
}

void NoteUnrecorded(const ApiSite* site) {
  NoteSkip("an operator is in none of custom_op_namespaces", "torch.ops." + *site->base);
}

bool BeginApi(ApiEvent* event, const CallArgs& args) {
  static const std::string* const view = InternName("Tensor.view");  // reads nothing
  Runtime& r = rt();
  ApiSite* site = event->site;
  const std::string* base = site->base;
  const bool many = site->spec.resolve || site->spec.name_of != nullptr;
  if (many && (base = Resolve(site, args)) == nullptr) return false;
  event->generation = r.generation;
  const int32_t number = (many ? CountsOf(base) : site->counts)->forwards.Next();
  event->name = {base, number, NameForm::kApiForward};
  framework().BeforeApi();  // may fail; the number is taken by then
  event->collect = ShouldCollect(event->name, site->spec.risk);
  InTool guard;
  if (WantsBackward(*event)) event->prepared = framework().PrepareApiBackward(args);
  if (!event->collect) return true;
  const bool record = !r.options.structure && r.options.forward;
  if (record) event->record = r.recorder->Acquire(event->name);
  RecordStack(event->name, event->record);
  if (!record) return true;
  if (!r.trigger.active()) r.recorder->Reserve(event->record);
  event->record->copy_held = site->changes_arguments || (r.trigger.active() && AsksForInPlace(args));
  t_flags.read_now = site->changes_arguments || AsksForInPlace(args);
  t_flags.used_now = base != view;
  if (r.options.input) RecordInputs(site->spec, args, event->record);
  t_flags.read_now = t_flags.used_now = false;
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
  if (WantsBackward(*event) && !(spec.dropout && DropsNothing(args))) {
    const OpName backward{event->name.base, event->name.index, NameForm::kApiBackward};
    framework().HookApiBackward(std::move(event->prepared), result, backward, spec.risk);
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
