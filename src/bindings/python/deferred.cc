#include "bindings/python/deferred.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"

namespace msprobe {
namespace {

struct Value {
  TensorRecord tensor;  // dtype, statistics, checksum
  std::vector<int64_t> shape;
  std::string file;
  bool saved = false;
  int64_t count = 0;
  bool checksums = false;
  bool arrived = false;
  bool described = false;  // type and shape came with the values
  bool is_null = false;
};

// Under the GIL.
std::unordered_map<int32_t, Value>& Values() {
  static auto* values = new std::unordered_map<int32_t, Value>;
  return *values;
}

int32_t next_slot = 0;

struct Cells {
  double max, min, sum, norm, odd, nan;
  int64_t int_max, int_min;
};

Cells Read(const char* at, bool wide) {
  double d[6];
  if (wide) {
    std::memcpy(d, at, sizeof d);
  } else {
    float f[6];
    std::memcpy(f, at, sizeof f);
    std::copy(f, f + 6, d);
  }
  int64_t i[2];
  std::memcpy(i, at + kCellBytes - sizeof i, sizeof i);
  return {d[0], d[1], d[2], d[3], d[4], d[5], i[0], i[1]};
}

// A NaN wins, as in the maximum of a tensor.
double Larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

Stats Fold(const DeviceCells& cells, DType dtype, int64_t count) {
  Stats out;
  Cells all = Read(cells.first, cells.wide);
  for (int64_t i = 1; i < cells.parts; ++i) {
    const Cells part = Read(cells.first + i * kCellBytes, cells.wide);
    all.max = Larger(all.max, part.max);
    all.min = -Larger(-all.min, -part.min);
    all.sum += part.sum;
    all.norm = std::hypot(all.norm, part.norm);
    all.odd += part.odd;
    all.nan += part.nan;
    all.int_max = std::max(all.int_max, part.int_max);
    all.int_min = std::min(all.int_min, part.int_min);
  }
  out.count = count;
  out.mean = all.sum / static_cast<double>(count);
  out.norm = all.norm;
  if (IsFloating(dtype) || IsComplex(dtype)) {
    out.nan_count = static_cast<int64_t>(all.nan);
    out.inf_count = static_cast<int64_t>(all.odd - all.nan);
  }
  if (dtype == DType::kUInt64) {  // compared as signed numbers with their highest bit turned
    constexpr uint64_t kHighest = uint64_t{1} << 63;
    out.uint_max = static_cast<uint64_t>(all.int_max) ^ kHighest;
    out.uint_min = static_cast<uint64_t>(all.int_min) ^ kHighest;
  } else if (dtype >= DType::kUInt8 && dtype <= DType::kUInt32) {
    out.uint_max = static_cast<uint64_t>(all.int_max);
    out.uint_min = static_cast<uint64_t>(all.int_min);
  } else if (IsInteger(dtype)) {
    out.int_max = all.int_max;
    out.int_min = all.int_min;
  } else {
    out.max = all.max;
    out.min = all.min;
    if (std::isnan(all.max)) out.min = out.mean = out.norm = all.max;
  }
  return out;
}

void ShowAsNull(Record* record, const TensorRecord& tensor) {
  const auto number = &tensor - record->tensors.data();
  for (RecordNode& node : record->nodes) {
    if (node.type == RecordNodeType::kTensor && node.i == number) node.type = RecordNodeType::kNull;
  }
}

void Describe(Record* record, const Value& value, TensorRecord* t) {
  t->dtype = value.tensor.dtype;
  t->dtype_name = value.tensor.dtype_name;
  const size_t dims = record->dims.size();
  record->dims.insert(record->dims.end(), value.shape.begin(), value.shape.end());
  t->ndim = static_cast<uint8_t>(value.shape.size());
  t->dims = static_cast<uint32_t>(dims);
}

bool Fill(Record* record) {
  auto& values = Values();
  const auto waits = [&](const TensorRecord& t) {
    const auto found = t.slot >= 0 ? values.find(t.slot) : values.end();
    return found != values.end() && !found->second.arrived;
  };
  if (std::any_of(record->tensors.begin(), record->tensors.end(), waits)) return false;
  for (TensorRecord& t : record->tensors) {
    const auto found = t.slot >= 0 ? values.find(t.slot) : values.end();
    if (found == values.end()) continue;
    if (found->second.is_null) ShowAsNull(record, t);
    if (found->second.described) Describe(record, found->second, &t);
    const TensorRecord& value = found->second.tensor;
    t.has_stats = value.has_stats;
    t.stats = value.stats;
    t.has_crc = value.has_crc;
    t.crc = value.crc;
    t.xor_digest = value.xor_digest;
    if (found->second.saved) record->SetFile(&t, found->second.file);
    values.erase(found);
  }
  return true;
}

}  // namespace

bool DeferInFramework(PyObject* tensor, int32_t slot, bool elements, bool integer) {
  Ref started(PyObject_CallFunction(interpreter().defer_tensor, "OiOO", tensor, static_cast<int>(slot),
                                    elements ? Py_True : Py_False, integer ? Py_True : Py_False));
  if (!started) NoteSkip("the values of a tensor could not be computed on its device", TakeError());
  return started.get() == Py_True;
}

int32_t NewTensorSlot(const TensorView& view, int64_t count, bool checksums, const std::string& file) {
  const int32_t slot = next_slot++;
  Value& value = Values()[slot];
  value.tensor.dtype = view.dtype;
  value.shape.assign(view.shape, view.shape + view.ndim);
  value.file = file;
  value.count = count;
  value.checksums = checksums;
  return slot;
}

void DropSlot(int32_t slot) { Values().erase(slot); }

int32_t NewDeferredSlot() {
  const int32_t slot = next_slot++;
  Values()[slot] = {};
  return slot;
}

void DeliverValues(int32_t slot, const TensorRecord& values, const std::vector<int64_t>& shape,
                   const std::string& file) {
  const auto found = Values().find(slot);
  if (found == Values().end()) return;
  Value& value = found->second;
  value.tensor = values;
  value.shape = shape;
  value.file = file;
  value.saved = !file.empty();
  value.described = value.arrived = true;
}

void DeliverNull(int32_t slot) {
  const auto found = Values().find(slot);
  if (found != Values().end()) found->second.is_null = found->second.arrived = true;
}

void DeliverStats(int32_t slot, const Stats& stats) {
  const auto found = Values().find(slot);
  if (found == Values().end()) return;
  Value& value = found->second;
  value.tensor.stats = stats;
  value.tensor.has_stats = value.arrived = true;
}

void DeliverCells(int32_t slot, const DeviceCells& cells) {
  const auto found = Values().find(slot);
  if (found == Values().end()) return;
  DeliverStats(slot, Fold(cells, found->second.tensor.dtype, found->second.count));
}

void DeliverBytes(int32_t slot, const void* data) {
  const auto found = Values().find(slot);
  if (found == Values().end()) return;
  Value value = found->second;
  const TensorView view{data, value.tensor.dtype, static_cast<int>(value.shape.size()), value.shape.data(), nullptr};
  {
    const GilReleased released;
    ComputeValues(view, value.checksums, &value.tensor);
    value.saved = !value.file.empty() && rt().files->Save(value.file, view);
  }
  value.arrived = true;
  const auto again = Values().find(slot);
  if (again != Values().end()) again->second = std::move(value);
}

void DeliverNothing(int32_t slot) {
  const auto found = Values().find(slot);
  if (found != Values().end()) found->second.arrived = true;
}

void ResolveDeferred() {
  if (rt().recorder != nullptr) rt().recorder->Resolve(Fill);
}

void FetchDeferred() {
  if (interpreter().fetch_deferred == nullptr || next_slot == 0) return;
  ErrorStash stash;
  InTool guard;
  if (interpreter().fetch_started != nullptr) interpreter().fetch_started();
  Ref done(PyObject_CallNoArgs(interpreter().fetch_deferred));
  if (!done) NoteSkip("the values of a device could not be fetched", TakeError());
  ResolveDeferred();
}

void ResolveNow(Record* record) {
  if (!record->has_slots) return;
  FetchDeferred();
  record->has_slots = !Fill(record);
}

void ForgetDeferred(const Record& record) {
  if (!record.has_slots) return;
  for (const TensorRecord& t : record.tensors) {
    if (t.slot >= 0) Values().erase(t.slot);
  }
}

void EndDeferred() {
  Values().clear();
  next_slot = 0;
}

}  // namespace msprobe
