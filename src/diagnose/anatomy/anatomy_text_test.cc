#include <gtest/gtest.h>

#include "diagnose/anatomy/anatomy.h"
#include "json/writer.h"

namespace msprobe {
namespace {

std::string JsonOf(const Anatomy& anatomy) {
  JsonWriter json;
  WriteAnatomy(&json, anatomy);
  return json.Take();
}

TEST(AnatomyText, SaysTheFactorAndWhatItMayBe) {
  Anatomy a;
  a.kind = AnatomyKind::kFactor;
  a.item = "output.0";
  a.number = 8;
  a.name = "8";
  a.meanings = {"world_size", "size_of_dimension"};
  a.residual = 0.61;
  EXPECT_EQ(AnatomyText(a, Language::kEnglish),
            "output.0: it is 8 (the number of ranks or the size of a dimension) times the golden value; undone, 0.61 "
            "rounding units are left");
  EXPECT_EQ(AnatomyText(a, Language::kChinese),
            "output.0：为标杆值的 8 倍（rank 数或某一维的大小）；还原后剩余 0.61 个舍入单位");
  a.statistics = true;
  EXPECT_EQ(AnatomyText(a, Language::kChinese), "output.0：为标杆值的 8 倍（rank 数或某一维的大小），由统计量得出");
}

TEST(AnatomyText, SaysWhichEntries) {
  Anatomy a;
  a.kind = AnatomyKind::kOrder;
  a.part = {1, 4, 2, {0, 3}};
  a.sources = {3, 0};
  a.block = 8;
  EXPECT_EQ(AnatomyText(a, Language::kEnglish),
            "blocks of 8 of axis 1 are in a different order (0 <- 3, 3 <- 0); undone, it is equal");
  a.kind = AnatomyKind::kZeroed;
  EXPECT_EQ(AnatomyText(a, Language::kEnglish), "it is zero, in 2 of 4 entries of axis 1 (0, 3)");
}

TEST(AnatomyText, OnlyAnEarlierStepMakesAValueStale) {
  Anatomy a;
  a.kind = AnatomyKind::kStale;
  a.source = "step 0";
  EXPECT_EQ(AnatomyText(a, Language::kEnglish), "it is stale: it equals that of step 0; undone, it is equal");
  a.source = "Tensor.__mul__.14.forward";
  EXPECT_EQ(
      AnatomyText(a, Language::kEnglish),
      "it equals that of Tensor.__mul__.14.forward: an older value, or one taken for another; undone, it is equal");
}

TEST(AnatomyText, WhatIsNotExplainedIsNotSaid) {
  EXPECT_EQ(AnatomyText({}, Language::kEnglish), "");
  EXPECT_EQ(JsonOf({}), R"({"kind": "unexplained"})");
}

TEST(AnatomyText, EveryKindHasANameAndASentence) {
  for (int k = 1; k <= static_cast<int>(AnatomyKind::kNotFinite); ++k) {
    Anatomy a;
    a.kind = static_cast<AnatomyKind>(k);
    EXPECT_NE(AnatomyKindName(a.kind), "");
    EXPECT_NE(AnatomyText(a, Language::kEnglish), "");
    EXPECT_NE(AnatomyText(a, Language::kChinese), AnatomyText(a, Language::kEnglish));
    EXPECT_NE(JsonOf(a).find("\"parameter\""), std::string::npos);
  }
}

}  // namespace
}  // namespace msprobe
