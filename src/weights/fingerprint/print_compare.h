// Two fingerprints compared: are the weights bit-equal, and if not, what is where they should be?
#pragma once

#include "weights/fingerprint/moved_rows.h"

namespace msprobe {

enum class PrintVerdict : uint8_t {
  kEqual,
  kOtherPrecision,  ///< different types: bits say nothing
  kCannot,          ///< cut or stored so that hashes cannot be compared
  kNotSeen,         ///< ranks or buckets are missing, and what is there is equal
  kOnlyA,
  kOnlyB,
  kShape,
  kCopies,  ///< ranks of one side hold different copies
  kDiffers,
};
std::string_view PrintVerdictText(PrintVerdict v);
inline bool IsFinding(PrintVerdict v) { return v >= PrintVerdict::kOnlyA; }

struct PrintDiff {
  PrintVerdict verdict = PrintVerdict::kEqual;
  std::string role, a, b;  // labels; "" where a side has none
  DType dtype_a = DType::kUnknown, dtype_b = DType::kUnknown;
  std::vector<int64_t> shape_a, shape_b;
  NoPrint none = NoPrint::kNone;
  int64_t rows = 0, seen = 0, differ = 0;
  int64_t head_rows = 0;           // rows of a head; 0 where the weight has none
  std::vector<PrintRange> ranges;  // that differ, the first of them
  std::vector<MovedRows> moved;
  std::string earlier;  // the fingerprint of the history that B's rows are
  std::optional<CopyDifference> copies;
  std::vector<Message> notes;
};

struct PrintComparison {
  std::vector<PrintDiff> weights;
  std::vector<std::string> left_out;  // buffers that one side has
  size_t Count(PrintVerdict v) const;
};

/// `history`: earlier fingerprints, the newest first.
PrintComparison ComparePrints(WholeModel* a, WholeModel* b, const std::vector<WholeModel>& history);

}  // namespace msprobe
