#include "view/file/cells.h"

#include <gtest/gtest.h>

namespace msprobe::view {
namespace {

TEST(Cells, RowsKeepOrderAndDigits) {
  const auto rows =
      ParseRows(R"({"b":{"z":"1","a":1.0000000000000001,"n":null,"t":true,"e":-1e-7,"u":"\u00e9"},"a":{}})");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "b");
  const std::vector<std::pair<std::string, std::string>> want{
      {"z", "1"}, {"a", "1.0000000000000001"}, {"n", "null"}, {"t", "True"}, {"e", "-1e-7"}, {"u", "\xc3\xa9"}};
  EXPECT_EQ(rows[0].values, want);
  EXPECT_EQ(rows[1].name, "a");
  EXPECT_TRUE(rows[1].values.empty());
}

TEST(Cells, RowsAcceptNanAndNestedValues) {
  const auto rows = ParseRows(R"({"x":{"Max":NaN,"Min":-Infinity,"l":[true,"a"],"after":"y"}})");
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_EQ(rows[0].values.size(), 4u);
  EXPECT_EQ(rows[0].values[0].first, "Max");
  EXPECT_EQ(rows[0].values[0].second, "NaN");
  EXPECT_EQ(rows[0].values[1].second, "-Infinity");
  EXPECT_EQ(rows[0].values[2].second, R"([true,"a"])");
  EXPECT_EQ(rows[0].values[3].second, "y");
}

TEST(Cells, RowThatIsNoObjectIsAValue) {
  const auto rows = ParseRows(R"({"x":"null"})");
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_EQ(rows[0].values.size(), 1u);
  EXPECT_EQ(rows[0].values[0].second, "null");
}

TEST(Cells, MalformedIsEmpty) {
  for (const char* bad : {"", "{", "[]", "null", "{\"a\":{\"b\":}}", "\xff\xfe", "{\"a\":{}} x"}) {
    EXPECT_TRUE(ParseRows(bad).empty()) << bad;
  }
  const std::string deep = "{\"a\":" + std::string(200000, '[') + std::string(200000, ']') + "}";
  EXPECT_TRUE(ParseRows(deep).empty());
  EXPECT_TRUE(ObjectText(deep).empty());
  EXPECT_TRUE(ParseTexts("{\"a\":1}").empty());
  EXPECT_TRUE(ParseInts("[\"a\", 1.5]").empty());
}

TEST(Cells, Lists) {
  EXPECT_EQ(ParseTexts(R"(["a\nb","c"])"), (std::vector<std::string>{"a\nb", "c"}));
  EXPECT_EQ(ParseInts("[0, 3, -1]"), (std::vector<int64_t>{0, 3, -1}));
}

TEST(Cells, NumbersBeyondAnyRange) {
  const auto rows = ParseRows(R"({"a":{"x":1e-2147483639,"y":1e999999999999,"z":-0.0e-2147483648}})");
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_EQ(rows[0].values.size(), 3u);
  EXPECT_EQ(rows[0].values[0].second, "1e-2147483639");
  EXPECT_EQ(rows[0].values[1].second, "1e999999999999");
  const auto mixed = ParseRows(R"({"a\\":{"x\"1":-Infinity,"y":"2 and 3","z":[1e400,-5]}})");
  ASSERT_EQ(mixed.size(), 1u);
  EXPECT_EQ(mixed[0].name, "a\\");
  ASSERT_EQ(mixed[0].values.size(), 3u);
  EXPECT_EQ(mixed[0].values[0].first, "x\"1");
  EXPECT_EQ(mixed[0].values[1].second, "2 and 3");
  EXPECT_TRUE(ParseRows(R"({"a":1e400, "b":})").empty());
  EXPECT_EQ(ObjectText(R"({"a":1e-2147483639})"), R"({"a":1e-2147483639})");
  EXPECT_EQ(ParseInts("[1e-2147483639, 99999999999999999999, 5]"), std::vector<int64_t>{5});
}

TEST(Cells, OnlyWhatABrowserParsesIsSentOn) {
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(ObjectText("{\"a\": {}}\0\n{}"sv), "");
  for (const char* number : {"01", "1.", "-", "1e", "+1", "1-1", "1e+", "0x1", "1.e5", "--1", "1e400.5"}) {
    // The second number is beyond any double, and no reason to refuse.
    EXPECT_EQ(ObjectText("{\"a\": " + std::string(number) + ", \"b\": 1e-2147483649}"), "") << number;
  }
  for (const char* number : {"0", "-0", "10", "1.5", "1e5", "-1.25E+400", "0.0e-1"}) {
    EXPECT_NE(ObjectText("{\"a\": " + std::string(number) + ", \"b\": 1e-2147483649}"), "") << number;
  }
}

TEST(Cells, LastText) {
  EXPECT_EQ(LastText(R"(["DefaultModel", "Module.a.forward.0"])"), "Module.a.forward.0");
  EXPECT_EQ(LastText(R"(["DefaultModel", "with \"quotes\""])"), "with \"quotes\"");
  EXPECT_EQ(LastText("[]"), "");
  EXPECT_EQ(LastText(""), "");
  EXPECT_EQ(LastText("[\""), "");
  EXPECT_EQ(LastText("not json"), "");
}

TEST(Cells, ObjectTextIsWhatABrowserParses) {
  EXPECT_EQ(ObjectText(R"({"a": [1]})"), R"({"a": [1]})");
  EXPECT_EQ(ObjectText("{}"), "");
  EXPECT_EQ(ObjectText("null"), "");
  EXPECT_EQ(ObjectText(R"({"a": NaN})"), "");
  EXPECT_EQ(ObjectText("{\"a\": \"\xff\"}"), "");
}

}  // namespace
}  // namespace msprobe::view
