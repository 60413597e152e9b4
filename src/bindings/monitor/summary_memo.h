// What a module gives another takes: one tensor is read as the output of a module, as the input of the next three and
// as the output of the module around them. Its values are taken once.
//
// A tensor is the same while it lives and its version has not changed; what changes memory without counting (`.data`,
// NumPy, collectives) nearly always changes one of its lines that are compared, too: one of each 4 KiB, at most about
// 1,000.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "bindings/python/host_tensor.h"
#include "bindings/python/py.h"
#include "monitor/tensor_summary.h"

namespace msprobe {

class SummaryMemo {
 public:
  /// Null: it has not been read lately, or has changed.
  const TensorSummary* Find(PyObject* tensor, const TensorLook& look) const;
  void Add(PyObject* tensor, const TensorLook& look, const TensorSummary& summary);
  void Clear();

 private:
  struct Entry {
    Ref tensor;  // weak
    int64_t count = 0, version = 0;
    DType dtype = DType::kUnknown;
    uint64_t sample = 0;
    TensorSummary summary;
  };
  static constexpr size_t kEntries = 32;
  std::array<const char*, kEntries> data_{};  // of the entries: what is looked through lies together
  std::array<Entry, kEntries> entries_;
  size_t next_ = 0;
};

}  // namespace msprobe
