#include "bindings/mindspore/cells.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/mindspore/call_backward.h"
#include "bindings/mindspore/cell_params.h"
#include "bindings/mindspore/mindspore_objects.h"
#include "bindings/mindspore/tensors.h"
#include "bindings/python/hook_object.h"
#include "bindings/python/kept.h"
#include "bindings/python/module_record.h"
#include "bindings/python/name_counts.h"
#include "bindings/python/runtime.h"
#include "bindings/python/values.h"

namespace msprobe {
namespace {

struct CellSite {
  const std::string* base = nullptr;
  NameCounts* counts = nullptr;
  CellParams params;
};
using CellSitePtr = std::shared_ptr<CellSite>;

struct CellEntry {
  Ref reference;  // weak: a network that nobody needs any more is not kept
  Ref pre, post, id;
  CellSitePtr site;
  bool installed = false;
  std::array<bool, 5> was_none{};  // dicts that the Cell had not made yet
};
std::vector<CellEntry>& Cells() {
  static auto* cells = new std::vector<CellEntry>;
  return *cells;
}
bool installed = false, hidden = false;

struct HookDict {
  const char* name;  // property
  const char* lazy;  // attribute behind it
  bool before;       // for hooks that run before the construct
};
// Of those the first and the third hold hooks, the others say how each is called. The last is there since
// MindSpore 2.10.
constexpr std::array<HookDict, 5> kHookDicts = {
    {{"_forward_pre_hook", "_lazy_forward_pre_hook", true},
     {"_forward_pre_hook_with_kwargs", "_lazy_forward_pre_hook_with_kwargs", true},
     {"_forward_hook", "_lazy_forward_hook", false},
     {"_forward_hook_with_kwargs", "_lazy_forward_hook_with_kwargs", false},
     {"_forward_hook_always_called", "_lazy_forward_hook_always_called", false}}};

// A call of a Cell that has begun and not ended.
struct OpenCell {
  CellSitePtr site;
  OpName name;
  uint64_t generation;
  int depth;  // of the interpreter's stack
  Record* record = nullptr;
  CallBackwardPtr backward;
  std::unique_ptr<Record> parameters;  // as the construct found them, where it may change them
  std::vector<GradEdge> kept;          // by calls within, in attributes
};
std::vector<OpenCell>& OpenCells() { return PerThread<std::vector<OpenCell>>(); }

OpName BackwardName(const OpenCell& cell) { return {cell.site->base, cell.name.index, NameForm::kModuleBackward}; }

// A call that was left without its hook being run: by KeyboardInterrupt and the like, or by stop() inside it. Where no
// hook tells of a construct that raised, that is what has happened.
void DropLastCell() {
  auto& cells = OpenCells();
  const OpenCell cell = std::move(cells.back());
  cells.pop_back();
  if (cell.generation == rt().generation) {
    if (!mindspore_objects().tells_raised) {
      InTool guard;
      AddParent(cell.name);
      if (cell.record != nullptr && rt().options.output && !rt().trigger.active()) {
        cell.record->KeyLiteral("output");
        RecordAsList(cell.record, Py_None);
      }
      if (cell.record != nullptr) FinishRaised(cell.record);
    }
    EndParent(cell.name);
  }
  if (cells.empty()) GraphWalk::OfThread().Forget();
}

Ref ParametersOf(PyObject* cell) {
  Ref params(PyObject_GetAttr(cell, mindspore_names.params));
  if (params && PyDict_Check(params.get())) return params;
  PyErr_Clear();
  return Ref();
}

// The running statistics of a norm, which the construct changes.
bool KeepsState(PyObject* params) {
  PyObject *name, *parameter;
  Py_ssize_t position = 0;
  while (PyDict_Next(params, &position, &name, &parameter)) {
    if (IsBuffer(Ref::Borrow(parameter).get())) return true;
  }
  return false;
}

void KeepParameters(OpenCell* cell, PyObject* cell_object) {
  if (cell->record == nullptr || !rt().options.output) return;
  const Ref params = ParametersOf(cell_object);
  if (!params || !KeepsState(params.get())) return;
  auto part = std::make_unique<Record>();
  part->name = cell->name;
  part->save = cell->record->save;
  RecordParameterDict(part.get(), params.get());
  cell->parameters = std::move(part);
}

// Beside the output.
void RecordParameters(const OpenCell& cell, PyObject* cell_object) {
  if (cell.parameters != nullptr) return cell.record->Append(*cell.parameters);
  if (const Ref params = ParametersOf(cell_object)) RecordParameterDict(cell.record, params.get());
}

void BeginCell(const CellSitePtr& site, PyObject* cell_object, PyObject* args, PyObject* kwargs) {
  Runtime& r = rt();
  InTool guard;
  auto& cells = OpenCells();
  const int depth = InterpreterDepth();
  while (!cells.empty() && (cells.back().generation != r.generation || cells.back().depth >= depth)) DropLastCell();
  OpenCell& cell = cells.emplace_back();
  cell.site = site;
  cell.generation = r.generation;
  cell.depth = depth;
  cell.name = {site->base, site->counts->forwards.Next(), NameForm::kModuleForward};
  BeginParent(cell.name);
  if (mindspore_objects().has_nodes && r.options.backward && mindspore_objects().Grad()) {
    std::vector<PyObject*> arguments;
    for (Py_ssize_t i = 0; PyTuple_Check(args) && i < PyTuple_GET_SIZE(args); ++i) {
      arguments.push_back(PyTuple_GET_ITEM(args, i));
    }
    cell.backward = std::make_shared<CallBackward>(arguments);
  }
  cell.record = BeginModuleRecord(cell.name, args, kwargs, false);
  KeepParameters(&cell, cell_object);
}

void Append(const std::vector<GradEdge>& from, std::vector<GradEdge>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

void EndCell(const CellSitePtr& site, PyObject* cell_object, PyObject* output) {
  Runtime& r = rt();
  auto& cells = OpenCells();
  // It may have begun before start().
  const bool known = std::any_of(cells.begin(), cells.end(), [&](const OpenCell& c) { return c.site == site; });
  if (!known) return;
  while (cells.back().site != site) DropLastCell();
  OpenCell& cell = cells.back();
  // Where the construct raised, the hook is called some frames further out.
  const bool raised = output == Py_None && InterpreterDepth() < cell.depth;
  if (cell.generation == r.generation && r.running) {
    InTool guard;
    const bool collect = r.options.output && (!r.filter.has_names() || r.filter.CheckName(cell.name));
    // A range of the scope may have begun meanwhile.
    if (cell.record == nullptr && collect && r.filter.has_names() && r.options.forward && !r.options.structure) {
      cell.record = r.recorder->Acquire(cell.name);
    }
    if (cell.record != nullptr && collect && !(raised && r.trigger.active())) {
      cell.record->KeyLiteral("output");
      RecordAsList(cell.record, output);
    }
    if (cell.record != nullptr && collect) RecordParameters(cell, cell_object);
    AddParent(cell.name);
    if (cell.record != nullptr) raised ? FinishRaised(cell.record) : FinishRecord(cell.record);
    EndParent(cell.name);
    if (cell.backward != nullptr) {
      site->params.grads->called = r.generation;
      const OpName outer = cells.size() > 1 ? BackwardName(cells[cells.size() - 2]) : OpName();
      if (!raised) cell.backward->AddKept(cell_object, cell.kept);
      if (!raised && cells.size() > 1) Append(cell.backward->kept(), &cells[cells.size() - 2].kept);
      if (!raised) cell.backward->Hook(output, BackwardName(cell), Risk::kFocus, outer, false);
    }
  }
  cells.pop_back();
  if (cells.empty()) GraphWalk::OfThread().Forget();
}

class CellHook : public Hook {
 public:
  explicit CellHook(CellSitePtr site) : site_(std::move(site)) {}

 protected:
  CellSitePtr site_;
};

class BeforeCell final : public CellHook {
 public:
  using CellHook::CellHook;
  // cell, args, kwargs
  PyObject* Call(PyObject* const* a, Py_ssize_t count) override {
    if (rt().running && !t_flags.in_tool && count >= 3) Shielded([&] { BeginCell(site_, a[0], a[1], a[2]); });
    Py_RETURN_NONE;
  }
};

class AfterCell final : public CellHook {
 public:
  using CellHook::CellHook;
  // cell, args, kwargs, output
  PyObject* Call(PyObject* const* a, Py_ssize_t count) override {
    if (!t_flags.in_tool && count >= 4) Shielded([&] { EndCell(site_, a[0], a[3]); });
    Py_RETURN_NONE;
  }
};

Ref DictOf(PyObject* cell, const char* name) { return Ref(PyObject_GetAttrString(cell, name)); }

bool SetIn(CellEntry* e, PyObject* cell, size_t which, PyObject* value) {
  const HookDict& d = kHookDicts[which];
  Ref lazy(DictOf(cell, d.lazy));
  if (!lazy) PyErr_Clear();
  e->was_none[which] = lazy.get() == Py_None;
  Ref hooks(DictOf(cell, d.name));
  // Ours runs last: a Cell's input is what its construct gets, its output what its caller gets.
  return hooks && PyObject_SetItem(hooks.get(), e->id.get(), value) == 0;
}

void RemoveOne(CellEntry* e, PyObject* cell) {
  if (!std::exchange(e->installed, false)) return;
  Ref attributes(PyObject_GetAttrString(cell, "__dict__"));
  for (size_t which = 0; which < kHookDicts.size(); ++which) {
    Ref hooks(DictOf(cell, kHookDicts[which].name));
    if (!hooks || PyObject_DelItem(hooks.get(), e->id.get()) != 0) PyErr_Clear();
    const bool empty = hooks && PyObject_Size(hooks.get()) == 0;
    if (empty && e->was_none[which] && attributes && PyDict_Check(attributes.get())) {
      PyDict_SetItemString(attributes.get(), kHookDicts[which].lazy, Py_None);
    }
    PyErr_Clear();
  }
}

void InstallOne(CellEntry* e, PyObject* cell) {
  if (std::exchange(e->installed, true)) return;
  const std::array<PyObject*, 5> values = {e->pre.get(), Py_True, e->post.get(), Py_True, Py_True};
  for (const size_t which : {size_t{1}, size_t{0}, size_t{3}, size_t{4}, size_t{2}}) {
    if (which == 4 && !mindspore_objects().tells_raised) continue;
    if (!SetIn(e, cell, which, values[which])) {
      NoteSkip("a Cell could not be hooked", *e->site->base + ": " + TakeError());
      return RemoveOne(e, cell);  // a call that begins and never ends would be worse than none
    }
  }
}

// Of entries whose Cells still live.
template <typename Visit>
void EachCell(Visit visit) {
  std::erase_if(Cells(), [](const CellEntry& e) { return !WeakTarget(e.reference.get()); });
  for (CellEntry& e : Cells()) {
    if (const Ref cell = WeakTarget(e.reference.get())) visit(&e, cell.get());
  }
}

void Update() {
  EachCell([](CellEntry* e, PyObject* cell) { installed && !hidden ? InstallOne(e, cell) : RemoveOne(e, cell); });
}

}  // namespace

bool AddCell(PyObject* cell, const char* base) {
  auto site = std::make_shared<CellSite>();
  site->base = InternName(base);
  site->counts = CountsOf(site->base);
  site->params.grads->base = site->base;
  site->params.grads->counts = site->counts;
  CellEntry entry;
  entry.reference = Ref(PyWeakref_NewRef(cell, nullptr));
  if (!entry.reference) return false;
  entry.pre = Ref(NewHookObject(std::make_unique<BeforeCell>(site)));
  entry.post = Ref(NewHookObject(std::make_unique<AfterCell>(site)));
  entry.id = Ref(PyUnicode_FromString("msprobe"));  // MindSpore's own are numbers
  entry.site = std::move(site);
  if (!entry.pre || !entry.post || !entry.id) return false;
  Cells().push_back(std::move(entry));
  if (installed) Update();
  return true;
}

void InstallCellHooks() {
  installed = true;
  hidden = false;
  Update();
  if (!rt().options.backward) return;
  EachCell([](CellEntry* e, PyObject* cell) { e->site->params.Hook(cell); });
}

void DropLeftCells() {
  // A hook runs two calls of the interpreter or more inside the call of its Cell.
  auto& cells = OpenCells();
  while (!cells.empty() && InterpreterDepth() <= cells.back().depth - 3) DropLastCell();
}

void RemoveCellHooks() {
  if (!mindspore_objects().tells_raised) DropLeftCells();
  installed = false;
  Update();
  EachCell([](CellEntry* e, PyObject*) { e->site->params.LetGo(); });
}

void HideCellHooks(bool hide) {
  hidden = hide;
  Update();
  if (!installed || !rt().options.backward || !ParamHooksAreCompiled()) return;
  EachCell([&](CellEntry* e, PyObject* cell) { hide ? e->site->params.LetGo() : e->site->params.Hook(cell); });
}

OpName BackwardOfCell() {
  const auto& cells = OpenCells();
  return cells.empty() || cells.back().generation != rt().generation ? OpName() : BackwardName(cells.back());
}

bool OutsideCells() { return OpenCells().empty(); }

}  // namespace msprobe
