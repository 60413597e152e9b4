#include "bindings/mindspore/tensors.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/mindspore/mindspore_objects.h"
#include "bindings/python/deferred.h"
#include "bindings/python/framework.h"
#include "bindings/python/runtime.h"
#include "tensor/files/npy_writer.h"
#include "tensor/kernels/crc32.h"
#include "tensor/kernels/layout.h"
#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

constexpr uintptr_t kLowAddress = uintptr_t{1} << 16;  // a tensor without memory, and offsets into none
constexpr uint64_t kMostHeldBytes = uint64_t{64} << 20;

struct ElementType {
  DType dtype = DType::kUnknown;
  const char* name = "";  // as dumps say it: "Float32"; of static storage
};

// Element types are objects that live as long as the process.
const ElementType& TypeOf(PyObject* dtype) {
  static auto* known = new std::unordered_map<PyObject*, ElementType>;
  if (const auto found = known->find(dtype); found != known->end()) return found->second;
  ElementType type;
  const Ref text(PyObject_Str(dtype));
  if (text) {
    const std::string name(TextOf(text.get()));
    type = {ParseDType(name), InternName(name)->c_str()};
  }
  PyErr_Clear();
  Py_INCREF(dtype);
  return known->emplace(dtype, type).first->second;
}

// Keeps what asnumpy() gave alive while it is read.
thread_local Ref t_host_copy;

// Of a tensor on a device: waits, and copies.
const char* CopyToHost(PyObject* tensor) {
  Ref array(PyObject_CallMethodNoArgs(tensor, mindspore_names.asnumpy));
  Ref interface(array ? PyObject_GetAttr(array.get(), mindspore_names.array_interface) : nullptr);
  PyObject* data = interface && PyDict_Check(interface.get()) ? PyDict_GetItemString(interface.get(), "data") : nullptr;
  PyObject* address = data != nullptr && PyTuple_Check(data) ? PyTuple_GetItem(data, 0) : nullptr;
  const auto* first = address != nullptr ? static_cast<const char*>(PyLong_AsVoidPtr(address)) : nullptr;
  PyErr_Clear();
  t_host_copy = std::move(array);
  return first;
}

bool IsOnHost(PyObject* tensor) {
  Ref device(PyObject_GetAttr(tensor, mindspore_names.device));
  PyErr_Clear();
  return TextOf(device.get()).starts_with("CPU");
}

// An operator that was launched earlier has failed, maybe another one than that which made this tensor. The training
// meets the error where it uses the result, as without us.
void NoteFailedLaunch() {
  const std::string text = TakeError();
  NoteSkip("an operator failed and its result has no values", text.substr(0, text.find('\n')));
}

// What can be seen without waiting.
bool LookAtShape(PyObject* tensor, TensorLook* look, const ElementType** type) {
  Ref dtype(PyObject_GetAttr(tensor, mindspore_names.dtype)), shape(PyObject_GetAttr(tensor, mindspore_names.shape));
  const bool read =
      dtype && shape && PyTuple_Check(shape.get()) && IntegersOf(shape.get(), kMaxDims, look->own, &look->ndim);
  if (!read) return PyErr_Clear(), false;
  *type = &TypeOf(dtype.get());
  look->dtype = (*type)->dtype;
  look->shape = look->own;
  look->Count();
  return look->dtype != DType::kUnknown && look->count >= 0;
}

bool LookAtElements(PyObject* tensor, TensorLook* look) {
  look->on_host = true;
  if (look->count == 0) return true;  // the address of an empty tensor must not be read
  if (!IsOnHost(tensor)) {
    look->data = CopyToHost(tensor);
    return look->data != nullptr;
  }
  Ref strides(PyObject_CallMethodNoArgs(tensor, mindspore_names.stride));
  Ref tuple(strides ? PySequence_Tuple(strides.get()) : nullptr);
  int ndim = 0;
  if (!tuple || !IntegersOf(tuple.get(), kMaxDims, look->own + kMaxDims, &ndim) || ndim != look->ndim) {
    return PyErr_Clear(), false;
  }
  look->strides = look->own + kMaxDims;
  Ref pointer(PyObject_CallMethodNoArgs(tensor, mindspore_names.data_ptr));  // waits
  if (!pointer) return NoteFailedLaunch(), false;
  look->data = static_cast<const char*>(PyLong_AsVoidPtr(pointer.get()));
  PyErr_Clear();
  return reinterpret_cast<uintptr_t>(look->data) >= kLowAddress;
}

// The checksum of the earlier tool: of the elements as its files hold them.
uint32_t WidenedCrc32(const TensorView& view) {
  Layout layout;
  uint32_t crc = 0;
  if (!MakeLayout(view, Order::kLogical, &layout)) return 0;
  constexpr size_t kChunk = 2048;
  double wide[kChunk];
  float narrow[kChunk];
  if (layout.count == 0) return 0;
  LayoutWalker(layout).Walk(0, layout.count, [&](const char* p, size_t n) {
    for (size_t at = 0; at < n; at += kChunk) {
      const size_t count = std::min(kChunk, n - at);
      metrics::ToDoubles(view.dtype, p + at * layout.element, count, wide);
      std::transform(wide, wide + count, narrow, [](double value) { return static_cast<float>(value); });
      crc = Crc32(narrow, count * sizeof(float), crc);
    }
  });
  return crc;
}

void ReadValues(const TensorLook& look, const std::string& file, TensorRecord* t, bool* saved) {
  WithoutGilFor(look.count, [&] {
    ComputeValues(look.view(), rt().options.checksums, t);
    if (t->has_crc && IsWidenedInNpy(look.dtype)) t->crc = WidenedCrc32(look.view());
    if (!file.empty()) *saved = rt().files->Save(file, look.view());
  });
}

// ---- gradients

thread_local int t_gradients_later = 0;

struct LaterTensor {
  Ref tensor;
  int32_t slot;
  std::string file;
};
struct LaterTensors {
  std::vector<LaterTensor> tensors;
  uint64_t bytes = 0;
  bool reading = false;
};
LaterTensors& Later() {
  static auto* later = new LaterTensors;  // under the GIL
  return *later;
}

bool PutOff(Record* record, PyObject* tensor, const TensorLook& look, const std::string& file, TensorRecord* t) {
  const Runtime& r = rt();
  if (t_gradients_later == 0 || look.count == 0 || record->save == SaveMode::kDeferred) return false;
  if (r.trigger.active() || !r.slices.empty()) return false;
  t->slot = NewDeferredSlot();
  Later().tensors.push_back({Ref::Borrow(tensor), t->slot, file});
  Later().bytes += static_cast<uint64_t>(look.count) * ElementSize(look.dtype);
  return true;
}

}  // namespace

bool LookAtMindSporeTensor(PyObject* tensor, TensorLook* look) {
  const ElementType* type = nullptr;
  return LookAtShape(tensor, look, &type) && LookAtElements(tensor, look);
}

bool RecordMindSporeTensor(Record* record, PyObject* tensor, const TensorLabel* label) {
  TensorLook look;
  const ElementType* type = nullptr;
  if (!LookAtShape(tensor, &look, &type)) return false;
  TensorRecord t;
  t.dtype = look.dtype;
  t.dtype_name = type->name;
  const bool own = label == nullptr || label->shape == nullptr;
  const bool save = own && record->save == SaveMode::kNow && rt().files->working();
  const std::string file = save ? TensorFileName(record->path.NameAt(*record, record->nodes.size()), ".npy") : "";
  if (!PutOff(record, tensor, look, file, &t)) {
    const bool read = LookAtElements(tensor, &look);
    if (own && !rt().slices.empty()) TakePart(&look);
    bool saved = false;
    if (read) ReadValues(look, file, &t, &saved);
    if (saved) record->SetFile(&t, file);
    if (read && own && record->save == SaveMode::kDeferred) HoldTensor(record, tensor, look);
    t_host_copy = Ref();
  }
  AppendTensor(record, t, look.shape, look.ndim, label);
  return true;
}

GradientsLater::GradientsLater() { ++t_gradients_later; }

GradientsLater::~GradientsLater() {
  --t_gradients_later;
  if (Later().bytes > kMostHeldBytes) Shielded(ReadGradients);
}

bool GradientsWait() { return !Later().tensors.empty(); }

void ReadGradients() {
  LaterTensors& later = Later();
  if (later.tensors.empty() || std::exchange(later.reading, true)) return;
  ErrorStash stash;
  InTool guard;
  while (!later.tensors.empty()) {
    const std::vector<LaterTensor> tensors = std::exchange(later.tensors, {});
    later.bytes = 0;
    for (const LaterTensor& waiting : tensors) {
      TensorLook look;
      TensorRecord t;
      bool saved = false;
      const bool read = LookAtMindSporeTensor(waiting.tensor.get(), &look);
      t.dtype = look.dtype;
      if (read) ReadValues(look, waiting.file, &t, &saved);
      if (!read) NoteSkip("a gradient could not be read", "its memory is gone");
      DeliverValues(waiting.slot, t, saved ? waiting.file : "");
    }
  }
  later.reading = false;
  ResolveDeferred();
}

}  // namespace msprobe
