// Bytes of a result as float64 numbers.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "tensor/kernels/dtype.h"

namespace msprobe {

/// Complex numbers are pairs of real ones.
DType RealTypeOf(DType t);
/// Numbers where they lie if they are float64 already, or else converted.
class ResultNumbers {
 public:
  ResultNumbers() = default;
  explicit ResultNumbers(std::vector<double> values)
      : own_(std::move(values)), data_(own_.data()), size_(own_.size()) {}
  ResultNumbers(const double* data, size_t size) : data_(data), size_(size) {}
  ResultNumbers(ResultNumbers&&) = default;
  ResultNumbers& operator=(ResultNumbers&&) = default;
  const double* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  double operator[](size_t i) const { return data_[i]; }

 private:
  std::vector<double> own_;
  const double* data_ = nullptr;
  size_t size_ = 0;
};
/// Those of `bytes`, which stay where they are as long as this is used.
ResultNumbers NumbersAt(std::string_view bytes, DType dtype);

/// The values of float64, float32, float16 and bfloat16, and of complex numbers of these.
std::vector<double> FloatsOf(std::string_view bytes, DType dtype);

}  // namespace msprobe
