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

}  // namespace
}  // namespace msprobe
