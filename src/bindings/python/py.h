// Small helpers over the C API of Python.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace msprobe {

/// Owns one reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* stolen) : p_(stolen) {}
  static Ref Borrow(PyObject* p) {
    Py_XINCREF(p);
    return Ref(p);
  }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(Ref&& o) noexcept {
    Py_XSETREF(p_, std::exchange(o.p_, nullptr));
    return *this;
  }
  Ref(const Ref& o) : p_(o.p_) { Py_XINCREF(p_); }
  Ref& operator=(const Ref& o) {
    Py_XINCREF(o.p_);
    Py_XSETREF(p_, o.p_);
    return *this;
  }
  ~Ref() { Py_XDECREF(p_); }
  PyObject* get() const { return p_; }
  PyObject* release() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

/// What a weak reference refers to.
inline Ref WeakTarget(PyObject* reference) {
#if PY_VERSION_HEX >= 0x030d0000
  PyObject* object = nullptr;
  if (PyWeakref_GetRef(reference, &object) < 0) PyErr_Clear();
  return Ref(object);
#else
  PyObject* object = PyWeakref_GetObject(reference);
  return object == Py_None ? Ref() : Ref::Borrow(object);
#endif
}

/// Keeps a raised exception aside while our own code runs.
class ErrorStash {
 public:
  ErrorStash() { PyErr_Fetch(&type_, &value_, &trace_); }
  ~ErrorStash() { PyErr_Restore(type_, value_, trace_); }
  ErrorStash(const ErrorStash&) = delete;
  ErrorStash& operator=(const ErrorStash&) = delete;

 private:
  PyObject *type_, *value_, *trace_;
};

/// Without the GIL while it lives, also when an exception ends that.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased() { PyEval_RestoreThread(state_); }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

/// The T of this thread. T may hold Python objects: a thread may end without the GIL, so what it leaves is freed later.
template <typename T>
T& PerThread() {
  struct Entry {
    T value;
    std::atomic<bool> ended{false};
  };
  struct Holder {
    Entry* entry = nullptr;
    ~Holder() {
      if (entry != nullptr) entry->ended = true;
    }
  };
  static auto* all = new std::vector<Entry*>;
  thread_local Holder holder;  // NOLINT(clang-diagnostic-exit-time-destructors): touches nothing of Python
  if (holder.entry == nullptr) {
    auto fresh = std::make_unique<Entry>();
    std::vector<Entry*> ended;
    ended.reserve(all->size());
    all->reserve(all->size() + 1);  // nothing fails for lack of memory from here on
    std::erase_if(*all, [&](Entry* e) { return e->ended && (ended.push_back(e), true); });
    all->push_back(holder.entry = fresh.release());
    for (Entry* e : ended) delete e;
  }
  return holder.entry->value;
}

/// Text of the raised exception ("TypeError: ..."), which is cleared.
std::string TakeError();

/// True when attribute `name` of `o` is True; an error counts as false.
bool AttrIsTrue(PyObject* o, PyObject* name);
/// -1: it has none, or none that is a whole number.
int64_t AttrAsInteger(PyObject* o, PyObject* name);

/// The attribute of an attribute ("nn.Parameter"). New reference; null without an error when one of them is missing.
PyObject* Attribute(PyObject* owner, const std::string& path);

/// The text of a str, which keeps it; empty, maybe with an error, for everything else.
std::string_view TextOf(PyObject* text);

/// The integers of a tuple of at most `most`; false, maybe with an error, when it is none.
bool IntegersOf(PyObject* tuple, size_t most, int64_t* out, int* count);

}  // namespace msprobe
