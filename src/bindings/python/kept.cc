#include "bindings/python/kept.h"

#include <deque>

#include "bindings/python/deferred.h"
#include "bindings/python/framework.h"
#include "bindings/python/tensor_record.h"

namespace msprobe {
namespace {

// Exceptions that the script catches may come in any number: so many are written in a step, the others counted.
constexpr int kMostFailures = 100;

// An op that is written when something raises; its parent as it was when it ran.
struct HeldOp {
  Record* record;
  OpName parent;
};

struct Held {
  std::deque<HeldOp> ops;
  uint64_t generation = 0;
  int failures = 0;

  // What an earlier step held back was the recorder's, which has taken it.
  void Refresh() {
    if (std::exchange(generation, rt().generation) == rt().generation) return;
    ops.clear();
    failures = 0;
  }
};

Held& HeldOps() {
  static auto* held = new Held;
  held->Refresh();
  return *held;
}

// Sides that were recorded for the decision only.
bool drop_input = false, drop_output = false;

// Whether construct.json lists the op.
bool Lists(const Record& record) {
  const CaptureOptions& o = rt().options;
  return o.modules && o.extra_info && record.name.form != NameForm::kParamGrad && (o.apis || record.name.IsModule());
}

void AddStackUse(const Record& record) {
  if (record.stack >= 0) rt().recorder->stacks().AddUse(static_cast<uint32_t>(record.stack), record.name);
}

void Drop(Record* record) {
  ForgetDeferred(*record);
  rt().recorder->Discard(record);
}

void Keep(Record* record) {
  Runtime& r = rt();
  if (drop_input) DropInputs(record);
  if (drop_output) DropOutputs(record);
  SavePending(record);
  {
    auto lock = r.recorder->lock();
    AddStackUse(*record);
    if (Lists(*record)) r.recorder->construct().AddOp(record->name, r.options.apis);
  }
  ++r.recorded;
  r.recorder->Commit(record);
}

void Hold(Record* record) {
  Runtime& r = rt();
  Held& held = HeldOps();
  const size_t most = r.trigger.config().last_ops;
  DropPending(record);
  if (most == 0) return Drop(record);
  OpName parent;
  if (Lists(*record)) {
    auto lock = r.recorder->lock();
    parent = r.recorder->construct().ParentOf(record->name);
  }
  held.ops.push_back({record, parent});
  if (held.ops.size() <= most) return;
  Record* oldest = held.ops.front().record;
  held.ops.pop_front();
  Drop(oldest);
}

void WriteHeld() {
  Runtime& r = rt();
  Held& held = HeldOps();
  for (const HeldOp& op : std::exchange(held.ops, {})) {
    {
      auto lock = r.recorder->lock();
      AddStackUse(*op.record);
      if (Lists(*op.record)) r.recorder->construct().List(op.record->name, op.parent);
    }
    ++r.recorded;
    r.recorder->Commit(op.record);
  }
}

}  // namespace

void SeeWhatDecides() {
  Runtime& r = rt();
  drop_input = r.trigger.needs_inputs() && !r.options.input;
  drop_output = r.trigger.needs_outputs() && !r.options.output;
  r.options.input |= drop_input;
  r.options.output |= drop_output;
}

bool ShouldCollect(const OpName& name, Risk risk) {
  if (rt().aside > 0) return false;
  OpFilter& filter = rt().filter;
  if (filter.has_names()) return filter.CheckName(name);
  return name.IsModule() || filter.CheckRisk(risk);
}

void AddParent(const OpName& name) {
  Runtime& r = rt();
  if (!r.options.modules || !r.options.extra_info || r.trigger.active() || r.aside > 0)
    return;  // with a trigger: when it is kept
  auto lock = r.recorder->lock();
  r.recorder->construct().AddOp(name, r.options.apis);
}

void FinishRecord(Record* record) {
  Runtime& r = rt();
  switch (r.trigger.kind()) {
    case TriggerKind::kNone: ++r.recorded; return r.recorder->Commit(record);
    case TriggerKind::kException: return Hold(record);
    case TriggerKind::kOverflow:
    case TriggerKind::kDifference: break;
  }
  ResolveNow(record);
  if (!r.trigger.Keep(*record)) return Drop(record);
  Keep(record);
  // The hooks do nothing from here on; stop() takes them away.
  if (r.trigger.exhausted()) r.running = false;
}

void FinishRaised(Record* record) {
  Runtime& r = rt();
  switch (r.trigger.kind()) {
    case TriggerKind::kNone: return r.recorder->Commit(record);
    case TriggerKind::kOverflow:
    case TriggerKind::kDifference: return Drop(record);
    case TriggerKind::kException: break;
  }
  ErrorStash stash;
  InTool guard;
  if (++HeldOps().failures > kMostFailures) {
    NoteSkip("more ops raised an exception than are written in a step", record->name.str());
    return Drop(record);
  }
  WriteHeld();
  Keep(record);
}

void KeepLastOps() {
  if (rt().trigger.kind() != TriggerKind::kException || !rt().step_open) return;
  framework().BeforeApi();  // calls that were left without a hook having told it
  WriteHeld();
}

void EndKeeping() {
  Runtime& r = rt();
  if (r.trigger.kind() != TriggerKind::kException) return;
  PyObject *type, *value, *trace;
  PyErr_GetExcInfo(&type, &value, &trace);
  const bool raising = type != nullptr && type != Py_None;
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  if (raising) return WriteHeld();
  for (const HeldOp& op : std::exchange(HeldOps().ops, {})) Drop(op.record);
}

}  // namespace msprobe
