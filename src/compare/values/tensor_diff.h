// Tensor mode: what measuring the values of a row's two tensors gives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compare/metrics/measure.h"
#include "compare/values/item_view.h"

namespace msprobe {

/// What became of a row; in the order in which it is looked at.
enum class TensorOutcome : uint8_t {
  kNoData,        // the item has no file: it is not a tensor, or none was written
  kNoGoldenData,  // its partner has none
  kUnmatched,     // it has no partner
  kUnreadable,    // a file is missing or damaged
  kEmpty,         // no elements
  kShape,         // shapes differ by more than dimensions of 1
  kNanInf,        // NaN or infinities at different positions
  kCompared,
};

/// One cell of the user's own metrics; its text stays with it.
struct CustomCell {
  StatValue value;
  std::shared_ptr<const std::string> text;

  void SetText(std::string t) {
    text = std::make_shared<const std::string>(std::move(t));
    value = StatValue::Of(std::string_view(*text));
  }
};

struct TensorDiff {
  TensorOutcome outcome = TensorOutcome::kNoData;
  bool scalar = false;             // one element: no cosine, no distance
  MetricCells cells;               // by MetricId
  std::vector<CustomCell> custom;  // of the user's own metrics
  std::string finding;             // the text of kNotCompared
  std::string custom_error;        // what the first of them that failed says
  std::string order;               // in which the dimensions of one side were read; else empty
  std::string note;                // why there are no metrics, or what is special about them; else empty
  TensorMetrics metrics;           // of kCompared and kNanInf; of one and the same file only `identical` and `count`
  /// Size of the difference against that of the tensors: the larger of ||N-B|| / ||.|| and max|N-B| / max|.|. Infinity
  /// when NaN, infinities or shapes differ; negative when the values are not known.
  double error = -1;
  double golden_error = -1;  // the same against the golden tensor alone
};

/// How many entries of the outputs of an op are valid; -1 for all.
struct ValidLengths {
  int64_t target = -1, golden = -1;
};

/// What measures the values of a row. Thread-safe.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// Fills `out` for a row; `golden` is null when it has no partner.
  virtual void Diff(const ItemView& target, const ItemView* golden, TensorDiff* out,
                    const ValidLengths& valid = {}) const = 0;
  /// The lengths that one of the inputs of an op gives its outputs; mostly none.
  virtual int64_t ValidLengthOf(std::string_view, const std::vector<ItemView>&, size_t, bool) const { return -1; }
};

/// True for the columns of tensor mode that the user's own metrics must not repeat.
bool IsTensorModeColumn(std::string_view name);

/// A line for people: "Cosine 1.0, EucDist 0.0, ..., " and the note.
std::string TensorLogText(const TensorDiff& diff);
/// The same as a line of the log, with the name of the item.
std::string TensorLogLine(std::string_view name, const TensorDiff& diff);

}  // namespace msprobe
