#include "view/file/vis_records.h"

namespace msprobe::view {

Overflow OverflowOf(std::string_view text) {
  if (text == "critical") return Overflow::kCritical;
  if (text == "high") return Overflow::kHigh;
  if (text == "medium") return Overflow::kMedium;
  return Overflow::kNone;
}

}  // namespace msprobe::view
