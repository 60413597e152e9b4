// Tensor mode: the values of a row's two tensors are read from their files and measured.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compare/item_view.h"
#include "compare/tensor_folder.h"
#include "tensor/file_tensor.h"
#include "tensor/metrics.h"

namespace msprobe {

class CustomMetrics;
class OwnTensor;
class Postprocess;

enum Metric : uint8_t {
  kCosine,
  kEucDist,
  kMaxAbsErr,
  kMaxRelativeErr,
  kOneThousandthRatio,
  kFiveThousandthsRatio,
  kMetricCount
};
inline constexpr std::array<std::string_view, kMetricCount> kMetricNames = {
    "Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio"};

/// One cell of the metric columns.
struct MetricCell {
  enum class Kind : uint8_t { kUnsupported, kNumber, kNan, kNA, kShapeUnmatched };
  Kind kind = Kind::kUnsupported;
  double value = 0;
  bool IsNumber() const { return kind == Kind::kNumber; }
  /// "unsupported", "Nan", "N/A", "shape unmatched", or the number as Python writes it.
  void AppendText(std::string* out) const;
};

/// What became of a row; in the order in which it is looked at.
enum class TensorOutcome : uint8_t {
  kNoData,        // the item has no file: it is no tensor, or none was written
  kNoGoldenData,  // its partner has none
  kUnmatched,     // it has no partner
  kUnreadable,    // a file is missing or damaged
  kEmpty,         // no elements
  kShape,         // shapes differ by more than dimensions of 1
  kNanInf,        // NaN or infinities at different positions
  kCompared,
};

struct TensorDiff {
  TensorOutcome outcome = TensorOutcome::kNoData;
  bool scalar = false;  // one element: no cosine, no distance
  std::array<MetricCell, kMetricCount> cells;
  std::vector<StatValue> custom;  // cells of the user's own metrics
  std::string finding;            // the text of kNotCompared
  std::string custom_error;       // what the first of them that failed says
  std::string note;               // why there are no metrics, or what is special about them; else empty
  TensorMetrics metrics;          // of kCompared and kNanInf; of one and the same file only `identical` and `count`
  /// Size of the difference against that of the tensors: the larger of ||N-B|| / ||.|| and max|N-B| / max|.|. Infinity
  /// when NaN, infinities or shapes differ; negative when the values are not known.
  double error = -1;
};

/// How many entries of the outputs of an op are valid; -1 for all.
struct ValidLengths {
  int64_t target = -1, golden = -1;
};

/// The two folders of a comparison. Thread-safe.
class TensorPairs {
 public:
  /// `custom`, the user's own metrics, and `postprocess`, what changes tensors, may be null; they outlive the object.
  TensorPairs(const std::string& target_dump, const std::string& golden_dump, CustomMetrics* custom,
              const Postprocess* postprocess = nullptr);
  /// Fills `out` for a row; `golden` is null when it has no partner.
  void Diff(const ItemView& target, const ItemView* golden, TensorDiff* out, const ValidLengths& valid = {}) const;
  /// The same for an op with these inputs: the length that one of them gives its outputs; mostly -1.
  int64_t ValidLengthOf(std::string_view op_name, const std::vector<ItemView>& items, size_t count,
                        const TensorFolder& folder) const;

  const TensorFolder& target() const { return target_; }
  const TensorFolder& golden() const { return golden_; }

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
};

/// True for the columns of tensor mode that the user's own metrics must not repeat.
bool IsTensorModeColumn(std::string_view name);

/// A line for people: "Cosine 1.0, EucDist 0.0, ..., " and the note.
std::string TensorLogText(const TensorDiff& diff);

}  // namespace msprobe
