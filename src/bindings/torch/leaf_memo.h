// Within one call of a module of the framework's own that calls no other, the same tensors are met several times: as
// input of the module and of its function, as output of both, as parameter and as argument. So are gradients behind a
// node of autograd: by its module and by its function. Their values are read once.
//
// That is safe there and nowhere else. Between two reads only the framework's own code runs, none of the user, and what
// that changes counts up the version of the tensor; elsewhere memory changes without a trace (`.data`, NumPy,
// collectives, fused optimizers).
#pragma once

#include <array>
#include <cstdint>

#include "bindings/python/py.h"
#include "capture/record.h"
#include "tensor/kernels/stats.h"

namespace msprobe {

class LeafMemo {
 public:
  /// Elements from which on a tensor is worth remembering.
  static constexpr int64_t kMinElements = 8192;

  static LeafMemo& OfThread();

  /// A module is called: remembers from here on if it is of that kind, and nothing otherwise.
  void Begin(PyObject* module);
  /// Also forgets.
  void End();

  /// One of our hooks behind a node runs, in this order: for its function, for modules.
  enum class At : uint8_t { kNowhere, kFunction, kModules };
  /// `sequence` is the node's, `hooks` the weak dict that our hook is in. Remembers while the hooks of one run of the
  /// node follow each other and the user has none there.
  void AtNode(At at, uint64_t sequence, PyObject* hooks);

  bool open() const { return open_; }
  /// Copies what is known of the tensor, which `view` shows, into `t`.
  bool Find(PyObject* tensor, const TensorView& view, TensorRecord* t) const;
  /// Remembers the values that `t` holds.
  void Add(PyObject* tensor, const TensorView& view, const TensorRecord& t);

 private:
  struct Entry {
    Ref tensor;  // weak: nothing lives longer, and a new tensor at the address of an old one is another
    int64_t version = 0;
    TensorView view;
    std::array<int64_t, 2 * kMaxDims> dims;
    TensorRecord values;
  };
  bool open_ = false;
  At at_ = At::kNowhere;
  uint64_t sequence_ = 0;
  size_t used_ = 0;
  std::array<Entry, 8> entries_;
};

/// Values that were taken from a memo, since the process began; for tests.
uint64_t LeafMemoHits();

}  // namespace msprobe
