// Where else the rows of a weight lie.
#pragma once

#include <unordered_map>

#include "weights/fingerprint/whole_prints.h"

namespace msprobe {

struct PrintRange {
  int64_t begin = 0, end = 0;
};
/// Rows of B that are those of another place of A.
struct MovedRows {
  PrintRange rows;
  std::string from;  // label in A
  int64_t from_row = 0;
};

/// All rows of a model by their hashes.
class RowIndex {
 public:
  explicit RowIndex(const WholeModel& model);
  /// Where rows `differ` of `b` lie, if most of them lie somewhere: in `own` (its partner) first.
  std::vector<MovedRows> Find(const WholePrint& b, const WholePrint* own, const std::vector<int64_t>& differ) const;

 private:
  struct Place {
    uint32_t weight, row;
  };
  std::vector<MovedRows> FindVector(const WholePrint& b, const WholePrint* own) const;

  const WholeModel& model_;
  std::unordered_map<uint64_t, Place> rows_;
  std::unordered_map<uint64_t, uint32_t> vectors_;
};

}  // namespace msprobe
