#include "base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace msprobe {
namespace {

TEST(PyRepr, MatchesPython) {
  EXPECT_EQ(PyRepr(1), "1.0");
  EXPECT_EQ(PyRepr(-0.0), "-0.0");
  EXPECT_EQ(PyRepr(0.1), "0.1");
  EXPECT_EQ(PyRepr(1e16), "1e+16");
  EXPECT_EQ(PyRepr(9999999999999998.0), "9999999999999998.0");
  EXPECT_EQ(PyRepr(1e-4), "0.0001");
  EXPECT_EQ(PyRepr(1e-5), "1e-05");
  EXPECT_EQ(PyRepr(1.5e-7), "1.5e-07");
  EXPECT_EQ(PyRepr(5e-324), "5e-324");
  EXPECT_EQ(PyRepr(1.7976931348623157e308), "1.7976931348623157e+308");
  EXPECT_EQ(PyRepr(std::nan("")), "nan");
  EXPECT_EQ(PyRepr(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(JsonString, EscapesLikeJsonDumps) {
  std::string s;
  AppendJsonString(s, "a\"b\\c\n\t\x01 \xC3\xA9 \xF0\x9F\x98\x80");
  EXPECT_EQ(s, R"("a\"b\\c\n\t\u0001 \u00e9 \ud83d\ude00")");
  s.clear();
  AppendJsonString(s, "\xFFx", true);
  EXPECT_EQ(s, R"("\ufffdx")");
}

TEST(PyStrRepr, ChoosesQuotes) {
  std::string s;
  AppendPyStrRepr(s, "it's \n x");
  EXPECT_EQ(s, "\"it's \\n x\"");
  s.clear();
  AppendPyStrRepr(s, "a'b\"c");
  EXPECT_EQ(s, "'a\\'b\"c'");
}

TEST(Utf8, BytesThatAreNone) {
  EXPECT_TRUE(IsUtf8("plain text that is longer than a word"));
  EXPECT_TRUE(IsUtf8("дамп \xF0\x9F\x98\x80"));
  for (const char* bad : {"\xFF", "eight ok\x80", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "cut \xE2\x82"}) {
    EXPECT_FALSE(IsUtf8(bad));
    EXPECT_TRUE(IsUtf8(ToUtf8(bad)));
  }
  EXPECT_EQ(ToUtf8("a\xFF"
                   "b"),
            "a\xEF\xBF\xBD"
            "b");
}

TEST(Utf8, OneLineOfText) {
  EXPECT_EQ(OneLine("a\nb\t\x1b[2J\x7f ü"), "a\\nb\\t\\x1b[2J\\x7f ü");
  EXPECT_EQ(OneLine("\xC2\x9B"
                    "1m\xE2\x80\xA8\xFF"),
            "\\x9b1m\\u2028\xEF\xBF\xBD");
}

TEST(Split, HasOnePartMoreThanSeparators) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(Split("a.bc.d", '.'), (Parts{"a", "bc", "d"}));
  EXPECT_EQ(Split(".a..", '.'), (Parts{"", "a", "", ""}));
  EXPECT_EQ(Split("", '.'), (Parts{""}));
  EXPECT_EQ(Split("a.b", ','), (Parts{"a.b"}));
}

TEST(Wildcard, StarsStandForAnythingAndQuestionMarksForOne) {
  EXPECT_TRUE(MatchesWildcard("layers.12.mlp", "layers.*.mlp"));
  EXPECT_TRUE(MatchesWildcard("Llama-7B", "*7?"));
  EXPECT_TRUE(MatchesWildcard("", "**"));
  EXPECT_TRUE(MatchesWildcard("a*b", "a*b"));
  EXPECT_FALSE(MatchesWildcard("layers.12.mlp.up", "layers.*.mlp"));
  EXPECT_FALSE(MatchesWildcard("", "?"));
  EXPECT_FALSE(MatchesWildcard("aaab", "*a?a"));
}

}  // namespace
}  // namespace msprobe
