#include "graph/value.h"

#include <gtest/gtest.h>

#include <cmath>

namespace msprobe {
namespace {

std::string TextOf(std::string_view json) {
  JsonDoc doc;
  EXPECT_TRUE(ParseJson(json, "test", &doc).ok()) << json;
  std::string out = "\"";
  AppendField(out, Value::Of(doc));
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
  EXPECT_EQ(TextOf("\"-0.123456789\""), "\"-0.123456789\"") << "a sign is no decimal text";
  EXPECT_EQ(TextOf("\"1e-05%\""), "\"1e-05%\"");
  EXPECT_EQ(TextOf("\"\\u65e5\\\"\""), "\"\\u65e5\\\"\"");
}

TEST(SameValue, FollowsPython) {
  JsonDoc list, other;
  ASSERT_TRUE(ParseJson("[1, 2]", "test", &list).ok());
  ASSERT_TRUE(ParseJson("[1, 2.0]", "test", &other).ok());
  EXPECT_TRUE(SameValue(Value::Of(list), Value::Of(other)));
  EXPECT_TRUE(SameValue(Value::Of(int64_t{1}), Value::Of(1.0)));
  EXPECT_FALSE(SameValue(Value::Of(int64_t{1}), Value::Of(std::string_view("1"))));
  EXPECT_FALSE(SameValue(Value::Of(list), Value::Of(std::string_view("[1, 2]"))));
  EXPECT_TRUE(SameValue(Value::Null(), Value::Null()));
  EXPECT_FALSE(SameValue(Value::Of(std::nan("")), Value::Of(std::nan(""))));
}

TEST(Value, KnowsInfAndNanAsText) {
  EXPECT_TRUE(Value::Of(std::string_view(" -Inf\t")).IsInfOrNan());
  EXPECT_TRUE(Value::Of(std::string_view("NaN")).IsInfOrNan());
  EXPECT_FALSE(Value::Of(std::string_view("information")).IsInfOrNan());
  EXPECT_FALSE(Value::Of(1.0).IsInfOrNan());
  EXPECT_TRUE(Value::Of(-INFINITY).IsInfOrNan());
}

}  // namespace
}  // namespace msprobe
