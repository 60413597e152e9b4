#include "json/parser.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <random>

#include "base/text.h"
#include "dump/reader.h"
#include "dump/test_files.h"
#include "json/writer.h"

namespace msprobe {
namespace {

std::string Again(std::string_view text) {
  JsonDoc doc;
  const Status status = ParseJson(text, "text", &doc);
  if (!status.ok()) return status.message();
  std::string out;
  JsonWriter j(&out, kJsonIndented);
  j.Value(doc);
  return out;
}

TEST(ParseJson, Values) {
  EXPECT_EQ(Again(" [1, -2, 0, -0, 18446744073709551615, -9223372036854775808, 4294967296, -2147483649]"),
            "[\n 1,\n -2,\n 0,\n 0,\n 18446744073709551615,\n -9223372036854775808,\n 4294967296,\n -2147483649\n]");
  EXPECT_EQ(
      Again("[1.5, 1e5, -0.0, 2.2250738585072014e-308, 5e-324, 0.1, 123456789.123456789, 1E+2]"),
      "[\n 1.5,\n 100000.0,\n -0.0,\n 2.2250738585072014e-308,\n 5e-324,\n 0.1,\n 123456789.12345679,\n 100.0\n]");
  EXPECT_EQ(Again("[NaN, Infinity, -Infinity, true, false, null, \"\"]"),
            "[\n NaN,\n Infinity,\n -Infinity,\n true,\n false,\n null,\n \"\"\n]");
  EXPECT_EQ(Again("[1e400, -1e400, 1e-400, -1e-400, 1e-2147483639, 0.000000001e-2147483639, 18446744073709551616]"),
            "[\n Infinity,\n -Infinity,\n 0.0,\n -0.0,\n 0.0,\n 0.0,\n 1.8446744073709552e+19\n]");
  EXPECT_EQ(Again("{\"a\": {}, \"b\": [], }"), "{\n \"a\": {},\n \"b\": []\n}");
  EXPECT_EQ(Again("\"\\u00e9\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\n\\r\\t\xC3\xA9 long enough for a vector\""),
            "\"\\u00e9\\ud83d\\ude00\\\"\\\\/\\b\\f\\n\\r\\t\\u00e9 long enough for a vector\"");
  EXPECT_EQ(Again("\"\\ud800\\u0041\\udc00\""), "\"\\ufffdA\\ufffd\"");
}

TEST(ParseJson, Refusals) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "byte 0: expected a value but found the end"},
      {"[1 2]", "byte 3: expected ',' or ']' but found '2'"},
      {"{\"a\" 1}", "byte 5: expected ':'"},
      {"{a: 1}", "byte 1: expected a name in double quotes"},
      {"[,]", "byte 1: expected a value"},
      {"[01]", "byte 2: expected ',' or ']'"},
      {"[1.]", "expected a digit"},
      {"[1e]", "expected a digit"},
      {"[-]", "expected a value"},
      {"[.5]", "expected a value"},
      {"[nul]", "expected a value"},
      {"\"abc", "expected a closing quote but found the end"},
      {"\"a\nb\"", "no control character"},
      {"\"\\x\"", "an escape"},
      {"\"\\u12g4\"", "hexadecimal"},
      {"[1] 2", "byte 4: expected the end"},
      {"[}", "byte 1: expected a value"},
      {"{\"a\": 1]", "expected ',' or '}'"},
      {"[1", "expected ',' or ']' but found the end"},
  };
  for (const auto& [text, message] : wrong)
    EXPECT_TRUE(Contains(Again(text), message)) << text << " gives " << Again(text);
}

TEST(ParseJson, NestingIsBounded) {
  const std::string deepest = std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']');
  JsonDoc doc;
  EXPECT_TRUE(ParseJson(deepest, "text", &doc).ok());
  EXPECT_FALSE(ParseJson("[" + deepest + "]", "text", &doc).ok());
  EXPECT_FALSE(ParseJson(std::string(1000000, '['), "text", &doc).ok());
}

TEST(ParseJson, ADocumentIsReusedAndMoved) {
  JsonDoc doc;
  for (int i = 0; i < 1000; ++i) {
    std::string text = "[";
    for (int k = 0; k < i * 10; ++k) text += "\"a string that does not fit into a value\",";
    ASSERT_TRUE(ParseJson(text + std::to_string(i) + "]", "text", &doc).ok());
    EXPECT_EQ(doc[doc.size() - 1].Int32(), i);
  }
  JsonDoc other = std::move(doc);
  EXPECT_EQ(other[0].Text(), "a string that does not fit into a value");
  JsonDoc third;
  third = std::move(other);
  ASSERT_TRUE(ParseJson("{\"a\": 1, \"a\": 2}", "text", &third).ok());
  EXPECT_EQ(third.Find("a")->Int32(), 2);
  EXPECT_EQ(third.Find("b"), nullptr);
  EXPECT_EQ(third.Find("a")->Find("a"), nullptr);
}

/// Where dumps of the old tool lie: MSPROBE_GOLDEN, or beside the checkout; empty when there are none.
std::filesystem::path GoldenDir() {
  if (const char* given = std::getenv("MSPROBE_GOLDEN")) return given;
  const auto beside = std::filesystem::path(MSPROBE_SOURCE_DIR).parent_path() / "shared" / "golden";
  return std::filesystem::exists(beside) ? beside : std::filesystem::path();
}

// The old tool's files were written by json.dump(indent=1): reading and writing them again must give the same bytes.
TEST(ParseJson, DumpsOfTheOldToolComeBackByteForByte) {
  int files = 0;
  std::filesystem::path dir = GoldenDir();
  // Beside the dumps the set holds files of other layouts.
  if (!dir.empty() && std::filesystem::is_directory(dir / "data")) dir /= "data";
  if (!dir.empty()) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
      const std::string name = entry.path().filename().string();
      if (name != "dump.json" && name != "debug.json" && name != "construct.json" && name != "stack.json") continue;
      if (entry.file_size() > (8u << 20)) continue;
      const std::string text = ReadAll(entry.path().string());
      ASSERT_TRUE(Again(text) == text) << entry.path();
      ++files;
    }
  }
  if (files == 0) {
    const char* ci = std::getenv("CI");
    if (ci && std::string(ci) == "true" && std::getenv("MSPROBE_GOLDEN")) FAIL() << "no dumps under MSPROBE_GOLDEN";
    GTEST_SKIP() << "no golden dumps here: set MSPROBE_GOLDEN";
  }
}

TEST(ParseJson, StringsAreAlwaysUtf8) {
  JsonDoc doc;
  ASSERT_TRUE(ParseJson("{\"a\xFF\": [\"b\\n\x80\"]}", "text", &doc).ok());
  EXPECT_EQ(doc.Members()[0].name, "a\xEF\xBF\xBD");
  EXPECT_EQ(doc.Members()[0].value[0].Text(), "b\n\xEF\xBF\xBD");
}

TEST(ParseJson, DecimalsAreTheNearestDoubles) {
  std::mt19937_64 random(7);
  JsonDoc doc;
  const auto check = [&](const std::string& text) {
    ASSERT_TRUE(ParseJson(text, "text", &doc).ok()) << text;
    const double expected = std::strtod(text.c_str(), nullptr), read = doc.Number();
    EXPECT_TRUE(expected == read && std::signbit(expected) == std::signbit(read)) << text;
  };
  for (int i = 0; i < 50000; ++i) {
    const uint64_t a = random() >> (random() % 64), b = random() >> (random() % 64);
    check(fmt::format("{}.{}", a, b));
    check(fmt::format("-0.{:0{}}", b, 1 + i % 27));
    check(fmt::format("{}.{}e-{:02}", a % 10, b, i % 35));
    check(fmt::format("{:.17g}", static_cast<double>(static_cast<float>(a)) / 3e19));
  }
  for (const char* text :
       {"9007199254740993.0", "9007199254740992.5", "18446744073709551615.0", "1e-27", "1e-28", "-0e0",
        "9999999999999999999e-27", "0.000000000000000000000000000", "1.7976931348623157e308", "0.1e1"})
    check(text);
}

TEST(ParseJson, StrictTakesNoMoreThanABrowser) {
  JsonDoc doc;
  for (const char* text :
       {"[NaN]", "[-Infinity]", "[1,]", "{\"a\": 1,}", "\"\xFF\"", "\xEF\xBB\xBF[]", "\"\\udc00\""}) {
    EXPECT_TRUE(ParseJson(text, "text", &doc).ok()) << text;
    EXPECT_FALSE(ParseJson(text, "text", &doc, 0, {.strict = true}).ok()) << text;
  }
}

TEST(ParseJson, AnEmptyTextIsRefused) {
  JsonDoc doc;
  EXPECT_FALSE(ParseJson(std::string_view(), "text", &doc).ok());
  EXPECT_FALSE(ParseJson("\xEF\xBB\xBF", "text", &doc).ok());
}

TEST(JsonValue, WhatIsNotThereIsEmpty) {
  JsonDoc doc;
  ASSERT_TRUE(ParseJson(R"({"a": [1, -2, 1e3, "t"], "big": 18446744073709551615, "yes": true})", "text", &doc).ok());
  const JsonValue& list = doc["a"];
  EXPECT_EQ(list[0].UInt(), 1u);
  EXPECT_EQ(list[1].UInt(), 0u) << "negative";
  EXPECT_EQ(list[2].Int(), 0) << "not written as a whole number";
  EXPECT_EQ(list[2].Number(), 1000.0);
  EXPECT_EQ(list[3].Text(), "t");
  EXPECT_TRUE(list[4].IsNull());
  EXPECT_TRUE(doc["none"]["deeper"][7].Text().empty());
  EXPECT_EQ(doc["big"].Int(), 0) << "does not fit";
  EXPECT_EQ(doc["big"].UInt(), std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(doc["yes"].Bool());
  EXPECT_TRUE(doc["yes"].Items().empty());
}

TEST(JsonValue, AMemberIsReplacedByACopy) {
  JsonDoc doc, other;
  ASSERT_TRUE(ParseJson(R"({"output": 1, "input": [2], "last": {}})", "text", &doc).ok());
  ASSERT_TRUE(ParseJson(R"({"output": [{"Max": 1.5, "name": "a text of its own"}]})", "text", &other).ok());
  doc.Replace("output", other.Find("output"));
  const JsonDoc same = std::move(other);
  EXPECT_TRUE(doc["output"] == same["output"]);
  ASSERT_TRUE(ParseJson("{}", "text", &other).ok());
  EXPECT_EQ(doc["output"][0]["name"].Text(), "a text of its own");
  ASSERT_EQ(doc.size(), 3u);
  EXPECT_EQ(doc.Members()[0].name, "last");
  doc.Replace("output", nullptr);
  EXPECT_EQ(doc.size(), 2u);
}

TEST(ParseJson, TextsThatNoDumpHoldsAreNotRead) {
  JsonDoc doc;
  std::string text(kMaxJsonBytes + 1, ' ');
  text[0] = '1';
  const Status status = ParseJson(text, "op \"x\"", &doc);
  EXPECT_EQ(status.code(), Code::kBadInput);
}

/// Quadratic, this takes minutes.
TEST(DumpFileNames, AMillionBackslashesAreReadOnce) {
  TempDir dir;
  const std::string name(4'000'000, '\\');
  dir.Write("dump.json", R"({"task": "statistics", "data": {")" + name + R"(": {"output": []}}})");
  const auto dump = DumpFile::Open(dir.path() + "/dump.json");
  ASSERT_TRUE(dump.ok());
  EXPECT_EQ(dump->ops()[0].name.size(), name.size() / 2);
}

}  // namespace
}  // namespace msprobe
