#include "capture/slice_rules.h"

#include <algorithm>

namespace msprobe {

namespace {

struct Range {
  int64_t begin, end;
};

Range RangeOf(const std::vector<SliceRule>& rules, int dim, int64_t length) {
  const auto rule = std::find_if(rules.rbegin(), rules.rend(), [&](const SliceRule& r) {
    return r.dim == dim && (!r.size.has_value() || *r.size == length);
  });
  if (rule == rules.rend()) return {0, length};
  const auto within = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + length : at, 0, length); };
  const int64_t begin = within(rule->begin), end = rule->end.has_value() ? within(*rule->end) : length;
  return {begin, std::max(begin, end)};
}

}  // namespace

int64_t ApplySlices(const std::vector<SliceRule>& rules, int ndim, const int64_t* strides, int64_t* shape) {
  int64_t offset = 0;
  for (int d = 0; d < ndim; ++d) {
    const Range range = RangeOf(rules, d, shape[d]);
    shape[d] = range.end - range.begin;
    offset += shape[d] > 0 ? range.begin * strides[d] : 0;
  }
  return offset;
}

int64_t SliceBegin(const std::vector<SliceRule>& rules, int dim, int64_t length) {
  return RangeOf(rules, dim, length).begin;
}

}  // namespace msprobe
