#include "json/writer.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "json/parser.h"

namespace msprobe {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::string Sample(const JsonStyle& style) {
  JsonWriter json(style);
  json.BeginObject();
  json.Member("t\xC3\xA9xt", "\"\xE4\xB8\xAD\n");
  json.Member("list", std::vector<std::string>{"a", "b"});
  json.Member("nested", std::vector<std::vector<int>>{{1, -2}, {}});
  json.ObjectMember("empty", [] {});
  json.Member("none", std::optional<int>());
  json.Member("some", std::optional<uint64_t>(UINT64_MAX));
  json.Member("truth", true);
  json.EndObject();
  return json.Take();
}

TEST(JsonWriter, Styles) {
  // json.dumps(value)
  EXPECT_EQ(Sample(kJsonLine),
            R"({"t\u00e9xt": "\"\u4e2d\n", "list": ["a", "b"], "nested": [[1, -2], []], "empty": {}, "none": null, )"
            R"("some": 18446744073709551615, "truth": true})");
  // json.dumps(value, separators=(",", ":"))
  EXPECT_EQ(Sample(kJsonCompact),
            R"({"t\u00e9xt":"\"\u4e2d\n","list":["a","b"],"nested":[[1,-2],[]],"empty":{},"none":null,)"
            R"("some":18446744073709551615,"truth":true})");
  // json.dumps(value, separators=(",", ":"), ensure_ascii=False)
  EXPECT_EQ(Sample(kJsonPage),
            "{\"t\xC3\xA9xt\":\"\\\"\xE4\xB8\xAD\\n\",\"list\":[\"a\",\"b\"],\"nested\":[[1,-2],[]],\"empty\":{},"
            "\"none\":null,\"some\":18446744073709551615,\"truth\":true}");
  // json.dumps(value, indent=2)
  EXPECT_EQ(Sample({.indent = 2, .comma = ","}), R"({
  "t\u00e9xt": "\"\u4e2d\n",
  "list": [
    "a",
    "b"
  ],
  "nested": [
    [
      1,
      -2
    ],
    []
  ],
  "empty": {},
  "none": null,
  "some": 18446744073709551615,
  "truth": true
})");
}

std::string Numbers(JsonStyle::NotFinite not_finite) {
  JsonWriter json({.not_finite = not_finite});
  json.BeginArray();
  for (const double v : {1.0, 1e-5, -0.0, double{NAN}, kInf, -kInf}) json.Value(v);
  json.Rounded(1.0 / 3, 5);
  json.Rounded(1e9, 5);
  json.Rounded(-kInf, 5);
  json.EndArray();
  return json.Take();
}

TEST(JsonWriter, NumbersThatJsonDoesNotHave) {
  EXPECT_EQ(Numbers(JsonStyle::NotFinite::kPython),
            "[1.0, 1e-05, -0.0, NaN, Infinity, -Infinity, 0.33333, 1e+09, -Infinity]");
  EXPECT_EQ(Numbers(JsonStyle::NotFinite::kNull), "[1.0, 1e-05, -0.0, null, null, null, 0.33333, 1e+09, null]");
  EXPECT_EQ(Numbers(JsonStyle::NotFinite::kText),
            R"([1.0, 1e-05, -0.0, "nan", "inf", "-inf", 0.33333, 1e+09, "-inf"])");
}

TEST(JsonWriter, MembersWithoutTheirObject) {
  std::string text = "{\"a\": 1, ";
  JsonWriter json(&text);
  json.Member("b", std::array{1.5, 2.5});
  json.RawMember("c", "{}");
  json.Members("\"d\": 4");
  json.Member("e", nullptr);
  EXPECT_EQ(text, "{\"a\": 1, \"b\": [1.5, 2.5], \"c\": {}, \"d\": 4, \"e\": null");
  EXPECT_EQ(json.size(), text.size());
}

TEST(JsonWriter, AKeptKeyIsTheKey) {
  std::string first, second, text;
  JsonWriter keys(&first, kJsonIndented, 1);
  keys.Key("a");
  second = std::exchange(first, {});
  keys.Key("b");
  JsonWriter json(&text, kJsonIndented);
  json.BeginObject();
  json.KeptKey(second), json.Value(1);
  json.KeptKey(first), json.Value(std::vector<int>{});
  json.EndObject();
  EXPECT_EQ(text, "{\n \"a\": 1,\n \"b\": []\n}");
}

TEST(JsonWriter, WritesWhatWasRead) {
  constexpr std::string_view kText =
      R"({"a": [1, -2, 18446744073709551615, 0.5, NaN, "x\u00e9"], "b": {"c": null, "d": [true, false]}, "e": {}})";
  JsonDoc doc;
  ASSERT_TRUE(ParseJson(kText, "text", &doc).ok());
  JsonWriter json;
  json.Value(doc);
  EXPECT_EQ(json.Take(), kText);
}

}  // namespace
}  // namespace msprobe
