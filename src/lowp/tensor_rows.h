// Tensors of a dump as matrices of float32, whole or a sample of their rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "lowp/formats/scaled_format.h"
#include "tensor/files/tensor_file.h"

namespace msprobe {

/// A tensor of a dump: its file is opened when its values are asked for.
struct RecordedTensor {
  std::string path;
  DType dtype = DType::kUnknown;
  std::vector<int64_t> shape;
  double history = 0;  // the largest magnitude that earlier steps recorded; 0: there are none

  bool there() const { return !path.empty(); }
};

/// `most` of the numbers below `n`, at equal distances; all where they are no more.
std::vector<int64_t> SampleOf(int64_t n, int64_t most);

class OpenTensor {
 public:
  static StatusOr<OpenTensor> Open(const RecordedTensor& tensor);

  const std::vector<int64_t>& shape() const { return tensor().shape; }
  int64_t dim(int from_last) const { return shape()[shape().size() - 1 - static_cast<size_t>(from_last)]; }
  int64_t count() const;
  /// Elements [begin, end) in C order as float32.
  Status Read(int64_t begin, int64_t end, float* out) const;
  /// Of all elements.
  StatusOr<float> Largest() const;
  /// These rows of the tensor as a matrix whose rows have `cols` elements.
  StatusOr<DenseMatrix> Rows(int64_t cols, const std::vector<int64_t>& rows) const;

 private:
  const FileTensor& tensor() const { return file_.tensors()[0]; }
  TensorFile file_;
};

}  // namespace msprobe
