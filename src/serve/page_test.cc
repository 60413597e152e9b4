#include "serve/page.h"

#include <gtest/gtest.h>

#include "serve/token.h"

namespace msprobe::serve {
namespace {

TEST(Page, NonceGoesIntoScriptElementsOnly) {
  EXPECT_EQ(WithScriptNonce("<p>a</p>", "N"), "<p>a</p>");
  EXPECT_EQ(WithScriptNonce("<script>x</script><SCRIPT type=\"module\">y</SCRIPT>z", "N"),
            "<script nonce=\"N\">x</script><SCRIPT nonce=\"N\" type=\"module\">y</SCRIPT>z");
  EXPECT_EQ(WithScriptNonce("<script>var a = '<script>';</script><scripty>", "N"),
            "<script nonce=\"N\">var a = '<script>';</script><scripty>");
  EXPECT_EQ(WithScriptNonce("<script>open", "N"), "<script nonce=\"N\">open");
  EXPECT_EQ(WithScriptNonce("<script", "N"), "<script");
}

TEST(Page, PolicyAllowsTheNonceAndNoOtherHost) {
  const std::string policy = ContentSecurityPolicy("abc");
  EXPECT_EQ(policy.rfind("default-src 'none'; script-src 'nonce-abc';", 0), 0u);
  EXPECT_EQ(policy.find("http"), std::string::npos);
  EXPECT_EQ(policy.find("unsafe-eval"), std::string::npos);
}

TEST(Page, IsHtml) { EXPECT_NE(PageHtml().find("<title>"), std::string_view::npos); }

TEST(Token, RandomAndCompared) {
  auto a = MakeToken(), b = MakeToken();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->size(), 32u);
  EXPECT_EQ(a->find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(*a, *b);
  EXPECT_TRUE(SameToken(*a, *a));
  EXPECT_FALSE(SameToken(*a, *b));
  EXPECT_FALSE(SameToken(a->substr(1), *a));
  EXPECT_FALSE(SameToken(*a + "0", *a));
  EXPECT_FALSE(SameToken("", *a));
  EXPECT_FALSE(SameToken("", ""));
}

}  // namespace
}  // namespace msprobe::serve
