#include "bindings/torch/leaf_memo.h"

#include <algorithm>

#include "bindings/backward/node_hook.h"
#include "bindings/python/runtime.h"
#include "bindings/torch/autograd_graph.h"
#include "bindings/torch/torch_objects.h"
#include "capture/read_once.h"

namespace msprobe {
namespace {

uint64_t hits = 0;  // under the GIL

// -1: it has none (inference mode).
int64_t VersionOf(PyObject* tensor) { return AttrAsInteger(tensor, torch_names.version); }

bool SizeIs(PyObject* module, PyObject* dict, Py_ssize_t size) {
  Ref found(PyObject_GetAttr(module, dict));
  const bool same = found && PyDict_Check(found.get()) && PyDict_GET_SIZE(found.get()) == size;
  if (!found) PyErr_Clear();
  return same;
}

// Its forward is written in the framework's own files, and was not replaced.
bool HasOwnForward(PyObject* module) {
  Ref forward(PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(module)), torch_names.forward));
  if (!forward) return PyErr_Clear(), false;
  if (!PyFunction_Check(forward.get())) return false;
  Ref file(PyObject_GetAttr(PyFunction_GET_CODE(forward.get()), torch_names.co_filename));
  const bool own = file && PyUnicode_Check(file.get()) &&
                   PyUnicode_Tailmatch(file.get(), torch_objects().module_directory, 0, PY_SSIZE_T_MAX, -1) == 1;
  Ref attributes(own ? PyObject_GetAttr(module, torch_names.dict) : nullptr);
  const bool replaced = !attributes || PyDict_GetItem(attributes.get(), torch_names.forward) != nullptr;
  if (PyErr_Occurred()) PyErr_Clear();
  return own && !replaced;
}

// No code of the user runs between the hooks of this call.
bool IsLeaf(PyObject* module) {
  const TorchObjects& o = torch_objects();
  const CaptureOptions& options = rt().options;
  if (o.module_directory == nullptr || o.global_forward_hooks == nullptr) return false;
  if (!options.apis || !options.modules || options.structure) return false;
  if (PyObject_Size(o.global_forward_hooks) != 0) return PyErr_Clear(), false;
  if (!SizeIs(module, torch_names.forward_pre_hooks, 1) || !SizeIs(module, torch_names.forward_hooks, 1)) return false;
  if (!SizeIs(module, torch_names.modules, 0)) return false;
  if (o.mode_depth != nullptr) {
    Ref depth(PyObject_CallNoArgs(o.mode_depth));
    if (!depth || PyLong_AsLong(depth.get()) != 0) return PyErr_Clear(), false;
  }
  return HasOwnForward(module);
}

bool HasOnlyOurHooks(PyObject* weak_dict) {
  if (weak_dict == nullptr) return false;
  const Ref dict = WeakTarget(weak_dict);
  if (!dict || !PyDict_Check(dict.get())) return false;
  PyObject *key, *hook;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict.get(), &position, &key, &hook)) {
    if (!IsNodeHook(hook)) return false;
  }
  return true;
}

bool Same(const TensorView& a, const TensorView& b) {
  if (a.data != b.data || a.dtype != b.dtype || a.ndim != b.ndim) return false;
  if (!std::equal(a.shape, a.shape + a.ndim, b.shape)) return false;
  if (a.strides == nullptr || b.strides == nullptr) return a.strides == b.strides;
  return std::equal(a.strides, a.strides + a.ndim, b.strides);
}

}  // namespace

LeafMemo& LeafMemo::OfThread() { return PerThread<LeafMemo>(); }

void LeafMemo::Begin(PyObject* module) {
  End();
  open_ = IsLeaf(module);
}

void LeafMemo::AtNode(At at, uint64_t sequence, PyObject* hooks) {
  const bool goes_on = at_ != At::kNowhere && at_ < at && sequence == sequence_ && sequence != kNoSequence;
  if (!goes_on) {
    End();
    open_ = true;
  }
  at_ = at;
  sequence_ = sequence;
  const Runtime& r = rt();
  if (sequence == kNoSequence || !r.options.apis || !r.options.modules || !HasOnlyOurHooks(hooks)) {
    End();
    at_ = At::kNowhere;
  }
}

void LeafMemo::End() {
  open_ = false;
  at_ = At::kNowhere;
  for (size_t i = 0; i < used_; ++i) entries_[i].tensor = Ref();
  used_ = 0;
}

bool LeafMemo::Find(PyObject* tensor, const TensorView& view, TensorRecord* t) const {
  if (!open_ || used_ == 0) return false;
  for (size_t i = used_; i-- > 0;) {
    const Entry& e = entries_[i];
    if (!Same(e.view, view) || WeakTarget(e.tensor.get()).get() != tensor) continue;
    if (VersionOf(tensor) != e.version) return false;
    CopyValues(e.values, t);
    ++hits;
    return true;
  }
  return false;
}

void LeafMemo::Add(PyObject* tensor, const TensorView& view, const TensorRecord& t) {
  if (!open_ || used_ == entries_.size()) return;
  const int64_t version = VersionOf(tensor);
  Ref weak(version >= 0 ? PyWeakref_NewRef(tensor, nullptr) : nullptr);
  if (!weak) return PyErr_Clear();
  Entry& e = entries_[used_++];
  e.tensor = std::move(weak);
  e.version = version;
  e.values = t;
  e.view = view;
  std::copy(view.shape, view.shape + view.ndim, e.dims.begin());
  e.view.shape = e.dims.data();
  if (view.strides != nullptr) {
    std::copy(view.strides, view.strides + view.ndim, e.dims.begin() + kMaxDims);
    e.view.strides = e.dims.data() + kMaxDims;
  }
}

uint64_t LeafMemoHits() { return hits; }

}  // namespace msprobe
