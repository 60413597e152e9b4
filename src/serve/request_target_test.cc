#include "serve/request_target.h"

#include <gtest/gtest.h>

namespace msprobe::serve {
namespace {

TEST(RequestTarget, DecodesPathAndParameters) {
  auto t = ParseTarget("/api/x?file=a%2Fb+c.vis.db&q=%E4%B8%AD&flag&empty=&&eq=a=b#fragment");
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->path, "/api/x");
  EXPECT_EQ(t->Get("file"), "a/b c.vis.db");
  EXPECT_EQ(t->Get("q"), "\xe4\xb8\xad");
  EXPECT_TRUE(t->Has("flag"));
  EXPECT_EQ(t->Get("empty"), "");
  EXPECT_EQ(t->Get("eq"), "a=b");
  EXPECT_FALSE(t->Has("absent"));
  EXPECT_EQ(ParseTarget("/a+b")->path, "/a+b") << "a plus is a space in parameters only";
}

TEST(RequestTarget, RefusesWhatIsMalformed) {
  for (const char* bad : {"", "api", "http://x/", "*", "/?a=%", "/?a=%2", "/?a=%zz", "/%g0", "/?a=1&a=2"}) {
    EXPECT_EQ(ParseTarget(bad).status().code(), Code::kUsage) << bad;
  }
}

TEST(RequestTarget, Integers) {
  auto t = *ParseTarget("/?a=12&b=-3&c=1x&d=&e=99999999999999999999");
  EXPECT_EQ(*t.Int("a"), 12);
  EXPECT_EQ(*t.Int("b"), -3);
  for (const char* bad : {"c", "d", "e", "absent"}) EXPECT_EQ(t.Int(bad).status().code(), Code::kUsage) << bad;
  const int64_t seven = 7;
  EXPECT_EQ(*t.Int("absent", &seven), 7);
  EXPECT_EQ(t.Int("c", &seven).status().code(), Code::kUsage);
}

}  // namespace
}  // namespace msprobe::serve
