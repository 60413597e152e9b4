#include "capture/slice_rules.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

struct Sliced {
  int64_t shape[2], offset;
};

Sliced Apply(const std::vector<SliceRule>& rules) {
  const int64_t strides[] = {10, 1};
  Sliced out{{6, 10}, 0};
  out.offset = ApplySlices(rules, 2, strides, out.shape);
  return out;
}

void Expect(const std::vector<SliceRule>& rules, int64_t rows, int64_t columns, int64_t offset) {
  const Sliced s = Apply(rules);
  EXPECT_EQ(s.shape[0], rows);
  EXPECT_EQ(s.shape[1], columns);
  EXPECT_EQ(s.offset, offset);
}

TEST(Slices, WorkAsIndexingInPython) {
  Expect({}, 6, 10, 0);
  Expect({{0, {}, 2, 4}}, 2, 10, 20);
  Expect({{1, {}, -3, {}}}, 6, 3, 7);
  Expect({{0, {}, 1, -1}, {1, {}, 2, 100}}, 4, 8, 12);
  Expect({{0, {}, -100, 2}}, 2, 10, 0);
  Expect({{0, {}, 5, 2}}, 0, 10, 0);
  Expect({{0, {}, 6, {}}}, 0, 10, 0);
  Expect({{2, {}, 1, 2}}, 6, 10, 0);  // no such dimension
}

TEST(Slices, SizesChooseTensorsAndTheLastRuleCounts) {
  Expect({{0, 7, 1, 2}}, 6, 10, 0);
  Expect({{0, 6, 1, 2}}, 1, 10, 10);
  Expect({{0, {}, 0, 3}, {0, 6, 4, 6}}, 2, 10, 40);
  Expect({{0, {}, 0, 3}, {0, 7, 4, 6}}, 3, 10, 0);
}

}  // namespace
}  // namespace msprobe
