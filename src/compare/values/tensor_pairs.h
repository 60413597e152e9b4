// The values of two tensors are read from their files and measured: those of a comparison of two dumps, and single
// files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compare/values/tensor_diff.h"
#include "compare/values/tensor_folder.h"
#include "tensor/files/file_tensor.h"

namespace msprobe {

class CustomMetrics;
class OwnTensor;
class Postprocess;

/// The two folders of a comparison. Thread-safe.
class TensorPairs : public TensorSource {
 public:
  /// `custom`, the user's own metrics, and `postprocess`, what changes tensors, may be null; they outlive the object.
  TensorPairs(const std::string& target_dump, const std::string& golden_dump, CustomMetrics* custom,
              const Postprocess* postprocess = nullptr);
  void Diff(const ItemView& target, const ItemView* golden, TensorDiff* out,
            const ValidLengths& valid = {}) const override;
  int64_t ValidLengthOf(std::string_view op_name, const std::vector<ItemView>& items, size_t count,
                        bool golden) const override;

  const TensorFolder& target() const { return target_; }
  const TensorFolder& golden() const { return golden_; }
  /// The runs are of two frameworks: tensors with the same elements in different shapes are compared by what they hold.
  /// `implementations`: of two programs in one framework, whose dimensions may have another order.
  void CrossFrameworks(bool implementations = false) {
    cross_ = true;
    implementations_ = implementations;
  }
  /// Whether tensors are changed before they are compared.
  bool changes() const { return postprocess_ != nullptr; }

 private:
  void DiffValues(const ItemView& target, const ItemView* golden, const ValidLengths& valid, TensorDiff* out) const;
  Status Measure(const ItemView& target, const ItemView& golden, const ValidLengths& valid, TensorDiff* out) const;
  /// Puts the changed tensor in the place of `tensor`, where something changes it.
  Status Change(const ItemView& item, bool golden, int64_t valid, OwnTensor* own, const FileTensor** tensor,
                TensorDiff* out) const;
  Status MeasureJoined(const ItemView& target, const ItemView& golden, TensorDiff* out) const;

  TensorFolder target_, golden_;
  CustomMetrics* custom_;
  const Postprocess* postprocess_;
  bool cross_ = false, implementations_ = false;
};

/// The cells of two tensors that belong to no dump.json.
TensorDiff DiffTwoTensors(const FileTensor& target, const FileTensor& golden);

/// A list of one element has a distance and shares as well, in tables that know no tensors without dimensions.
void AddListMetrics(const FileTensor& target, TensorDiff* diff);

}  // namespace msprobe
