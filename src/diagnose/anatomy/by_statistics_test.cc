#include "diagnose/anatomy/by_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "json/parser.h"

namespace msprobe {
namespace {

struct Numbers {
  double max, min, mean, norm;
};

/// An item as a dump has it.
class DumpedItem {
 public:
  DumpedItem(const Numbers& n, const std::string& dtype = "torch.float32", const std::string& sum = "",
             const char* shape = "[4, 8]") {
    char text[512];
    std::snprintf(text, sizeof text,
                  R"({"type": "torch.Tensor", "dtype": "%s", "shape": %s, "Max": %.17g, "Min": %.17g, "Mean": %.17g,)"
                  R"( "Norm": %.17g, "requires_grad": false%s})",
                  dtype.c_str(), shape, n.max, n.min, n.mean, n.norm,
                  sum.empty() ? "" : (", \"md5\": \"" + sum + "\"").c_str());
    EXPECT_TRUE(ParseJson(text, "item", &doc_).ok());
    Item item;
    item.state = ItemState::kOutput;
    item.suffix = ".output.0";
    item.leaf = &doc_;
    DescribeItem("Functional.linear.0.forward", std::move(item), CompareMode::kTensor, &view_);
  }
  ItemView* operator->() { return &view_; }
  const ItemView& view() const { return view_; }

 private:
  JsonDoc doc_;
  ItemView view_;
};

const Numbers kGolden{2.13456789, -1.87654321, 0.0712345, 5.4321987};

Anatomy AnatomyOfNumbers(const Numbers& target, const Numbers& golden = kGolden,
                         const std::string& dtype = "torch.float32") {
  const DumpedItem a(target, dtype), b(golden, dtype);
  return ExplainByStatistics(a.view(), b.view(), {2, {4, 8}});
}

TEST(AnatomyByStatistics, FactorAndSign) {
  const Numbers& g = kGolden;
  const Anatomy half = AnatomyOfNumbers({g.max / 2, g.min / 2, g.mean / 2, g.norm / 2});
  EXPECT_EQ(half.kind, AnatomyKind::kFactor);
  EXPECT_EQ(half.name, "1/2");
  EXPECT_EQ(half.meanings, (std::vector<std::string>{"world_size", "sqrt_of_dimension"}));
  EXPECT_TRUE(half.statistics);
  EXPECT_EQ(AnatomyOfNumbers({-g.min, -g.max, -g.mean, g.norm}).kind, AnatomyKind::kSign);
  const Anatomy minus = AnatomyOfNumbers({-3 * g.min, -3 * g.max, -3 * g.mean, 3 * g.norm});
  EXPECT_EQ(minus.number, -3);
  EXPECT_FALSE(AnatomyOfNumbers({g.max * 2, g.min * 2.1, g.mean * 2, g.norm * 2}).found());
  EXPECT_FALSE(AnatomyOfNumbers({g.max * 2, g.min * 2, g.mean * 2, g.norm * 2}, g, "torch.int64").found());
  // Two digits agree by chance.
  EXPECT_FALSE(
      AnatomyOfNumbers({g.max * 1.17, g.min * 1.17, g.mean * 1.17, g.norm * 1.17}, g, "torch.bfloat16").found());
}

TEST(AnatomyByStatistics, AConstantSaysNothing) {
  EXPECT_FALSE(AnatomyOfNumbers({2, 2, 2, 11.313708498984761}, {1, 1, 1, 5.656854249492381}).found());
}

TEST(AnatomyByStatistics, Offset) {
  const Numbers& g = kGolden;
  const double c = 0.5, norm = std::sqrt(g.norm * g.norm + 2 * c * 32 * g.mean + 32 * c * c);
  const Anatomy sum = AnatomyOfNumbers({g.max + c, g.min + c, g.mean + c, norm});
  EXPECT_EQ(sum.kind, AnatomyKind::kOffset);
  EXPECT_NEAR(sum.number, 0.5, 1e-9);
  EXPECT_FALSE(AnatomyOfNumbers({g.max + c, g.min + c, g.mean + c, norm * 1.01}).found());
  // Positions from 1 on for those from 0 on, four times 0 to 7.
  const Anatomy ids =
      AnatomyOfNumbers({8, 1, 4.5, std::sqrt(4 * 204.0)}, {7, 0, 3.5, std::sqrt(4 * 140.0)}, "torch.int64");
  EXPECT_EQ(ids.kind, AnatomyKind::kOffset);
  EXPECT_EQ(ids.number, 1);
}

TEST(AnatomyByStatistics, ZerosAndBounds) {
  EXPECT_EQ(AnatomyOfNumbers({0, 0, 0, 0}).kind, AnatomyKind::kZeroed);
  // Values 2, -1.5, 0.5 and -0.25, eight times each.
  const Numbers all{2, -1.5, 0.1875, std::sqrt(8 * (4 + 2.25 + 0.25 + 0.0625))};
  const Numbers cut{2, 0, 0.625, std::sqrt(8 * 4.25)};
  const Anatomy relu = AnatomyOfNumbers(cut, all);
  EXPECT_EQ(relu.kind, AnatomyKind::kClipped);
  EXPECT_EQ(relu.low, 0);
  // Zeros of both signs: the sum falls, too.
  EXPECT_FALSE(AnatomyOfNumbers({2, 0, 0.1, std::sqrt(8 * 4.25)}, all).found());
}

TEST(AnatomyByStatistics, Grid) {
  const Numbers& g = kGolden;
  EXPECT_EQ(AnatomyOfNumbers({2.140625, -1.875, 0.07125, 5.4339}).name, "bfloat16");
  EXPECT_FALSE(AnatomyOfNumbers({2.140625, -1.875, 0.07125, 5.4339}, g, "torch.bfloat16").found());
}

TEST(AnatomyByStatistics, ExtremesOnBothGridsTellNoneOfThemApart) {
  // Those of a sine: 1 in any type.
  const Anatomy both = AnatomyOfNumbers({1, -1, 0.0712345, 4.0012}, {0.99998012, -0.99997034, 0.0712346, 4.0012345});
  EXPECT_EQ(both.kind, AnatomyKind::kGrid);
  EXPECT_EQ(both.name, "bfloat16 or float16");
  EXPECT_TRUE(both.ambiguous);
  EXPECT_EQ(AnatomyText(both, Language::kEnglish),
            "its values were rounded to bfloat16 or float16 on the way, by its statistics");
  EXPECT_EQ(AnatomyText(both, Language::kChinese), "数值在途中被舍入为 bfloat16 或 float16，由统计量得出");
}

TEST(AnatomyByStatistics, OrderIsNeverSure) {
  const DumpedItem a(kGolden, "torch.int64", "aaaa"), b(kGolden, "torch.int64", "bbbb");
  const Anatomy order = ExplainByStatistics(a.view(), b.view(), {});
  EXPECT_EQ(order.kind, AnatomyKind::kOrder);
  EXPECT_TRUE(order.ambiguous);
  // What was computed may as well be rounded otherwise.
  const DumpedItem c(kGolden, "torch.float32", "aaaa"), d(kGolden, "torch.float32", "bbbb");
  EXPECT_FALSE(ExplainByStatistics(c.view(), d.view(), {}).found());
  EXPECT_FALSE(SameStatistics(c.view(), d.view()));
  EXPECT_TRUE(SameStatistics(c.view(), c.view()));
}

TEST(AnatomyByStatistics, ABoundOfFewDecimalsIsOneThatSomebodyWrote) {
  const double bound = static_cast<double>(0.001f);
  const Anatomy out = AnatomyOfNumbers({bound, -bound, 0.0001, 0.005});
  EXPECT_EQ(out.kind, AnatomyKind::kClipped);
  EXPECT_EQ(out.high, bound);
  EXPECT_FALSE(AnatomyOfNumbers({0.0012345678, -0.0012345678, 0.0001, 0.005}).found());
}

TEST(AnatomyByStatistics, WhatAddsUpShowsInTheMeans) {
  const DumpedItem golden({1.5, -1.25, 0.0625, 4}), earlier({1.75, -1.5, 0.03125, 3}), sum({2, -2, 0.09375, 5.5});
  EXPECT_TRUE(MeansAddUp(sum.view(), golden.view(), earlier.view()));
  const DumpedItem other({2, -2, 0.094, 5.5}), large({2, -2, 0.09375, 7.5}), small({2, -2, 0.09375, 0.5});
  EXPECT_FALSE(MeansAddUp(other.view(), golden.view(), earlier.view()));
  EXPECT_FALSE(MeansAddUp(large.view(), golden.view(), earlier.view())) << "no sum is larger than its parts";
  EXPECT_FALSE(MeansAddUp(small.view(), golden.view(), earlier.view()));
  const DumpedItem zero({1.75, -1.5, 1e-9, 3});
  EXPECT_FALSE(MeansAddUp(golden.view(), golden.view(), zero.view())) << "a mean of zero tells nothing";
}

}  // namespace
}  // namespace msprobe
