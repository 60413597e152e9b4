#include "graph/node/field_text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "json/parser.h"

namespace msprobe {
namespace {

std::string TextOf(std::string_view json) {
  JsonDoc doc;
  EXPECT_TRUE(ParseJson(json, "test", &doc).ok()) << json;
  std::string out = "\"";
  AppendField(out, StatValue::Of(doc));
  return out + '"';
}

TEST(Field, IsAlwaysText) {
  EXPECT_EQ(TextOf("null"), "\"null\"");
  EXPECT_EQ(TextOf("true"), "\"True\"");
  EXPECT_EQ(TextOf("500"), "\"500\"");
  EXPECT_EQ(TextOf("18446744073709551615"), "\"18446744073709551615\"");
  EXPECT_EQ(TextOf("0.08934828639030457"), "\"0.08934828639030457\"") << "numbers are not rounded";
  EXPECT_EQ(TextOf("-Infinity"), "\"-inf\"");
  EXPECT_EQ(TextOf("NaN"), "\"nan\"");
  EXPECT_EQ(TextOf("[2, 64]"), "\"[2, 64]\"");
  EXPECT_EQ(TextOf("[0, null, true, \"a\", {\"k\": 1.5}]"), "\"[0, None, True, 'a', {'k': 1.5}]\"");
}

TEST(Field, DropsQuotesAndRoundsDecimalTexts) {
  EXPECT_EQ(TextOf("\"<class 'int'>\""), "\"<class int>\"");
  EXPECT_EQ(TextOf("\"None\""), "\"null\"");
  EXPECT_EQ(TextOf("\"isNone'x\""), "\"isnullx\"");
  EXPECT_EQ(TextOf("\"0.123456789\""), "\"0.123457\"");
  EXPECT_EQ(TextOf("\"12.3456789%\""), "\"12.345679%\"");
  EXPECT_EQ(TextOf("\"0.123456\""), "\"0.123456\"");
  EXPECT_EQ(TextOf("\"-0.123456789\""), "\"-0.123456789\"") << "a sign is not a decimal text";
  EXPECT_EQ(TextOf("\"1e-05%\""), "\"1e-05%\"");
  EXPECT_EQ(TextOf("\"\\u65e5\\\"\""), "\"\\u65e5\\\"\"");
}

TEST(Field, DifferencesKeepIntegers) {
  const auto text = [](const StatValue& a, const StatValue& b) {
    const StatDiff d = DiffStats(a, b, kGraphDialect);
    std::string out;
    AppendDiffText(out, d);
    AppendRelText(out += ' ', d);
    return out;
  };
  const auto num = [](double d) { return StatValue::Of(d); };
  const auto integer = [](int64_t i) { return StatValue::Of(i); };
  EXPECT_EQ(text(integer(3), integer(4)), "-1 25.0%");
  EXPECT_EQ(text(integer(3), num(4)), "-1.0 25.0%");
  EXPECT_EQ(text(integer(3), integer(3)), "0 0.0%");
  EXPECT_EQ(text(num(1), num(3)), "-2.0 66.666667%");
  EXPECT_EQ(text(num(1), num(0)), "1.0 N/A");
  EXPECT_EQ(text(num(NAN), num(0)), "Nan Nan");
  EXPECT_EQ(text(num(INFINITY), num(INFINITY)), "Nan Nan");
  EXPECT_EQ(text(num(INFINITY), num(2)), "inf\t inf%");
  EXPECT_EQ(text(num(2), num(INFINITY)), "-inf\t nan%");
  EXPECT_EQ(text(StatValue::Null(), num(2)), "N/A N/A");
  EXPECT_EQ(text(integer(INT64_MIN), integer(INT64_MAX)), "-18446744073709551615 200.0%");
}

}  // namespace
}  // namespace msprobe
