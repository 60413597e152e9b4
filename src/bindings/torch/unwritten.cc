#include "bindings/torch/unwritten.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "bindings/python/api_values.h"
#include "bindings/python/framework.h"
#include "bindings/python/runtime.h"
#include "bindings/python/tensor_record.h"
#include "bindings/torch/torch_objects.h"

namespace msprobe {
namespace {

constexpr size_t kWhole = 256 << 10;          // bytes of a storage that is kept as it is
constexpr size_t kPiece = 64, kPieces = 512;  // of a larger one, evenly spaced
constexpr size_t kMostBytes = 64 << 20;       // of all that is kept
constexpr size_t kMostAllocations = 1 << 16;  // that are followed at a time
constexpr size_t kFewAllocations = 256;       // that are not looked through for dead ones

PyObject *take_sample = nullptr, *is_same_sample = nullptr;

struct Allocation {
  Ref storage;                 // weak: its memory may become that of another
  size_t bytes = 0, head = 0;  // so many of the first held values before they were moved here
  std::vector<char> kept;      // on the host
  Ref sample;                  // elsewhere

  size_t pieces() const { return bytes <= kWhole ? 1 : kPieces; }
  size_t PieceBytes() const { return bytes <= kWhole ? bytes : kPiece; }
  size_t PieceAt(size_t i) const { return bytes <= kWhole ? 0 : (bytes - kPiece) / (kPieces - 1) * i; }
};

// By first byte. Never destroyed: Allocation holds Python objects, and the interpreter may have ended.
auto& allocations = *new std::map<const char*, Allocation>;
size_t kept_bytes = 0, look_through_at = kFewAllocations;

void Erase(std::map<const char*, Allocation>::iterator it) {
  kept_bytes -= it->second.kept.size();
  allocations.erase(it);
}

void EraseDead() {
  for (auto it = allocations.begin(); it != allocations.end();) {
    const auto next = std::next(it);
    if (!WeakTarget(it->second.storage.get())) Erase(it);
    it = next;
  }
  look_through_at = std::max(kFewAllocations, 2 * allocations.size());
}

void Keep(const char* start, Allocation* a) {
  a->kept.resize(a->pieces() * a->PieceBytes());
  for (size_t i = 0; i < a->pieces(); ++i)
    std::memcpy(a->kept.data() + i * a->PieceBytes(), start + a->PieceAt(i), a->PieceBytes());
}

// Dimensions of more than one element, the widest stride first.
struct Elements {
  size_t element = 0;
  int64_t reach = 1;                              // elements from the first to the last
  int64_t count = 1;                              // different ones
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size

  explicit Elements(const TensorView& view) : element(ElementSize(view.dtype)) {
    int64_t stride = 1;
    for (int d = view.ndim - 1; d >= 0; --d) {
      const int64_t size = view.shape[d], step = view.strides != nullptr ? view.strides[d] : stride;
      stride *= size;
      if (size == 0) count = 0;
      if (size <= 1 || step == 0) continue;
      dims.emplace_back(step, size);
      reach += (size - 1) * step;
      count *= size;
    }
    std::sort(dims.rbegin(), dims.rend());
  }

  bool IsDense() const { return count >= reach; }
  bool Holds(int64_t at) const {
    for (const auto& [stride, size] : dims) at -= std::min(at / stride, size - 1) * stride;
    return at == 0;
  }
};

/// Compares pieces of memory with what was kept of them.
class Same {
 public:
  /// False as soon as nothing more can be learned.
  bool Look(const char* now, const char* kept, size_t bytes) {
    any_ = any_ || bytes > 0;
    if (std::memcmp(now, kept, bytes) == 0) {
      some_ = some_ || HoldsAnything(kept, bytes);
      return true;
    }
    all_ = false;
    constexpr size_t kWord = 8;  // less may be the same by chance
    for (size_t i = 0; i + kWord <= bytes && !some_; i += kWord)
      some_ = std::memcmp(now + i, kept + i, kWord) == 0 && HoldsAnything(kept + i, kWord);
    return !some_;
  }
  Unwritten Result() const {
    if (!any_) return Unwritten::kNone;
    return all_ ? Unwritten::kWhole : some_ ? Unwritten::kPart : Unwritten::kNone;
  }

 private:
  /// Zeros are what is written most often.
  static bool HoldsAnything(const char* data, size_t bytes) {
    return std::any_of(data, data + bytes, [](char c) { return c != 0; });
  }

  bool any_ = false, all_ = true, some_ = false;
};

// Whether the kept bytes that belong to the view are the same now; without such bytes it is not known.
Unwritten OnHost(const Allocation& a, const char* start, const TensorView& view) {
  const Elements elements(view);
  if (elements.count == 0) return Unwritten::kNone;
  const char* data = static_cast<const char*>(view.data);
  const auto first = static_cast<size_t>(data - start);
  const size_t end = first + static_cast<size_t>(elements.reach) * elements.element;
  if (end > a.bytes || end <= a.head) return Unwritten::kNone;
  Same same;
  for (size_t i = 0; i < a.pieces(); ++i) {
    const size_t at = a.PieceAt(i);
    const char* kept = a.kept.data() + i * a.PieceBytes();
    size_t from = std::max({at, first, a.head});
    const size_t to = std::min(at + a.PieceBytes(), end);
    if (from >= to) continue;
    if (elements.IsDense()) {
      if (!same.Look(start + from, kept + (from - at), to - from)) break;
      continue;
    }
    from = first + (from - first + elements.element - 1) / elements.element * elements.element;
    bool goes_on = true;
    for (; goes_on && from + elements.element <= to; from += elements.element) {
      if (elements.Holds(static_cast<int64_t>((from - first) / elements.element)))
        goes_on = same.Look(start + from, kept + (from - at), elements.element);
    }
    if (!goes_on) break;
  }
  const Unwritten found = same.Result();
  return found == Unwritten::kWhole && first < a.head ? Unwritten::kPart : found;
}

/// What was kept of these bytes becomes unlike what is there.
void MarkWritten(Allocation* a, const char* start, const TensorView& view) {
  const Elements elements(view);
  const char* data = static_cast<const char*>(view.data);
  const auto first = static_cast<size_t>(data - start);
  const size_t end = first + static_cast<size_t>(elements.reach) * elements.element;
  if (elements.count == 0 || end > a->bytes || !elements.IsDense()) return;
  for (size_t i = 0; i < a->pieces(); ++i) {
    const size_t at = a->PieceAt(i), from = std::max(at, first), to = std::min(at + a->PieceBytes(), end);
    for (size_t byte = from; byte < to; ++byte)
      a->kept[i * a->PieceBytes() + byte - at] = static_cast<char>(~start[byte]);
  }
}

bool SameElsewhere(const Allocation& a) {
  const Ref storage = WeakTarget(a.storage.get());
  Ref same(PyObject_CallFunctionObjArgs(is_same_sample, storage.get(), a.sample.get(), nullptr));
  if (!same) NoteSkip("memory of a device could not be looked at", TakeError());
  return same.get() == Py_True;
}

/// The living allocation that holds the first byte of `view`.
std::map<const char*, Allocation>::iterator FindAllocation(const TensorView& view) {
  const auto* data = static_cast<const char*>(view.data);
  auto it = allocations.upper_bound(data);
  if (it == allocations.begin()) return allocations.end();
  --it;
  if (data >= it->first + it->second.bytes) return allocations.end();
  if (!WeakTarget(it->second.storage.get())) return Erase(it), allocations.end();
  return it;
}

struct Memory {
  Ref storage;
  const char* start = nullptr;
  size_t bytes = 0;
};

/// Of a tensor; without a start where it has no memory of its own (wrappers of transforms).
Memory MemoryOf(PyObject* tensor) {
  Memory memory{Ref(PyObject_CallMethodNoArgs(tensor, torch_names.untyped_storage))};
  const Ref& storage = memory.storage;
  Ref address(storage ? PyObject_CallMethodNoArgs(storage.get(), torch_names.data_ptr) : nullptr);
  Ref bytes(address ? PyObject_CallMethodNoArgs(storage.get(), torch_names.nbytes) : nullptr);
  if (bytes) memory.bytes = PyLong_AsSize_t(bytes.get());
  if (bytes) memory.start = static_cast<const char*>(PyLong_AsVoidPtr(address.get()));
  if (PyErr_Occurred() != nullptr) PyErr_Clear(), memory.start = nullptr;
  return memory;
}

bool IsLookedAt(PyObject* tensor) {
  return tensor != nullptr && rt().running && !t_flags.in_tool && !framework().Compiling() && IsPlainTensor(tensor);
}

/// From here on what lies behind the first `head` bytes is what was found.
void Follow(PyObject* tensor, Memory memory, size_t head) {
  const bool on_host = AttrIsTrue(tensor, torch_names.is_cpu) && !interpreter().defer_all;
  if (!on_host && (take_sample == nullptr || AttrIsTrue(tensor, torch_names.is_meta))) return;
  if (memory.start == nullptr || memory.bytes <= head) return;
  Allocation a;
  a.storage = Ref(PyWeakref_NewRef(memory.storage.get(), nullptr));
  if (!a.storage) return PyErr_Clear();
  a.bytes = memory.bytes, a.head = head;
  if (allocations.size() >= look_through_at) EraseDead();
  if (allocations.size() >= kMostAllocations || kept_bytes >= kMostBytes) return;
  if (on_host) {
    Keep(memory.start, &a);
  } else {
    a.sample = Ref(PyObject_CallOneArg(take_sample, memory.storage.get()));
    if (!a.sample) NoteSkip("memory of a device could not be looked at", TakeError());
    if (!a.sample || a.sample.get() == Py_None) return;
  }
  if (const auto old = allocations.find(memory.start); old != allocations.end()) Erase(old);
  kept_bytes += a.kept.size();
  allocations.emplace(memory.start, std::move(a));
}

// Of the tensor that is resized now in this thread.
thread_local const char* start_before = nullptr;
thread_local size_t bytes_before = 0, written_before = 0;

size_t ViewBytes(const TensorView& view) {
  const Elements elements(view);
  return static_cast<size_t>(elements.count) * elements.element;
}

}  // namespace

void AfterAllocation(const CallArgs&, PyObject* result) {
  if (!IsLookedAt(result)) return;
  InTool guard;
  Follow(result, MemoryOf(result), 0);
}

void BeforeResize(const CallArgs& args) {
  start_before = nullptr, bytes_before = written_before = 0;
  if (!IsLookedAt(FirstArgument(args))) return;
  InTool guard;
  const Memory memory = MemoryOf(FirstArgument(args));
  if (memory.start == nullptr || memory.bytes == 0) return;
  const auto count = static_cast<int64_t>(memory.bytes);
  const TensorView all{memory.start, DType::kUInt8, 1, &count};
  const bool on_host = AttrIsTrue(FirstArgument(args), torch_names.is_cpu) && !interpreter().defer_all;
  start_before = memory.start;
  written_before = UnwrittenOf(all, on_host) == Unwritten::kWhole ? 0 : memory.bytes;
  bytes_before = memory.bytes;
}

void AfterResize(const CallArgs&, PyObject* result) {
  if (!IsLookedAt(result)) return;
  InTool guard;
  Memory memory = MemoryOf(result);
  if (memory.bytes <= bytes_before) return;
  if (const auto old = allocations.find(start_before); old != allocations.end()) Erase(old);  // it was moved
  Follow(result, std::move(memory), written_before);
}

void NoteWritten(const TensorView& view, bool on_host) {
  const auto it = FindAllocation(view);
  if (it == allocations.end()) return;
  if (on_host && !it->second.sample) return MarkWritten(&it->second, it->first, view);
  if (view.data == it->first && ViewBytes(view) == it->second.bytes) Erase(it);
}

Unwritten UnwrittenOf(const TensorView& view, bool on_host) {
  auto it = FindAllocation(view);
  if (it == allocations.end()) return Unwritten::kNone;
  const char* start = it->first;
  const Allocation& a = it->second;
  const bool whole = a.head == 0;
  if (!a.sample) return on_host ? OnHost(a, start, view) : Unwritten::kNone;
  const bool same = SameElsewhere(a);
  // Written once, written for ever: its parts are not told apart.
  if (it = allocations.find(start); !same && it != allocations.end()) Erase(it);
  if (!same) return Unwritten::kNone;
  return whole ? Unwritten::kWhole : Unwritten::kPart;
}

void ForgetDeadAllocations() { EraseDead(); }

void SetDeviceSamples(PyObject* take, PyObject* is_same) {
  Py_INCREF(take), Py_INCREF(is_same);
  Py_XSETREF(take_sample, take);
  Py_XSETREF(is_same_sample, is_same);
}

}  // namespace msprobe
