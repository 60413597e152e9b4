#include "bindings/torch/tensors.h"

#include <algorithm>
#include <utility>

#include "bindings/device/device_values.h"
#include "bindings/python/host_tensor.h"
#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"
#include "bindings/torch/leaf_memo.h"
#include "bindings/torch/module_call.h"
#include "bindings/torch/torch_objects.h"
#include "bindings/torch/unwritten.h"
#include "capture/read_once.h"

namespace msprobe {
namespace {

thread_local ReadOnce t_read;                          // NOLINT(clang-diagnostic-exit-time-destructors): owns nothing
constexpr uintptr_t kLowAddress = uintptr_t{1} << 40;  // an emptied storage gives null plus the offset of the view

DType FromDlpack(uint8_t code, uint8_t bits) {
  switch (code) {
    case 0:
      return bits == 64   ? DType::kInt64
             : bits == 32 ? DType::kInt32
             : bits == 16 ? DType::kInt16
             : bits == 8  ? DType::kInt8
                          : DType::kUnknown;
    case 1:
      return bits == 64   ? DType::kUInt64
             : bits == 32 ? DType::kUInt32
             : bits == 16 ? DType::kUInt16
             : bits == 8  ? DType::kUInt8
                          : DType::kUnknown;
    case 2:
      return bits == 32   ? DType::kFloat32
             : bits == 16 ? DType::kFloat16
             : bits == 64 ? DType::kFloat64
                          : DType::kUnknown;
    case 4: return bits == 16 ? DType::kBFloat16 : DType::kUnknown;
    case 5:
      return bits == 64    ? DType::kComplex64
             : bits == 128 ? DType::kComplex128
             : bits == 32  ? DType::kComplex32
                           : DType::kUnknown;
    case 6: return bits == 8 ? DType::kBool : DType::kUnknown;
    case 10: return DType::kFloat8E4M3FN;
    case 11: return DType::kFloat8E4M3FNUZ;
    case 12: return DType::kFloat8E5M2;
    case 13: return DType::kFloat8E5M2FNUZ;
    case 14: return DType::kFloat8E8M0FNU;
    default: return DType::kUnknown;
  }
}

bool LookByDlpack(PyObject* tensor, TensorLook* look) {
  DlpackTensor d;
  if (torch_objects().dlpack->tensor_from_object(tensor, &d) != 0) {
    PyErr_Clear();
    return false;
  }
  look->data = static_cast<const char*>(d.data) + d.byte_offset;
  look->dtype = d.dtype.lanes == 1 ? FromDlpack(d.dtype.code, d.dtype.bits) : DType::kUnknown;
  look->on_host = d.device.type == kDlpackCpu;
  look->device_type = d.device.type;
  look->device = d.device.id;
  look->ndim = d.ndim;
  look->shape = d.shape;
  look->strides = d.strides;
  return true;
}

// For releases of PyTorch without the table.
bool LookByAttributes(PyObject* tensor, TensorLook* look) {
  look->on_host = AttrIsTrue(tensor, torch_names.is_cpu);
  if (!look->on_host && AttrIsTrue(tensor, torch_names.is_meta)) return false;
  Ref dtype(PyObject_GetAttr(tensor, torch_names.dtype));
  Ref pointer(look->on_host ? PyObject_CallMethodNoArgs(tensor, torch_names.data_ptr) : PyLong_FromLong(0));
  Ref shape(PyObject_GetAttr(tensor, torch_names.shape)),
      strides(PyObject_CallMethodNoArgs(tensor, torch_names.stride));
  Ref text(dtype ? PyObject_Str(dtype.get()) : nullptr);
  int ndim = 0, again = 0;
  const bool read = pointer && text && shape && strides && IntegersOf(shape.get(), kMaxDims, look->own, &ndim) &&
                    IntegersOf(strides.get(), kMaxDims, look->own + kMaxDims, &again) && ndim == again;
  const char* name = read ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (name == nullptr) {
    PyErr_Clear();
    return false;
  }
  look->data = static_cast<const char*>(PyLong_AsVoidPtr(pointer.get()));
  look->dtype = ParseDType(name);
  look->ndim = ndim;
  look->shape = look->own;
  look->strides = look->own + kMaxDims;
  return true;
}

bool MethodIsTrue(PyObject* tensor, PyObject* method) {
  Ref value(PyObject_CallMethodNoArgs(tensor, method));
  if (!value) PyErr_Clear();
  return value.get() != Py_False;  // an error is a reason to be careful
}

// Whether the storage holds every element the strides reach. Asked only when the address looks odd: views of storages
// that were emptied (FSDP frees parameters so) point next to null.
bool StorageHolds(PyObject* tensor, const TensorLook& look) {
  Ref storage(PyObject_CallMethodNoArgs(tensor, torch_names.untyped_storage));
  Ref bytes(storage ? PyObject_CallMethodNoArgs(storage.get(), torch_names.nbytes) : nullptr);
  Ref start(storage ? PyObject_CallMethodNoArgs(storage.get(), torch_names.data_ptr) : nullptr);
  if (!bytes || !start) {
    PyErr_Clear();
    return false;
  }
  const auto first = reinterpret_cast<uintptr_t>(PyLong_AsVoidPtr(start.get()));
  const auto size = PyLong_AsUnsignedLongLong(bytes.get());
  if (first == 0) return false;
  uint64_t reach = 1;
  for (int i = 0; i < look.ndim; ++i) reach += static_cast<uint64_t>((look.shape[i] - 1) * look.strides[i]);
  const auto at = reinterpret_cast<uintptr_t>(look.data);
  return at >= first && at - first + reach * ElementSize(look.dtype) <= size;
}

KernelPlace PlaceOf(PyObject* tensor, const TensorLook& look) {
  if (!interpreter().device_kernel) return {};
  if (look.on_host) return {interpreter().kernel_of_host, 0, nullptr};
  const DlpackExchangeApi* api = torch_objects().dlpack;
  if (look.device_type != kDlpackCuda || api == nullptr || api->current_work_stream == nullptr) return {};
  // A kernel that reads what is not there ends the training.
  if (reinterpret_cast<uintptr_t>(look.data) < kLowAddress && !StorageHolds(tensor, look)) return {};
  KernelPlace place{true, look.device, nullptr};
  if (api->current_work_stream(look.device_type, look.device, &place.stream) == 0) return place;
  PyErr_Clear();
  return {};
}

// The same as a tensor of its own, for memory that only the framework reads.
Ref PartOf(PyObject* tensor, const TensorLook& look) {
  Ref part(PyObject_CallMethodNoArgs(tensor, torch_names.detach));
  Ref shape(PyObject_GetAttr(tensor, torch_names.shape));
  int64_t whole[kMaxDims], begin = 0;
  int ndim = 0;
  if (!part || !shape || !IntegersOf(shape.get(), kMaxDims, whole, &ndim)) return PyErr_Clear(), Ref();
  for (int d = 0; d < ndim && part; ++d) {
    if (whole[d] == look.shape[d]) continue;
    begin = SliceBegin(rt().slices, d, whole[d]);
    part = Ref(PyObject_CallMethod(part.get(), "narrow", "iLL", d, static_cast<long long>(begin),
                                   static_cast<long long>(look.shape[d])));
  }
  if (!part) PyErr_Clear();
  return part;
}

// A plain tensor, on any device. `again`: it is sure that nothing else is odd, so that devices which the table does not
// know are looked at by attributes.
bool LookAtAny(PyObject* tensor, bool again, TensorLook* look) {
  const bool looked = torch_objects().dlpack != nullptr && LookByDlpack(tensor, look);
  if (!looked && ((torch_objects().dlpack != nullptr && !again) || !LookByAttributes(tensor, look))) return false;
  if (look->dtype == DType::kUnknown || look->ndim > kMaxDims) return false;
  look->Count();
  if (look->on_host && look->count > 0 && reinterpret_cast<uintptr_t>(look->data) < kLowAddress &&
      !StorageHolds(tensor, *look)) {
    return false;
  }
  // Negation and conjugation may be pending: then the memory holds the values before them.
  return !MethodIsTrue(tensor, torch_names.is_neg) &&
         !(IsComplex(look->dtype) && MethodIsTrue(tensor, torch_names.is_conj));
}

// By waiting for the device: where it is decided at once what becomes of the tensor.
bool RecordFromHost(Record* record, PyObject* tensor) {
  Ref detached(PyObject_CallMethodNoArgs(tensor, torch_names.detach));
  Ref host(detached ? PyObject_CallMethod(detached.get(), "cpu", nullptr) : nullptr);
  if (!host) return NoteSkip("a tensor could not be copied from its device", TakeError()), false;
  TensorLabel label;
  label.requires_grad = AttrIsTrue(tensor, torch_names.requires_grad);
  return RecordPlainTensor(record, host.get(), &label);
}

}  // namespace

bool LookAtHostTensor(PyObject* tensor, TensorLook* look) { return LookAtAny(tensor, false, look) && look->on_host; }

void NoteTensorWritten(PyObject* tensor) {
  TensorLook look;
  if (LookAtAny(tensor, false, &look)) NoteWritten(look.view(), look.on_host);
}

bool LookAgain(PyObject* tensor, const char* data, TensorLook* look) {
  const bool same = data != nullptr && torch_objects().dlpack != nullptr && LookByDlpack(tensor, look) &&
                    look->data == data && look->on_host && look->dtype != DType::kUnknown && !IsComplex(look->dtype) &&
                    look->ndim <= kMaxDims;
  if (!same) return LookAtHostTensor(tensor, look);
  look->Count();
  return reinterpret_cast<uintptr_t>(data) >= kLowAddress || LookAtHostTensor(tensor, look);
}

bool RecordPlainTensor(Record* record, PyObject* tensor, const TensorLabel* label) {
  TensorLook look;
  if (!LookAtAny(tensor, label != nullptr, &look)) return false;
  const Unwritten unwritten = UnwrittenOf(look.view(), look.on_host);
  // A label with a shape is of a tensor that Python saves.
  const bool own = label == nullptr || label->shape == nullptr;
  const bool later = own && record->save == SaveMode::kDeferred;
  if (!look.on_host && (later || look.count == 0)) return RecordFromHost(record, tensor);
  const bool deferred = !look.on_host || (interpreter().defer_all && look.count > 0 && !later);
  Ref part;
  if (own && !rt().slices.empty()) {
    TakePart(&look);
    if (deferred) part = PartOf(tensor, look);
    if (deferred && !part) return false;
  }
  TensorRecord t;  // appended at once: other threads may run meanwhile
  t.dtype = look.dtype;
  t.unwritten = unwritten;
  t.requires_grad = label != nullptr ? label->requires_grad : AttrIsTrue(tensor, torch_names.requires_grad);
  const TensorView view = look.view();
  const bool checksums = rt().options.checksums || rt().options.xor_digests;
  const bool save = own && record->save == SaveMode::kNow && rt().files->working();
  const std::string file = save ? TensorFileName(record->path.NameAt(*record, record->nodes.size()), ".pt") : "";
  if (deferred) {
    PyObject* whose = part ? part.get() : tensor;
    t.slot = DeferTensor(whose, view, look.count, PlaceOf(whose, look), checksums, file);
  } else {
    bool saved = false;
    LeafMemo& memo = LeafMemo::OfThread();
    const bool remember = memo.open() && label == nullptr && look.count >= LeafMemo::kMinElements;
    // What is made for the record alone is gone when it is read, and something else may come to lie there.
    const bool lasts = label == nullptr && t_flags.in_tool;
    if (lasts) t_read.Enter(t_flags.hook);
    const bool known = (lasts && t_read.Find(view, look.count, &t)) || (remember && memo.Find(tensor, view, &t));
    WithoutGilFor(look.count, [&] {
      if (!known) ComputeValues(view, checksums, &t);
      if (save) saved = rt().files->Save(file, view);
    });
    if (remember && !known) memo.Add(tensor, view, t);
    if (lasts && !known) t_read.Add(view, look.count, t);
    if (saved) record->SetFile(&t, file);
    if (later) HoldTensor(record, tensor, look);
  }
  if (const std::string* name = label == nullptr ? BufferName(look.data) : nullptr) {
    record->Extra(&t, "\"buffer\": \"" + *name + "\"");
    t.extra_last = true;
  }
  AppendTensor(record, t, look.shape, look.ndim, label);
  return true;
}

}  // namespace msprobe
