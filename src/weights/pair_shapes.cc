#include "weights/pair_shapes.h"

#include <fmt/format.h>

#include <algorithm>

namespace msprobe {

bool BringTogether(WeightPair* pair, bool table) {
  WeightTensor a = Squeezed(pair->a), b = Squeezed(pair->b);
  std::string note;
  if (a.transposed != b.transposed) note = "transposed";
  const size_t dims = a.shape.size();
  if (a.shape != b.shape && dims == 2 && b.shape.size() == 2 && a.shape[0] == b.shape[1] && a.shape[1] == b.shape[0]) {
    b = Transposed(std::move(b));
    note = "transposed";
  }
  const bool rows_differ = table && dims > 0 && b.shape.size() == dims && a.shape[0] != b.shape[0] &&
                           std::equal(a.shape.begin() + 1, a.shape.end(), b.shape.begin() + 1);
  if (rows_differ) {
    const int64_t rows = std::min(a.shape[0], b.shape[0]), most = std::max(a.shape[0], b.shape[0]);
    note = fmt::format("padded: rows {} to {} of {} are left out", rows, most - 1, a.shape[0] > rows ? "A" : "B");
    a = SelectRanges(a, 0, {{0, rows}}, "");
    b = SelectRanges(b, 0, {{0, rows}}, "");
  }
  pair->same_shape = a.shape == b.shape;
  if (!pair->same_shape) return false;
  pair->note = note;
  pair->a = std::move(a);
  pair->b = std::move(b);
  return true;
}

}  // namespace msprobe
