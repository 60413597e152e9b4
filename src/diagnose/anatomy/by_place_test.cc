#include "diagnose/anatomy/by_place.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace msprobe {
namespace {

std::vector<double> DrawnValues(size_t n) {
  std::vector<double> out;
  double v = 0.37;
  for (size_t i = 0; i < n; ++i) {
    v = std::fmod(v * 997.13 + 0.618, 2.0);
    out.push_back(static_cast<float>(v - 1));
  }
  return out;
}

using From = std::function<int64_t(int64_t)>;

/// As the golden tensor, with `from(i)` for the place whose value comes to place i; -1: zero.
std::vector<double> Moved(const std::vector<double>& golden, const From& from) {
  std::vector<double> out(golden.size());
  for (size_t i = 0; i < golden.size(); ++i) {
    const int64_t at = from(static_cast<int64_t>(i));
    out[i] = at < 0 ? 0 : golden[static_cast<size_t>(at)];
  }
  return out;
}

Anatomy Explain(const std::vector<double>& target, const std::vector<double>& golden, const std::vector<int64_t>& shape,
                DType dtype = DType::kFloat32) {
  const ElementsOf a = ElementsOf::Of(target, shape, dtype), b = ElementsOf::Of(golden, shape, dtype);
  const ValuePair pair(a, b);
  Anatomy out = ExplainByPlace(pair);
  return out.found() ? out : ExplainByEntries(pair);
}

Anatomy AnatomyOf(const std::vector<int64_t>& shape, const From& from) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  const std::vector<double> golden = DrawnValues(static_cast<size_t>(n));
  return Explain(Moved(golden, from), golden, shape);
}

TEST(AnatomyByPlace, AxesOfASquare) {
  const Anatomy square = AnatomyOf({5, 5}, [](int64_t i) { return i % 5 * 5 + i / 5; });
  EXPECT_EQ(square.kind, AnatomyKind::kAxes);
  EXPECT_EQ(square.axes, (std::vector<int>{0, 1}));
  EXPECT_EQ(square.residual, 0);
}

TEST(AnatomyByPlace, ASymmetricSquareIsTheSame) {
  std::vector<double> golden = DrawnValues(25);
  for (size_t i = 0; i < 25; ++i) golden[i] = golden[std::min(i, i % 5 * 5 + i / 5)];
  EXPECT_FALSE(Explain(Moved(golden, [](int64_t i) { return i % 5 * 5 + i / 5; }), golden, {5, 5}).found());
}

TEST(AnatomyByPlace, HeadsMergedWithoutTheTranspose) {
  // [2, 3, 4 * 5] as [2, 4, 3, 5]
  const Anatomy merged = AnatomyOf({2, 3, 20}, [](int64_t i) {
    const int64_t b = i / 60, h = i % 60 / 15, t = i % 15 / 5, d = i % 5;
    return b * 60 + t * 20 + h * 5 + d;
  });
  EXPECT_EQ(merged.kind, AnatomyKind::kAxes);
  EXPECT_EQ(merged.axes, (std::vector<int>{1, 2}));
  EXPECT_EQ(merged.block, 4);
}

TEST(AnatomyByPlace, Rope) {
  const Anatomy pairs = AnatomyOf({3, 16}, [](int64_t i) {
    const int64_t k = i % 8;
    return i - k + k / 2 + k % 2 * 4;
  });
  EXPECT_EQ(pairs.kind, AnatomyKind::kRope);
  EXPECT_EQ(pairs.block, 8);
  EXPECT_EQ(pairs.part.axis, 1);
}

TEST(AnatomyByPlace, RopeOfTheTurnedValues) {
  const std::vector<double> x = DrawnValues(64);
  std::vector<double> halves(64), pairs(64);
  for (size_t i = 0; i < 64; ++i) {
    const size_t base = i / 8 * 8, k = i % 8;
    halves[i] = k < 4 ? -x[base + k + 4] : x[base + k - 4];
    pairs[i] = k % 2 == 0 ? -x[base + k + 1] : x[base + k - 1];
  }
  for (const auto& [target, golden] : {std::pair(halves, pairs), std::pair(pairs, halves)}) {
    const Anatomy rope = Explain(target, golden, {8, 8});
    EXPECT_EQ(rope.kind, AnatomyKind::kRope);
    EXPECT_EQ(rope.block, 8);
  }
}

TEST(AnatomyByPlace, Shifts) {
  const Anatomy late = AnatomyOf({2, 6, 4}, [](int64_t i) { return i / 4 % 6 == 0 ? -1 : i - 4; });
  EXPECT_EQ(late.kind, AnatomyKind::kShift);
  EXPECT_EQ(late.shift, 1);
  EXPECT_EQ(late.part.axis, 1);
  EXPECT_FALSE(late.wraps);
  const Anatomy round = AnatomyOf({2, 6, 4}, [](int64_t i) { return i - i % 24 + (i % 24 + 8) % 24; });
  EXPECT_EQ(round.shift, -2);
  EXPECT_TRUE(round.wraps);
}

TEST(AnatomyByPlace, AMaskIsShifted) {
  std::vector<double> golden(64), target(64);
  for (size_t i = 0; i < 64; ++i) {
    golden[i] = i % 8 > i / 8;
    target[i] = i % 8 > i / 8 + 1;
  }
  const Anatomy mask = Explain(target, golden, {8, 8}, DType::kBool);
  EXPECT_EQ(mask.kind, AnatomyKind::kShift);
  EXPECT_EQ(mask.shift, 1);
}

TEST(AnatomyByPlace, EntriesInAnotherOrder) {
  const int64_t order[] = {2, 0, 1, 3};
  const Anatomy heads = AnatomyOf({2, 3, 20}, [&](int64_t i) { return i - i % 20 + order[i % 20 / 5] * 5 + i % 5; });
  EXPECT_EQ(heads.kind, AnatomyKind::kOrder);
  EXPECT_EQ(heads.block, 5);
  EXPECT_EQ(heads.part.axis, 2);
  EXPECT_EQ(heads.part.entries, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(heads.sources, (std::vector<int64_t>{2, 0, 1}));
  const Anatomy rows = AnatomyOf({6, 7}, [](int64_t i) { return i / 7 == 1 ? i + 14 : i / 7 == 3 ? i - 14 : i; });
  EXPECT_EQ(rows.kind, AnatomyKind::kOrder);
  EXPECT_EQ(rows.part.entries, (std::vector<int64_t>{1, 3}));
}

TEST(AnatomyByPlace, EntriesTwice) {
  const Anatomy twice = AnatomyOf({6, 7}, [](int64_t i) { return i / 7 == 4 ? i - 21 : i; });
  EXPECT_EQ(twice.kind, AnatomyKind::kDuplicated);
  EXPECT_EQ(twice.part.entries, std::vector<int64_t>{4});
  EXPECT_EQ(twice.sources, std::vector<int64_t>{1});
}

TEST(AnatomyByPlace, NothingWhereItDoesNotHold) {
  EXPECT_FALSE(AnatomyOf({6, 7}, [](int64_t i) { return i == 9 ? -1 : i % 7 * 6 + i / 7; }).found());
  EXPECT_FALSE(Explain(std::vector<double>(24, 1), DrawnValues(24), {4, 6}).found());
  EXPECT_FALSE(Explain(DrawnValues(48), Moved(DrawnValues(96), [](int64_t i) { return i; }), {6, 8}).found() &&
               DrawnValues(48) != DrawnValues(96));
  // Small integers are alike everywhere: that each is found again is no order.
  EXPECT_FALSE(Explain({3, 1, 2, 5, 1, 3, 4, 2, 2, 5}, {1, 2, 3, 5, 4, 1, 2, 5, 3, 2}, {10}, DType::kInt64).found());
}

TEST(AnatomyByPlace, Shapes) {
  const std::vector<double> golden = DrawnValues(60);
  const ElementsOf g = ElementsOf::Of(golden, {3, 5, 4});
  std::vector<double> first, turned(60), twice;
  for (size_t i = 0; i < 60; ++i) {
    if (i % 20 < 12) first.push_back(golden[i]);
    turned[i % 20 / 4 * 12 + i / 20 * 4 + i % 4] = golden[i];
  }
  twice = golden;
  twice.insert(twice.end(), golden.begin(), golden.end());
  const Anatomy cut = ExplainShapes(ElementsOf::Of(first, {3, 3, 4}), g);
  EXPECT_EQ(cut.kind, AnatomyKind::kTruncated);
  EXPECT_EQ(cut.part.axis, 1);
  EXPECT_EQ(cut.part.count, 3);
  EXPECT_EQ(ExplainShapes(ElementsOf::Of(turned, {5, 3, 4}), g).kind, AnatomyKind::kAxes);
  EXPECT_EQ(ExplainShapes(ElementsOf::Of(twice, {6, 5, 4}), g).kind, AnatomyKind::kDuplicated);
  // Half of the batch is a split that was meant.
  const ElementsOf batch = ElementsOf::Of(golden, {4, 15});
  EXPECT_FALSE(ExplainShapes(ElementsOf::Of({golden.begin(), golden.begin() + 30}, {2, 15}), batch).found());
  first[5] += 0.1;
  EXPECT_FALSE(ExplainShapes(ElementsOf::Of(first, {3, 3, 4}), g).found());
}

}  // namespace
}  // namespace msprobe
