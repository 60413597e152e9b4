// Two tensors under examination: their elements as numbers, where they differ, and what rounding of their dtype is.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tensor/files/file_tensor.h"
#include "tensor/kernels/layout.h"

namespace msprobe {

/// What a dtype rounds by. All three are 0 for integers and truth values.
struct RoundingOf {
  double unit = 0;       // largest relative error of one rounding
  double tolerance = 0;  // of an element, relative to the larger of itself and the root mean square
};
RoundingOf RoundingOfDType(DType dtype);

/// Elements by their index in C order. Up to kMostHeld of them are held as numbers; beyond, those that are asked for
/// are read where they lie.
class ElementsOf {
 public:
  static constexpr int64_t kMostHeld = int64_t{1} << 18;
  /// Nothing for types that have no numbers, complex ones included, and for tensors without elements.
  /// Without `hold` none is held: of a tensor of which the first few elements may be enough.
  static std::optional<ElementsOf> Open(const FileTensor& tensor, bool hold = true);
  double operator[](int64_t i) const { return held_.empty() ? Read(i) : held_[static_cast<size_t>(i)]; }
  int64_t size() const { return size_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  bool held() const { return !held_.empty(); }
  /// Those of numbers, for tests.
  static ElementsOf Of(std::vector<double> values, std::vector<int64_t> shape, DType dtype = DType::kFloat32);

 private:
  double Read(int64_t i) const;
  std::vector<double> held_;
  std::vector<int64_t> shape_, strides_;
  const char* data_ = nullptr;
  DType dtype_ = DType::kUnknown;
  int64_t size_ = 0;
  bool in_order_ = false;  // in memory as in C order
};

/// Target and golden of one shape, and which elements are looked at: all up to kMostHeld, else kRuns runs of kRun
/// elements that are spread over the tensor.
class ValuePair {
 public:
  static constexpr int64_t kRuns = 512, kRun = 64;
  /// Both outlive the object.
  ValuePair(const ElementsOf& target, const ElementsOf& golden);

  double t(int64_t i) const { return target_[i]; }
  double g(int64_t i) const { return golden_[i]; }
  const std::vector<int64_t>& shape() const { return target_.shape(); }
  int64_t size() const { return target_.size(); }
  int64_t looked() const { return all_ ? size() : static_cast<int64_t>(places_.size()); }
  int64_t Place(int64_t k) const { return all_ ? k : places_[static_cast<size_t>(k)]; }
  /// Places that are looked at and differ by more than rounding.
  const std::vector<int64_t>& differing() const { return differing_; }
  const RoundingOf& rounding() const { return rounding_; }
  DType dtype() const { return dtype_; }  // the coarser one
  bool same_dtype() const { return target_.dtype() == golden_.dtype(); }
  double rms() const { return rms_; }  // root mean square of the golden side, but for what is huge beside the rest
  /// Whether a value is `expected` but for rounding. NaN is NaN. `size` is that of a number on the way, by which the
  /// value was rounded as well.
  bool Agrees(double value, double expected, double size = 0) const;
  /// What rounding is relative to.
  double ScaleOf(double expected, double size) const;
  /// That for the element in the same place.
  bool AgreesAt(int64_t i) const { return Agrees(t(i), g(i)); }

 private:
  double UsualSize() const;
  const ElementsOf &target_, &golden_;
  bool all_;
  std::vector<int64_t> places_, differing_;
  RoundingOf rounding_;
  DType dtype_;
  double rms_ = 0;
};

/// What is left between values and what they are said to be.
class Residual {
 public:
  explicit Residual(const ValuePair& pair) : pair_(pair) {}
  /// False when it is more than rounding.
  bool Add(double value, double expected, double size = 0);
  int64_t count() const { return count_; }
  /// The largest one, in rounding units.
  double units() const { return units_; }
  /// Enough values that differ from each other have been seen to believe it.
  bool Tells() const { return distinct_.size() >= kTelling; }
  size_t distinct() const { return distinct_.size(); }

 private:
  static constexpr size_t kTelling = 4;
  const ValuePair& pair_;
  int64_t count_ = 0;
  double units_ = 0;
  std::vector<double> distinct_;
};

/// Strides of a C-ordered shape.
std::vector<int64_t> StridesOf(const std::vector<int64_t>& shape);

}  // namespace msprobe
