#include "compare/stat_value.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

/// The two cells for two JSON values.
std::string Cells(const char* target, const char* golden) {
  JsonDoc a, b;
  EXPECT_TRUE(ParseJson(target, "target", &a).ok());
  EXPECT_TRUE(ParseJson(golden, "golden", &b).ok());
  StatValue x, y;
  x.Set(a);
  y.Set(b);
  const StatDiff diff = DiffStats(x, y);
  std::string out;
  diff.AppendDiff(&out);
  out += " | ";
  diff.AppendRel(&out);
  return out;
}

std::string TextOf(const char* json) {
  JsonDoc doc;
  EXPECT_TRUE(ParseJson(json, "value", &doc).ok());
  StatValue v;
  v.Set(doc);
  std::string out;
  v.AppendText(&out);
  return out;
}

TEST(DiffStatsTest, Numbers) {
  EXPECT_EQ(Cells("1", "1"), "0 | 0");
  EXPECT_EQ(Cells("3", "4"), "-1.0 | 25.0%");
  EXPECT_EQ(Cells("2.0", "1.0"), "1.0 | 100.0%");
  EXPECT_EQ(Cells("0.5", "0"), "0.5 | inf");
  EXPECT_EQ(Cells("1", "1.0"), "0.0 | 0.0%") << "texts differ, values do not";
  EXPECT_EQ(Cells("-0.0", "0.0"), "-0.0 | inf") << "tables have what the old tool writes; the ruler knows better";
  EXPECT_EQ(Cells("-1e-20", "1e-20"), "-2e-20 | 200.0%");
  EXPECT_EQ(Cells("\"3\"", "\"4\""), "-1.0 | 25.0%") << "numbers in texts count";
}

TEST(DiffStatsTest, LargeIntegersAreSubtractedExactly) {
  EXPECT_EQ(Cells("9007199254740993", "9007199254740992"), "1.0 | 1.1102230246251565e-14%");
  EXPECT_EQ(Cells("18446744073709551615", "-1"), "1.8446744073709552e+19 | 1.8446744073709552e+21%");
}

TEST(DiffStatsTest, NanAndInfinity) {
  EXPECT_EQ(Cells("NaN", "NaN"), "0 | 0");
  EXPECT_EQ(Cells("Infinity", "Infinity"), "0 | 0");
  for (const char* other : {"1", "Infinity", "-Infinity"}) {
    EXPECT_EQ(Cells("NaN", other), "Nan | Nan");
    EXPECT_EQ(Cells(other, "NaN"), "Nan | Nan");
  }
  EXPECT_EQ(Cells("Infinity", "1"), "inf | inf");
  EXPECT_EQ(Cells("Infinity", "-Infinity"), "inf | inf");
  EXPECT_EQ(Cells("-Infinity", "1"), "-inf | -inf");
  EXPECT_EQ(Cells("-Infinity", "Infinity"), "-inf | -inf");
  EXPECT_EQ(Cells("1", "Infinity"), "-inf | -inf");
  EXPECT_EQ(Cells("1", "-Infinity"), "inf | inf");
}

TEST(DiffStatsTest, Texts) {
  EXPECT_EQ(Cells("null", "null"), "0 | 0");
  EXPECT_EQ(Cells("null", "1"), "Diff | Diff");
  EXPECT_EQ(Cells("true", "false"), "Diff | Diff");
  EXPECT_EQ(Cells("true", "true"), "0 | 0");
  EXPECT_EQ(Cells("true", "1"), "Diff | Diff");
  EXPECT_EQ(Cells("\"mean\"", "\"sum\""), "Diff | Diff");
  EXPECT_EQ(Cells("\"cpu\"", "\"npu:0\""), "N/A | N/A");
  EXPECT_EQ(Cells("\"CUDA:1\"", "\"npu:0\""), "N/A | N/A");
  EXPECT_EQ(Cells("\"cpu\"", "\"mean\""), "Diff | Diff");
  EXPECT_EQ(Cells("\"cpu\"", "1"), "Diff | Diff");
  EXPECT_EQ(Cells("\"N/A\"", "1"), "N/A | N/A");
  EXPECT_EQ(Cells("\"-\"", "1"), "Diff | Diff");
  EXPECT_EQ(Cells("\"\"", "1"), "Diff | Diff");
}

TEST(StatValueTest, TextIsPythons) {
  EXPECT_EQ(TextOf("1.0"), "1.0");
  EXPECT_EQ(TextOf("1e-05"), "1e-05");
  EXPECT_EQ(TextOf("500"), "500");
  EXPECT_EQ(TextOf("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(TextOf("NaN"), "Nan");
  EXPECT_EQ(TextOf("\"nan\""), "Nan");
  EXPECT_EQ(TextOf("-Infinity"), "-inf");
  EXPECT_EQ(TextOf("true"), "True");
  EXPECT_EQ(TextOf("null"), "None");
  EXPECT_EQ(TextOf(R"([1, 2.5, "a", null, true, {"k": [NaN]}])"), "[1, 2.5, 'a', None, True, {'k': [nan]}]");
}

}  // namespace
}  // namespace msprobe
