// Where the two kinds of results of the older tool differ. Its readers take ours, so both stay as they are.
#pragma once

namespace msprobe {

struct Dialect {
  /// Partners are the next of their kind (inputs, weights, outputs, gradients); else those of one suffix.
  bool by_place = false;
  /// Without a partner the dtype, shape and requires_grad of an item are inconsistent; else only its NaNs count.
  bool judges_alone = false;
  /// A dtype, shape or requires_grad that one side does not have is not judged.
  bool skips_unknown = false;
  /// Only numbers have a difference. Else equal texts have the difference 0, and texts of numbers count as numbers.
  bool numbers_only = false;
  /// Values of different kinds differ though they read alike: null and a missing checksum, a list and its text.
  bool tells_kinds = false;
};

inline constexpr Dialect kTableDialect{};
inline constexpr Dialect kGraphDialect{true, true, true, true, true};

}  // namespace msprobe
