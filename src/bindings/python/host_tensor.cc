#include "bindings/python/host_tensor.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "bindings/python/framework.h"
#include "bindings/python/runtime.h"
#include "tensor/kernels/xor_digest.h"

namespace msprobe {
namespace {

bool SameStats(const Stats& a, const Stats& b) {
  const auto same = [](double x, double y) { return x == y || (x != x && y != y); };
  return same(a.max, b.max) && same(a.min, b.min) && same(a.mean, b.mean) && same(a.norm, b.norm) &&
         a.int_max == b.int_max && a.int_min == b.int_min && a.uint_max == b.uint_max && a.uint_min == b.uint_min &&
         a.nan_count == b.nan_count && a.inf_count == b.inf_count && a.count == b.count;
}

// Whether `view` still is what the record says.
bool Unchanged(const TensorRecord& t, const std::vector<int64_t>& dims, const TensorView& view) {
  if (view.dtype != t.dtype || view.ndim != t.ndim || !std::equal(dims.begin(), dims.end(), view.shape)) return false;
  if (t.xor_only) return !t.has_stats || ComputeXor(view) == t.xor_digest;
  Stats now;
  return !t.has_stats || (ComputeStats(view, &now) && SameStats(t.stats, now));
}

}  // namespace

void TensorLook::Count() {
  count = 1;
  for (int i = 0; i < ndim; ++i) count *= shape[i];
}

void TakePart(TensorLook* look) {
  std::copy(look->shape, look->shape + look->ndim, look->part);
  int64_t strides[kMaxDims];
  for (int64_t d = look->ndim - 1, step = 1; look->strides == nullptr && d >= 0; --d) {
    strides[d] = step;
    step *= look->shape[d];
  }
  const int64_t moved =
      ApplySlices(rt().slices, look->ndim, look->strides != nullptr ? look->strides : strides, look->part);
  if (look->strides == nullptr) {
    std::copy(strides, strides + look->ndim, look->own);
    look->strides = look->own;
  }
  look->data += moved * static_cast<int64_t>(ElementSize(look->dtype));
  look->shape = look->part;
  look->Count();
}

void HoldTensor(Record* record, PyObject* tensor, const TensorLook& look) {
  HeldValue value;
  value.node = static_cast<uint32_t>(record->nodes.size());
  if (record->copy_held) {
    value.copy = CopyTensor(look.view());
    if (value.copy == nullptr) return;
  } else {
    value.object = Shared(tensor);
  }
  record->held.push_back(std::move(value));
}

void SaveHeldTensor(Record* record, const HeldValue& value, const std::string& name) {
  const auto number = static_cast<size_t>(record->nodes[value.node].i);
  const std::string file = TensorFileName(name, framework().file_ending());
  bool saved = false;
  if (value.copy != nullptr) {
    saved = rt().files->Save(file, value.copy->view());
  } else {
    const TensorRecord t = record->tensors[number];
    const std::vector<int64_t> dims(record->dims.begin() + t.dims, record->dims.begin() + t.dims + t.ndim);
    TensorLook look;
    bool unchanged = framework().LookAt(static_cast<PyObject*>(value.object.get()), &look);
    if (unchanged && !rt().slices.empty()) TakePart(&look);
    WithoutGilFor(look.count, [&] {
      unchanged = unchanged && Unchanged(t, dims, look.view());
      if (unchanged) saved = rt().files->Save(file, look.view());
    });
    if (!unchanged) NoteSkip("a tensor changed before it was saved", name);
  }
  if (saved) record->SetFile(&record->tensors[number], file);
}

bool SavePlainTensor(PyObject* tensor, const std::string& file) {
  TensorLook look;
  if (!framework().LookAt(tensor, &look)) return false;
  bool saved = false;
  WithoutGilFor(look.count, [&] { saved = rt().files->Save(file, look.view()); });
  return saved;
}

PyObject* StatisticsOf(PyObject* tensor) {
  TensorLook look;
  if (!IsPlainTensor(tensor) || !framework().LookAt(tensor, &look)) {
    return PyErr_Format(PyExc_TypeError, "the memory of this tensor cannot be read directly");
  }
  Stats s;
  uint32_t crc = 0;
  bool read = false;
  WithoutGilFor(look.count, [&] { read = ComputeStatsAndCrc32(look.view(), &s, &crc); });
  char hex[16];
  std::snprintf(hex, sizeof hex, "%08x", crc);
  if (!read || look.count == 0) return Py_BuildValue("OOOOs", Py_None, Py_None, Py_None, Py_None, hex);
  const bool is_unsigned = look.dtype >= DType::kUInt8 && look.dtype <= DType::kUInt64;
  const auto extreme = [&](double f, int64_t i, uint64_t u) {
    if (look.dtype == DType::kBool) return PyBool_FromLong(f != 0);
    if (!IsInteger(look.dtype)) return PyFloat_FromDouble(f);
    return is_unsigned ? PyLong_FromUnsignedLongLong(u) : PyLong_FromLongLong(i);
  };
  const Ref max(extreme(s.max, s.int_max, s.uint_max)), min(extreme(s.min, s.int_min, s.uint_min));
  return max && min ? Py_BuildValue("OOdds", max.get(), min.get(), s.mean, s.norm, hex) : nullptr;
}

}  // namespace msprobe
