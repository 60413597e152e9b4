#include "bindings/python/tensor_record.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "bindings/python/framework.h"
#include "bindings/python/runtime.h"
#include "tensor/kernels/xor_digest.h"

namespace msprobe {
namespace {

// The description again, which saves it.
void SaveHeldByPython(Record* record, const HeldValue& value, const std::string& name) {
  const auto number = static_cast<size_t>(record->nodes[value.node].i);
  Ref file(PyUnicode_DecodeFSDefault(TensorFileName(name, "").c_str()));
  auto* tensor = static_cast<PyObject*>(value.object.get());
  Ref said(file ? PyObject_CallFunctionObjArgs(interpreter().describe_tensor, tensor, file.get(), nullptr) : nullptr);
  Ref saved(said ? PyObject_GetAttr(said.get(), names.file) : nullptr);
  if (!saved) NoteSkip("a tensor could not be saved", name + ": " + TakeError());
  const std::string_view text = TextOf(saved.get());
  PyErr_Clear();
  if (!text.empty()) record->SetFile(&record->tensors[number], text);
}

}  // namespace

bool IsPlainTensor(PyObject* o) {
  const FrameworkTypes& types = framework().types();
  if (Py_TYPE(o) == types.tensor || Py_TYPE(o) == types.parameter) return true;
  return types.plain_subclasses && types.tensor != nullptr && PyType_IsSubtype(Py_TYPE(o), types.tensor);
}

bool IsTensor(PyObject* o) {
  if (IsPlainTensor(o)) return true;
  PyTypeObject* tensor = framework().types().tensor;
  if (tensor == nullptr || !PyType_IsSubtype(Py_TYPE(o), tensor)) return false;
  InTool::DisableOverrides();  // it will be asked for its attributes
  return true;
}

void ComputeValues(const TensorView& view, bool checksums, TensorRecord* t) {
  if (rt().options.xor_digests) {
    t->has_stats = std::find(view.shape, view.shape + view.ndim, 0) == view.shape + view.ndim;
    t->xor_digest = ComputeXor(view);
    return;
  }
  const bool read = checksums ? ComputeStatsAndCrc32(view, &t->stats, &t->crc) : ComputeStats(view, &t->stats);
  t->has_stats = read && t->stats.count > 0;
  t->has_crc = checksums;
}

void AppendTensor(Record* record, TensorRecord t, const int64_t* shape, int ndim, const TensorLabel* label) {
  t.ndim = static_cast<uint8_t>(ndim);
  t.xor_only = rt().options.xor_digests;
  int64_t dims[kMaxDims];
  if (label != nullptr) {
    t.type = label->type;
    t.dtype_name = label->dtype;
    t.requires_grad = label->requires_grad;
    record->Extra(&t, label->extra);
    if (!label->file.empty()) record->SetFile(&t, label->file);
    if (label->shape != nullptr && IntegersOf(label->shape, kMaxDims, dims, &ndim)) {
      t.ndim = static_cast<uint8_t>(ndim);
      shape = dims;
    }
    PyErr_Clear();
  }
  t.dims = static_cast<uint32_t>(record->dims.size());
  record->dims.insert(record->dims.end(), shape, shape + t.ndim);
  record->has_slots |= t.slot >= 0;
  record->Tensor() = t;
}

Ref FileForPython(Record* record, PyObject* value) {
  const size_t node = record->nodes.size();
  if (record->save == SaveMode::kNow && rt().files->working()) {
    Ref file(PyUnicode_DecodeFSDefault(TensorFileName(record->path.NameAt(*record, node), "").c_str()));
    if (file) return file;
    PyErr_Clear();
  }
  if (record->save == SaveMode::kDeferred && IsTensor(value)) {
    const Ref copy = record->copy_held ? framework().CopyOf(value) : Ref::Borrow(value);
    if (copy) record->held.push_back({static_cast<uint32_t>(node), Shared(copy.get()), nullptr, true});
  }
  return Ref::Borrow(Py_None);
}

void SavePending(Record* record) {
  // Taken out and named first: other threads may run, and add to the record, while files are written.
  const std::vector<HeldValue> held = std::exchange(record->held, {});
  if (!rt().files->working()) return;
  RecordPath path;
  std::vector<std::string> names_of;
  for (const HeldValue& value : held) names_of.push_back(path.NameAt(*record, value.node));
  for (size_t i = 0; i < held.size(); ++i) {
    if (record->nodes[held[i].node].type != RecordNodeType::kTensor) continue;
    held[i].described ? SaveHeldByPython(record, held[i], names_of[i])
                      : framework().SaveHeld(record, held[i], names_of[i]);
  }
}

void DropPending(Record* record) { record->held.clear(); }

// Freed on whichever thread lets go last.
std::shared_ptr<void> Shared(PyObject* object) {
  Py_INCREF(object);
  return {object, [](void* held) {
            if (!Py_IsInitialized()) return;
            const PyGILState_STATE state = PyGILState_Ensure();
            Py_DECREF(static_cast<PyObject*>(held));
            PyGILState_Release(state);
          }};
}

}  // namespace msprobe
