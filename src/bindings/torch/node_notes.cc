#include "bindings/torch/node_notes.h"

#include <unordered_map>
#include <utility>

#include "bindings/python/hook_object.h"
#include "bindings/python/runtime.h"

namespace msprobe {
namespace {

uint64_t next_id = 1;  // under the GIL, as all here

// To ask a node for its dict makes one, so only those are asked whose number is that of a node with notes.
std::unordered_map<uint64_t, uint32_t>& Noted() {
  static auto* noted = new std::unordered_map<uint64_t, uint32_t>;
  return *noted;
}

// An object that the dict can hold.
class HeldNotes final : public Hook {
 public:
  explicit HeldNotes(uint64_t sequence) : sequence_(sequence) {
    notes.id = next_id++;
    ++Noted()[sequence];
  }
  ~HeldNotes() override {
    const auto at = Noted().find(sequence_);
    if (at != Noted().end() && --at->second == 0) Noted().erase(at);
  }
  PyObject* Call(PyObject* const*, Py_ssize_t) override { Py_RETURN_NONE; }

  NodeNotes notes;

 private:
  uint64_t sequence_;
};

struct LeafNotes {
  Ref tensor;  // weak
  NodeNotes notes;
};
// Of this step.
std::unordered_map<PyObject*, LeafNotes>& Leaves() {
  static auto* leaves = new std::unordered_map<PyObject*, LeafNotes>;
  return *leaves;
}

PyObject* OwnKey() {
  static PyObject* const key = PyUnicode_InternFromString("msprobe");
  return key;
}

NodeNotes* NotesIn(PyObject* dict) {
  PyObject* held = PyDict_GetItemWithError(dict, OwnKey());
  auto* notes = held != nullptr ? dynamic_cast<HeldNotes*>(HookIn(held)) : nullptr;
  return notes != nullptr ? &notes->notes : nullptr;
}

Ref DictOf(PyObject* node) {
  static PyObject* const metadata = PyUnicode_InternFromString("metadata");
  Ref dict(PyObject_GetAttr(node, metadata));
  if (dict && !PyDict_Check(dict.get())) {
    PyErr_SetString(PyExc_TypeError, "the metadata of a node are no dict");
    return Ref();
  }
  return dict;
}

}  // namespace

NodeNotes* NotesAt(PyObject* node, uint64_t sequence) {
  const Ref dict = DictOf(node);
  if (!dict) return nullptr;
  if (NodeNotes* known = NotesIn(dict.get()); known != nullptr) return known;
  auto made = std::make_unique<HeldNotes>(sequence);
  NodeNotes* notes = &made->notes;
  Ref held(NewHookObject(std::move(made)));
  return held && PyDict_SetItem(dict.get(), OwnKey(), held.get()) == 0 ? notes : nullptr;
}

NodeNotes* FindNotes(PyObject* node, uint64_t sequence) {
  if (Noted().find(sequence) == Noted().end()) return nullptr;
  const Ref dict = DictOf(node);
  NodeNotes* found = dict ? NotesIn(dict.get()) : nullptr;
  PyErr_Clear();
  return found;
}

NodeNotes* NotesOfLeaf(PyObject* tensor) {
  if (NodeNotes* known = FindNotesOfLeaf(tensor); known != nullptr) return known;
  static uint64_t generation = 0;
  if (std::exchange(generation, rt().generation) != rt().generation) Leaves().clear();
  Ref weak(PyWeakref_NewRef(tensor, nullptr));
  if (!weak) return nullptr;
  LeafNotes& leaf = Leaves()[tensor];
  leaf = {std::move(weak), {}};
  leaf.notes.id = next_id++;
  return &leaf.notes;
}

NodeNotes* FindNotesOfLeaf(PyObject* tensor) {
  const auto known = Leaves().find(tensor);
  const bool same = known != Leaves().end() && WeakTarget(known->second.tensor.get()).get() == tensor;
  return same ? &known->second.notes : nullptr;
}

}  // namespace msprobe
