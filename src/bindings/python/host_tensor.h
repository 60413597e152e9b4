// Tensors in memory that may be read here: what is looked at, recorded and saved of them in every framework.
#pragma once

#include <string>

#include "bindings/python/py.h"
#include "bindings/python/tensor_record.h"
#include "capture/record.h"
#include "tensor/kernels/tensor_view.h"

namespace msprobe {

/// What a tensor shows of itself; the pointers live as long as the tensor, `own` and `part` as long as this.
struct TensorLook {
  const char* data = nullptr;
  DType dtype = DType::kUnknown;
  bool on_host = false;
  int32_t device_type = 0, device = 0;  // as DLPack numbers them; 0: not known
  int ndim = 0;
  const int64_t* shape = nullptr;
  const int64_t* strides = nullptr;
  int64_t count = 0;
  int64_t own[2 * kMaxDims];
  int64_t part[kMaxDims];  // the shape, when only a part is recorded

  TensorView view() const { return {data, dtype, ndim, shape, strides}; }
  void Count();
};

/// What the configuration wants of it.
void TakePart(TensorLook* look);

/// Runs `work` without the GIL when there is much to do.
template <typename Work>
void WithoutGilFor(int64_t elements, const Work& work) {
  constexpr int64_t kReleaseGilElements = 100'000;
  if (elements < kReleaseGilElements) return work();
  const GilReleased released;
  work();
}

/// Keeps what SavePending() needs to save the tensor that is recorded next.
void HoldTensor(Record* record, PyObject* tensor, const TensorLook& look);
/// Saves it; when it has changed since that is counted instead.
void SaveHeldTensor(Record* record, const HeldValue& value, const std::string& name);

/// A tensor that Python made of an unusual one; `file` with ending. False: it is not saved.
bool SavePlainTensor(PyObject* tensor, const std::string& file);

/// (Max, Min, Mean, Norm, CRC-32 text) of a plain tensor, or null with a Python error. New reference.
PyObject* StatisticsOf(PyObject* tensor);

}  // namespace msprobe
