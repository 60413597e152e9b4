#include "bindings/mindspore/tensors.h"

#include <algorithm>
#include <thread>
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
// What is held and not read: the memory that it takes, and what is lost when the process is killed.
constexpr uint64_t kMostHeldBytes = uint64_t{64} << 20;
constexpr size_t kMostHeldTensors = 256;

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

// Keeps what asnumpy() gave alive while it is read. No Ref: a thread may end after the interpreter.
thread_local PyObject* t_host_copy = nullptr;

// Of a tensor on a device: waits, and copies.
const char* CopyToHost(PyObject* tensor) {
  Ref array(PyObject_CallMethodNoArgs(tensor, mindspore_names.asnumpy));
  Ref interface(array ? PyObject_GetAttr(array.get(), mindspore_names.array_interface) : nullptr);
  PyObject* data = interface && PyDict_Check(interface.get()) ? PyDict_GetItemString(interface.get(), "data") : nullptr;
  PyObject* address = data != nullptr && PyTuple_Check(data) ? PyTuple_GetItem(data, 0) : nullptr;
  const auto* first = address != nullptr ? static_cast<const char*>(PyLong_AsVoidPtr(address)) : nullptr;
  PyErr_Clear();
  Py_XSETREF(t_host_copy, array.release());
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

void ComputeTensorValues(const TensorLook& look, TensorRecord* t) {
  ComputeValues(look.view(), rt().options.checksums, t);
  if (t->has_crc && IsWidenedInNpy(look.dtype)) t->crc = WidenedCrc32(look.view());
}

void ReadValues(const TensorLook& look, const std::string& file, TensorRecord* t, bool* saved) {
  WithoutGilFor(look.count, [&] {
    ComputeTensorValues(look, t);
    if (!file.empty()) *saved = rt().files->Save(file, look.view());
  });
}

// ---- what is read later

struct LaterValue {
  int32_t slot;
  std::string file;  // empty: it is not saved
};
struct LaterTensor {
  Ref tensor;
  std::vector<LaterValue> values;  // everywhere it was recorded
};
struct LaterTensors {
  std::vector<LaterTensor> tensors;
  std::unordered_map<PyObject*, size_t> known;  // index of tensors
  uint64_t bytes = 0;
  size_t counted = 0;     // so many of them are in `bytes`
  bool forward = false;   // not only gradients
  bool backward = false;  // a pass runs
  bool reading = false;
};
LaterTensors& Later() {
  static auto* later = new LaterTensors;  // under the GIL
  return *later;
}
thread_local int t_gradients_later = 0;
thread_local bool t_reading = false;

bool MayWait(PyObject* tensor) {
  const Runtime& r = rt();
  if (r.trigger.active() || !r.slices.empty()) return false;
  if (t_gradients_later > 0) return true;
  return Later().forward && r.running && !t_flags.read_now && !IsBuffer(tensor);
}

// Type and shape of a result wait, too, until operators before it have been prepared; those of older ones do not.
void CountBytes() {
  constexpr size_t kYoung = 32;
  LaterTensors& later = Later();
  for (; later.counted + kYoung < later.tensors.size(); ++later.counted) {
    TensorLook look;
    const ElementType* type = nullptr;
    if (!LookAtShape(later.tensors[later.counted].tensor.get(), &look, &type)) continue;
    later.bytes += static_cast<uint64_t>(look.count) * ElementSize(look.dtype);
  }
}

// Nothing is asked of the tensor yet.
bool PutOff(Record* record, PyObject* tensor, const std::string& file, TensorRecord* t) {
  if (record->save == SaveMode::kDeferred || !MayWait(tensor)) return false;
  CountBytes();
  if (Later().bytes > kMostHeldBytes || Later().tensors.size() >= kMostHeldTensors) ReadTensors();
  LaterTensors& later = Later();
  const auto [known, fresh] = later.known.try_emplace(tensor, later.tensors.size());
  if (fresh) later.tensors.push_back({Ref::Borrow(tensor), {}});
  t->slot = NewDeferredSlot();
  later.tensors[known->second].values.push_back({t->slot, file});
  return true;
}

// Of a type without statistics, or whose memory is gone, type and shape are shown; false: not even these.
bool ReadOne(const LaterTensor& waiting) {
  TensorLook look;
  TensorRecord t;
  const ElementType* type = nullptr;
  const bool has_values = LookAtShape(waiting.tensor.get(), &look, &type);
  if (type == nullptr) return false;
  t.dtype = look.dtype;
  t.dtype_name = type->name;
  const bool read = has_values && LookAtElements(waiting.tensor.get(), &look);
  if (has_values && !read) NoteSkip("a tensor could not be read", "its memory is gone");
  std::vector<bool> saved(waiting.values.size());
  if (read) {
    WithoutGilFor(look.count, [&] {
      ComputeTensorValues(look, &t);
      for (size_t i = 0; i < saved.size(); ++i) {
        const std::string& file = waiting.values[i].file;
        saved[i] = !file.empty() && rt().files->Save(file, look.view());
      }
    });
  }
  const std::vector<int64_t> shape(look.own, look.own + look.ndim);
  for (size_t i = 0; i < saved.size(); ++i) {
    DeliverValues(waiting.values[i].slot, t, shape, saved[i] ? waiting.values[i].file : "");
  }
  Py_CLEAR(t_host_copy);
  return true;
}

// The shape of the youngest result comes when nearly all that was launched is done, and who asks for it sleeps; the
// address of an older one is waited for in a loop that keeps a core busy until then.
void SleepUntilMade(PyObject* youngest) {
  TensorLook look;
  const ElementType* type = nullptr;
  (void)LookAtShape(youngest, &look, &type);
}

void ReadOrGiveUp(const LaterTensor& waiting) {
  bool done = false;
  Shielded([&] { done = ReadOne(waiting); });
  if (done) return;
  NoteSkip("a tensor could not be read", "an operator before it failed");
  for (const LaterValue& value : waiting.values) DeliverNull(value.slot);
}

}  // namespace

bool LookAtMindSporeTensor(PyObject* tensor, TensorLook* look) {
  const ElementType* type = nullptr;
  return LookAtShape(tensor, look, &type) && LookAtElements(tensor, look);
}

bool RecordMindSporeTensor(Record* record, PyObject* tensor, const TensorLabel* label) {
  TensorLook look;
  const ElementType* type = nullptr;
  TensorRecord t;
  const bool own = label == nullptr || label->shape == nullptr;
  const bool save = own && record->save == SaveMode::kNow && rt().files->working();
  const std::string file = save ? TensorFileName(record->path.NameAt(*record, record->nodes.size()), ".npy") : "";
  if (label == nullptr && PutOff(record, tensor, file, &t)) {
    AppendTensor(record, t, nullptr, 0, label);
    return true;
  }
  if (!LookAtShape(tensor, &look, &type)) return false;
  t.dtype = look.dtype;
  t.dtype_name = type->name;
  const bool read = LookAtElements(tensor, &look);
  if (own && !rt().slices.empty()) TakePart(&look);
  bool saved = false;
  if (read) ReadValues(look, file, &t, &saved);
  if (saved) record->SetFile(&t, file);
  if (read && own && record->save == SaveMode::kDeferred) HoldTensor(record, tensor, look);
  Py_CLEAR(t_host_copy);
  AppendTensor(record, t, look.shape, look.ndim, label);
  return true;
}

bool IsBuffer(PyObject* tensor) {
  static PyObject* const requires_grad = PyUnicode_InternFromString("requires_grad");
  static PyObject* const info_name = PyUnicode_InternFromString("_param_info");
  if (!PyType_IsSubtype(Py_TYPE(tensor), framework().types().parameter)) return false;
  Ref info(PyObject_GetAttr(tensor, info_name));  // where requires_grad is kept, which waits when it is asked itself
  if (!info) PyErr_Clear();
  return !AttrIsTrue(info ? info.get() : tensor, requires_grad);
}

GradientsLater::GradientsLater() { ++t_gradients_later; }
GradientsLater::~GradientsLater() { --t_gradients_later; }

void ReadLaterAgain() { Later().forward = true; }

void BeginBackward() { Later().backward = true; }
bool InBackward() { return Later().backward; }

void ReadAfterBackward() {
  Later().backward = false;
  Later().forward = false;
  ReadTensors();
}

void ReadBeforeWrite(PyObject* written) {
  ReadTensors(written);
  // Another thread may have begun to, and given the GIL away.
  while (Later().reading && !t_reading) {
    const GilReleased released;
    std::this_thread::yield();
  }
}

void ReadTensors(PyObject* youngest) {
  LaterTensors& later = Later();
  if (later.tensors.empty() || later.reading) return;
  ErrorStash stash;
  InTool guard;
  later.reading = t_reading = true;
  while (!later.tensors.empty()) {
    const std::vector<LaterTensor> tensors = std::exchange(later.tensors, {});
    later.known.clear();
    later.bytes = later.counted = 0;
    SleepUntilMade(youngest != nullptr && IsTensor(youngest) ? youngest : tensors.back().tensor.get());
    for (const LaterTensor& waiting : tensors) ReadOrGiveUp(waiting);
  }
  later.reading = t_reading = false;
  ResolveDeferred();
}

}  // namespace msprobe
