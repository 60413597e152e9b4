#include "compare/values/stat_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "json/parser.h"

namespace msprobe {
namespace {

/// The two cells for two JSON values.
std::string Cells(const char* target, const char* golden, const Dialect& dialect = kTableDialect) {
  JsonDoc a, b;
  EXPECT_TRUE(ParseJson(target, "target", &a).ok());
  EXPECT_TRUE(ParseJson(golden, "golden", &b).ok());
  const StatDiff diff = DiffStats(StatValue::Of(a), StatValue::Of(b), dialect);
  std::string out;
  diff.AppendDiff(&out);
  out += " | ";
  diff.AppendRel(&out);
  return out;
}

std::string TextOf(const char* json) {
  JsonDoc doc;
  EXPECT_TRUE(ParseJson(json, "value", &doc).ok());
  std::string out;
  StatValue::Of(doc).AppendText(&out);
  return out;
}

// Where tables and graphs differ, and where they must not.
TEST(DiffStatsTest, BothDialects) {
  struct Case {
    const char *target, *golden, *table, *graph;
  };
  const Case cases[] = {
      {"1.5", "1.5", "0 | 0", "0.0 | 0.0%"},
      {"3.0", "4.0", "-1.0 | 25.0%", "-1.0 | 25.0%"},
      {"-0.0", "0.0", "-0.0 | inf", "-0.0 | N/A"},
      {"0.5", "0.0", "0.5 | inf", "0.5 | N/A"},
      {"9007199254740993", "9007199254740992", "1.0 | 1.1102230246251565e-14%", "1.0 | 1.1102230246251565e-14%"},
      {"NaN", "NaN", "0 | 0", "Nan | Nan"},
      {"NaN", "1.0", "Nan | Nan", "Nan | Nan"},
      {"Infinity", "Infinity", "0 | 0", "Nan | Nan"},
      {"Infinity", "1.0", "inf | inf", "inf | inf%"},
      {"1.0", "Infinity", "-inf | -inf", "-inf | nan%"},
      {"null", "1.0", "Diff | Diff", "N/A | N/A"},
      {"\"3\"", "\"4\"", "-1.0 | 25.0%", "N/A | N/A"},
      {"true", "false", "Diff | Diff", "N/A | N/A"},
      {"[1, 2]", "[1, 2]", "0 | 0", "N/A | N/A"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Cells(c.target, c.golden), c.table) << c.target << " " << c.golden;
    EXPECT_EQ(Cells(c.target, c.golden, kGraphDialect), c.graph) << c.target << " " << c.golden;
  }
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

TEST(StatValueTest, EqualityIsPythons) {
  const auto same = [](const char* a, const char* b) {
    JsonDoc x, y;
    EXPECT_TRUE(ParseJson(a, "a", &x).ok());
    EXPECT_TRUE(ParseJson(b, "b", &y).ok());
    return SameValue(StatValue::Of(x), StatValue::Of(y));
  };
  EXPECT_TRUE(same("[1, 2]", "[1, 2.0]"));
  EXPECT_TRUE(same("1", "1.0"));
  EXPECT_TRUE(same("0.0", "-0.0"));
  EXPECT_TRUE(same("NaN", "NaN"));
  EXPECT_TRUE(same("null", "\"None\"")) << "tables write null as None";
  EXPECT_TRUE(same("[1, 2]", "\"[1, 2]\"")) << "the text of a list stands for it";
  EXPECT_FALSE(same("9007199254740993", "9007199254740992")) << "integers are compared exactly";
  EXPECT_FALSE(same("18446744073709551615", "-1"));
  EXPECT_FALSE(same("null", "0"));
}

TEST(StatValueTest, KnowsNanAndInfAsText) {
  EXPECT_TRUE(StatValue::Of(std::string_view(" -Inf\t")).IsNanOrInf());
  EXPECT_TRUE(StatValue::Of(std::string_view("NaN")).IsNanOrInf());
  EXPECT_FALSE(StatValue::Of(std::string_view("information")).IsNanOrInf());
  EXPECT_FALSE(StatValue::Of(1.0).IsNanOrInf());
  EXPECT_TRUE(StatValue::Of(-std::numeric_limits<double>::infinity()).IsNanOrInf());
}

TEST(IsFarApartTest, HalfOfTheLargerOne) {
  EXPECT_FALSE(IsFarApart(1, 2));
  EXPECT_TRUE(IsFarApart(1, 2.1));
  EXPECT_TRUE(IsFarApart(-1, 1));
  EXPECT_FALSE(IsFarApart(0, 1e-11)) << "nearly nothing";
  EXPECT_FALSE(IsFarApart(NAN, NAN));
  EXPECT_TRUE(IsFarApart(NAN, 1));
  EXPECT_TRUE(IsFarApart(INFINITY, 1));
}

}  // namespace
}  // namespace msprobe
