// The syntax of searches, held to the cases that the page without a server is held to as well.
#include "view/search/search_terms.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "json/parser.h"
#include "view/search/sieve.h"

namespace msprobe::view {
namespace {

struct CasesTest : testing::Test {
  void SetUp() override {
    std::ifstream in(MSPROBE_SOURCE_DIR "/src/view/search/search_cases.json");
    text.assign(std::istreambuf_iterator<char>(in), {});
    ASSERT_TRUE(ParseJson(text, "cases", &doc).ok());
    MakeTree();
  }

  void MakeTree() {
    std::vector<RulerVerdict> rulings;
    std::vector<bool> matched;
    for (const JsonValue& given : doc["nodes"].Items()) {
      TreeNode node;
      node.type = static_cast<uint8_t>(given["type"].Int());
      node.order = static_cast<int64_t>(rulings.size());
      const std::string_view level = given["level"].Text(), overflow = given["overflow"].Text();
      node.level = level == "pass"      ? Verdict::kPass
                   : level == "warning" ? Verdict::kWarning
                   : level == "error"   ? Verdict::kError
                                        : Verdict::kNone;
      node.overflow = overflow == "critical" ? Overflow::kCritical
                      : overflow == "high"   ? Overflow::kHigh
                                             : Overflow::kNone;
      ASSERT_TRUE(tree.Add(node, given["name"].Text(), "").ok());
      const std::string_view verdict = given["verdict"].Text();
      rulings.push_back(verdict == "bug"          ? RulerVerdict::kBug
                        : verdict == "suspicious" ? RulerVerdict::kSuspicious
                        : verdict == "inherited"  ? RulerVerdict::kInherited
                        : verdict == "bit-equal"  ? RulerVerdict::kBitEqual
                                                  : RulerVerdict::kNone);
      matched.push_back(!given["matched"].IsBool() || given["matched"].Bool());
    }
    tree.Link();
    for (uint32_t i = 0; i < rulings.size(); ++i) {
      tree.SetRuling(i, rulings[i]);
      tree.SetPartner(i, matched[i] ? i : kNoNode);
    }
  }

  std::string text;
  JsonDoc doc;
  Tree tree;
};

TEST_F(CasesTest, FindWhatTheySay) {
  const auto cases = doc["found"].Items();
  ASSERT_GT(cases.size(), 20u);
  for (const JsonValue& given : cases) {
    SCOPED_TRACE(given["q"].Text());
    const auto terms = ParseSearchTerms(given["q"].Text());
    ASSERT_TRUE(terms.ok()) << terms.status().message();
    const Sieve sieve(tree, /*compared=*/true, *terms, NodeFilter::kAny, /*leaves_only=*/false);
    std::vector<int64_t> found, wanted;
    for (uint32_t i = 0; i < tree.size(); ++i) {
      if (sieve.Keeps(i)) found.push_back(i);
    }
    for (const JsonValue& node : given["nodes"].Items()) wanted.push_back(node.Int());
    EXPECT_EQ(found, wanted);
    std::vector<std::string> words;
    for (const JsonValue& word : given["words"].Items()) words.emplace_back(word.Text());
    EXPECT_EQ(terms->Marked(), words);
    const std::string_view side = given["side"].Text();
    EXPECT_EQ(terms->side, side == "golden"   ? SearchSide::kGolden
                           : side == "target" ? SearchSide::kTarget
                                              : SearchSide::kAsShown);
  }
}

TEST_F(CasesTest, RefuseWhatIsNoSearchAndSayWhy) {
  for (const JsonValue& given : doc["refused"].Items()) {
    SCOPED_TRACE(given["q"].Text());
    const auto terms = ParseSearchTerms(given["q"].Text());
    ASSERT_FALSE(terms.ok());
    EXPECT_EQ(terms.status().code(), Code::kUsage);
    EXPECT_EQ(terms.status().message(), given["error"].Text());
  }
}

TEST_F(CasesTest, AFilterALeafAndASearchAllCount) {
  const auto terms = ParseSearchTerms("forward");
  ASSERT_TRUE(terms.ok());
  const Sieve sieve(tree, true, *terms, *ParseNodeFilter("warning,unmatched"), true);
  for (uint32_t i = 0; i < tree.size(); ++i) EXPECT_EQ(sieve.Keeps(i), i == 3 || i == 4) << i;
}

TEST(SearchTerms, LongPatternsEndSoon) {
  std::string name(60000, 'a'), query = "a";
  for (int i = 0; i < 1000; ++i) query += "*a";
  const auto terms = ParseSearchTerms(query + "*b");
  ASSERT_TRUE(terms.ok());
  EXPECT_FALSE(FitsPattern(name, terms->terms[0].pattern));
  EXPECT_TRUE(FitsPattern(name + "b", terms->terms[0].pattern));
}

}  // namespace
}  // namespace msprobe::view
