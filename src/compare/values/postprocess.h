// Tensors that are changed before they are measured: products with calibration matrices, which a file of --config
// names, and outputs of which only a first part is valid.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/files/file_tensor.h"

namespace msprobe {

/// One product: with the matrix to the left or to the right of the tensor.
struct MatmulStep {
  bool left = false;
  std::string path;  // of the matrix: .pt, .npy or safetensors
};

/// What a file of --config asks for, by the data_name of a tensor. Thread-safe once read.
class Postprocess {
 public:
  /// Sections right_matmul, left_matmul (target_tensor_map, golden_tensor_map) and left_right_matmul (the same with
  /// left_ and right_ in front); a map has the path of a matrix and a list of data names. kBadInput with the line.
  static StatusOr<std::unique_ptr<Postprocess>> Read(const std::string& path);

  /// The products of a tensor in their order; null where the file does not name it.
  const std::vector<MatmulStep>* TargetSteps(std::string_view data_name) const { return Steps(target_, data_name); }
  const std::vector<MatmulStep>* GoldenSteps(std::string_view data_name) const { return Steps(golden_, data_name); }
  /// Names that no tensor had so far.
  std::vector<std::string> Unused() const;

 private:
  struct Entry {
    std::vector<MatmulStep> steps;
    mutable std::atomic<bool> used = false;
  };
  using Side = std::map<std::string, Entry, std::less<>>;
  Postprocess() = default;
  static const std::vector<MatmulStep>* Steps(const Side& side, std::string_view data_name);

  Side target_, golden_;
};

/// A tensor in memory, contiguous.
class OwnTensor {
 public:
  OwnTensor() = default;
  OwnTensor(OwnTensor&&) = default;  // a copy would point into the other's bytes
  OwnTensor& operator=(OwnTensor&&) = default;

  const FileTensor& tensor() const { return tensor_; }

  /// The products as numpy.matmul has them, of the tensor without its dimensions of 1. Sums are double; the result is
  /// float32 where nothing wider takes part, else float64. kBadInput where shapes do not fit, for complex numbers and
  /// beyond `kMostProductBytes`.
  static StatusOr<OwnTensor> Product(const FileTensor& tensor, const std::vector<MatmulStep>& steps);
  /// The same tensor with zeros behind the first `valid` entries of its first dimension.
  static StatusOr<OwnTensor> ValidPart(const FileTensor& tensor, int64_t valid);

 private:
  Status Fill(DType dtype, std::vector<int64_t> shape, std::vector<char> bytes);
  std::vector<char> bytes_;
  FileTensor tensor_;
};
inline constexpr uint64_t kMostProductBytes = uint64_t{2} << 30;

/// The keyword that says how much of the outputs of this op is valid ("group_list"); "" for all other ops.
std::string_view ValidLengthKey(std::string_view op_name);
/// The sum of a tensor of integers; -1 for others, and where the sum is none that a length can have.
int64_t ValidLength(const FileTensor& groups);

}  // namespace msprobe
