// Within one hook nothing but our own code runs: memory that stands there at several places (`addcmul_(g, g)`, views of
// one gradient) has one content, and is read once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "capture/record.h"
#include "tensor/kernels/tensor_view.h"

namespace msprobe {

class ReadOnce {
 public:
  /// Elements from which on memory is worth remembering.
  static constexpr int64_t kMinElements = 4096;

  /// What a hook of another number has read is forgotten.
  void Enter(uint64_t hook);
  /// Copies what was read of the `count` elements of `view` into `t`. Only of elements that lie in the order of C, for
  /// their shape changes nothing of their values.
  bool Find(const TensorView& view, int64_t count, TensorRecord* t) const;
  void Add(const TensorView& view, int64_t count, const TensorRecord& t);

 private:
  struct Entry {
    const void* data = nullptr;
    DType dtype = DType::kUnknown;
    int64_t count = 0;
    TensorRecord values;
  };
  uint64_t hook_ = 0;
  size_t used_ = 0;
  std::array<Entry, 8> entries_;
};

/// Values alone, with what says which of them there are.
void CopyValues(const TensorRecord& from, TensorRecord* to);

}  // namespace msprobe
