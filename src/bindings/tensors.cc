// Tensors read where they are, through the DLPack table or the attributes of the object.
#include <cstdio>

#include "bindings/runtime.h"
#include "bindings/values.h"

namespace msprobe {
namespace {

constexpr int64_t kReleaseGilElements = 100'000;
constexpr uintptr_t kLowAddress = uintptr_t{1} << 40;  // an emptied storage gives null plus the offset of the view

DType FromDlpack(uint8_t code, uint8_t bits) {
  switch (code) {
    case 0: return bits == 64 ? DType::kInt64 : bits == 32 ? DType::kInt32 : bits == 16 ? DType::kInt16 : DType::kInt8;
    case 1:
      return bits == 64 ? DType::kUInt64 : bits == 32 ? DType::kUInt32 : bits == 16 ? DType::kUInt16 : DType::kUInt8;
    case 2: return bits == 32 ? DType::kFloat32 : bits == 16 ? DType::kFloat16 : DType::kFloat64;
    case 4: return bits == 16 ? DType::kBFloat16 : DType::kUnknown;
    case 5: return bits == 64 ? DType::kComplex64 : bits == 128 ? DType::kComplex128 : DType::kComplex32;
    case 6: return bits == 8 ? DType::kBool : DType::kUnknown;
    case 10: return DType::kFloat8E4M3FN;
    case 11: return DType::kFloat8E4M3FNUZ;
    case 12: return DType::kFloat8E5M2;
    case 13: return DType::kFloat8E5M2FNUZ;
    case 14: return DType::kFloat8E8M0FNU;
    default: return DType::kUnknown;
  }
}

// What a tensor shows of itself; the pointers live as long as the tensor.
struct Look {
  const char* data = nullptr;
  DType dtype = DType::kUnknown;
  bool on_host = false;
  int ndim = 0;
  const int64_t* shape = nullptr;
  const int64_t* strides = nullptr;
  int64_t own[2 * kMaxDims];
};

bool LookByDlpack(PyObject* tensor, Look* look) {
  DlpackTensor d;
  if (rt().dlpack->tensor_from_object(tensor, &d) != 0) {
    PyErr_Clear();
    return false;
  }
  look->data = static_cast<const char*>(d.data) + d.byte_offset;
  look->dtype = d.dtype.lanes == 1 ? FromDlpack(d.dtype.code, d.dtype.bits) : DType::kUnknown;
  look->on_host = d.device.type == kDlpackCpu;
  look->ndim = d.ndim;
  look->shape = d.shape;
  look->strides = d.strides;
  return true;
}

bool Integers(PyObject* tuple, int64_t* out, int* count) {
  if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > kMaxDims) return false;
  *count = static_cast<int>(PyTuple_GET_SIZE(tuple));
  for (int i = 0; i < *count; ++i) {
    out[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
    if (out[i] == -1 && PyErr_Occurred()) return false;
  }
  return true;
}

// For releases of PyTorch without the table.
bool LookByAttributes(PyObject* tensor, Look* look) {
  look->on_host = AttrIsTrue(tensor, names.is_cpu);
  if (!look->on_host) return false;
  Ref pointer(PyObject_CallMethodNoArgs(tensor, names.data_ptr)), dtype(PyObject_GetAttr(tensor, names.dtype));
  Ref shape(PyObject_GetAttr(tensor, names.shape)), strides(PyObject_CallMethodNoArgs(tensor, names.stride));
  Ref text(dtype ? PyObject_Str(dtype.get()) : nullptr);
  int ndim = 0, again = 0;
  const bool read = pointer && text && shape && strides && Integers(shape.get(), look->own, &ndim) &&
                    Integers(strides.get(), look->own + kMaxDims, &again) && ndim == again;
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
bool StorageHolds(PyObject* tensor, const Look& look) {
  Ref storage(PyObject_CallMethodNoArgs(tensor, names.untyped_storage));
  Ref bytes(storage ? PyObject_CallMethodNoArgs(storage.get(), names.nbytes) : nullptr);
  Ref start(storage ? PyObject_CallMethodNoArgs(storage.get(), names.data_ptr) : nullptr);
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

PyObject* Extreme(const TensorRecord& t, double f, int64_t i, uint64_t u) {
  if (t.dtype == DType::kBool) return PyBool_FromLong(f != 0);
  if (!IsInteger(t.dtype)) return PyFloat_FromDouble(f);
  return t.dtype >= DType::kUInt8 && t.dtype <= DType::kUInt64 ? PyLong_FromUnsignedLongLong(u)
                                                               : PyLong_FromLongLong(i);
}

}  // namespace

bool RecordPlainTensor(Record* record, PyObject* tensor) {
  Look look;
  if (!(rt().dlpack != nullptr ? LookByDlpack(tensor, &look) : LookByAttributes(tensor, &look))) return false;
  if (!look.on_host || look.dtype == DType::kUnknown || look.ndim > kMaxDims) return false;
  int64_t count = 1;
  for (int i = 0; i < look.ndim; ++i) count *= look.shape[i];
  if (count > 0 && reinterpret_cast<uintptr_t>(look.data) < kLowAddress && !StorageHolds(tensor, look)) return false;
  // Negation and conjugation may be pending: then the memory holds the values before them.
  if (MethodIsTrue(tensor, names.is_neg) || (IsComplex(look.dtype) && MethodIsTrue(tensor, names.is_conj)))
    return false;

  const bool requires_grad = AttrIsTrue(tensor, names.requires_grad);
  TensorRecord t;  // appended at once: other threads may run meanwhile
  t.dtype = look.dtype;
  t.ndim = static_cast<uint8_t>(look.ndim);
  t.requires_grad = requires_grad;
  const TensorView view{look.data, look.dtype, look.ndim, look.shape, look.strides};
  const bool checksums = rt().options.checksums;
  auto compute = [&] {
    if (count == 0) return;
    t.has_stats = checksums ? ComputeStatsAndCrc32(view, &t.stats, &t.crc) : ComputeStats(view, &t.stats);
  };
  if (count >= kReleaseGilElements) {
    Py_BEGIN_ALLOW_THREADS;
    compute();
    Py_END_ALLOW_THREADS;
  } else {
    compute();
  }
  t.has_crc = checksums;
  t.dims = static_cast<uint32_t>(record->dims.size());
  record->dims.insert(record->dims.end(), look.shape, look.shape + look.ndim);
  record->Tensor() = t;
  return true;
}

PyObject* StatisticsOf(PyObject* tensor) {
  Record record;
  if (!IsPlainTensor(tensor) || !RecordPlainTensor(&record, tensor)) {
    return PyErr_Format(PyExc_TypeError, "the memory of this tensor cannot be read directly");
  }
  const TensorRecord& t = record.tensors[0];
  char hex[16] = "";
  std::snprintf(hex, sizeof hex, "%08x", t.crc);
  Ref crc(t.has_crc ? PyUnicode_FromString(hex) : Ref::Borrow(Py_None).release());
  if (!t.has_stats) return Py_BuildValue("OOOOO", Py_None, Py_None, Py_None, Py_None, crc.get());
  const Stats& s = t.stats;
  Ref max(Extreme(t, s.max, s.int_max, s.uint_max)), min(Extreme(t, s.min, s.int_min, s.uint_min));
  if (t.dtype == DType::kBool) return Py_BuildValue("OOOOO", max.get(), min.get(), Py_None, Py_None, crc.get());
  if (t.ndim == 0 && !IsComplex(t.dtype)) {
    return Py_BuildValue("OOOOO", max.get(), min.get(), max.get(), max.get(), crc.get());
  }
  return Py_BuildValue("OOddO", max.get(), min.get(), s.mean, s.norm, crc.get());
}

}  // namespace msprobe
