// The syntax of searches, held to the cases that the page without a server is held to as well.
#include "view/search/search_terms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "json/parser.h"
#include "tensor/kernels/dtype.h"
#include "view/search/hit_order.h"
#include "view/search/op_name.h"
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
      const JsonValue& error = given["error"];
      errors.push_back(error.Text() == "inf" ? std::numeric_limits<double>::infinity()
                       : error.IsNumber()    ? error.Number()
                                             : std::numeric_limits<double>::quiet_NaN());
      uint32_t bits = 0;
      for (const JsonValue& dtype : given["dtypes"].Items()) bits |= 1u << static_cast<int>(ParseDType(dtype.Text()));
      dtypes.push_back(bits);
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
  std::vector<double> errors;
  std::vector<uint32_t> dtypes;
};

TEST_F(CasesTest, FindWhatTheySay) {
  const auto cases = doc["found"].Items();
  ASSERT_GT(cases.size(), 20u);
  for (const JsonValue& given : cases) {
    SCOPED_TRACE(given["q"].Text());
    const auto terms = ParseSearchTerms(given["q"].Text());
    ASSERT_TRUE(terms.ok()) << terms.status().message();
    const Sieve sieve(tree, /*compared=*/true, *terms, NodeFilter::kAny, /*leaves_only=*/false, &errors, &dtypes);
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
    EXPECT_EQ(terms->rank, given["rank"].IsNumber() ? std::optional(given["rank"].Int()) : std::nullopt);
    EXPECT_EQ(terms->AsksDTypes(), Contains(given["q"].Text(), "dtype:") || Contains(given["q"].Text(), "DTYPE:"));
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

TEST_F(CasesTest, WithoutErrorsNoneIsWithinABound) {
  const auto terms = ParseSearchTerms("error>=0");
  ASSERT_TRUE(terms.ok());
  EXPECT_TRUE(terms->AsksErrors());
  const Sieve sieve(tree, true, *terms, NodeFilter::kAny, false);
  for (uint32_t i = 0; i < tree.size(); ++i) EXPECT_FALSE(sieve.Keeps(i)) << i;
}

TEST(OpNames, AreThoseOfCallsAndClasses) {
  const std::pair<const char*, const char*> cases[] = {{"Functional.linear.7.forward", "linear"},
                                                       {"Torch.linalg.norm.0.backward", "linalg.norm"},
                                                       {"Tensor.backward.0.forward", "backward"},
                                                       {"Module.a.0.Linear.forward.12", "Linear"},
                                                       {"Cell.a.Dense.backward.0", "Dense"},
                                                       {"Module.a.Linear.parameters_grad", "Linear"},
                                                       {"Module.forwarder.Linear.forward.0", "Linear"},
                                                       {"Apis_Between_Modules.0", ""},
                                                       {"DefaultModel", ""},
                                                       {".forward", ""},
                                                       {"Torch..forward", ""},
                                                       {"", ""}};
  for (const auto& [node, op] : cases) EXPECT_EQ(OpNameOf(node), op) << node;
}

TEST(HitOrders, PutTheLargestErrorFirstAndModulesTogether) {
  Tree tree;
  const std::pair<const char*, int> nodes[] = {
      {"Torch.free.0.forward", 1},  {"Torch.a.0.forward", 1},
      {"Module.x.X.forward.0", 0},  {"Module.y.Y.forward.0", 0},
      {"Module.y.Y.backward.0", 0}, {"Torch.a.0.backward", 1},
      {"Module.x.X.backward.0", 0}, {"root", 0},
  };
  const char* parents[] = {"root", "Module.x.X.forward.0", "root", "root", "root", "Module.x.X.backward.0", "root", ""};
  for (size_t i = 0; i < std::size(nodes); ++i) {
    TreeNode node;
    node.type = static_cast<uint8_t>(nodes[i].second);
    node.order = static_cast<int64_t>(i);
    ASSERT_TRUE(tree.Add(node, nodes[i].first, parents[i]).ok());
  }
  tree.Link();
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  const std::vector<double> errors{0.5, kNone, 0, kInf, 0.5, kNone, 2, kNone};
  const auto sorted = [&](std::string_view word, const std::vector<double>* of) {
    std::vector<uint32_t> order(tree.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), HitOrder(tree, *ParseHitSort(word), of));
    return order;
  };
  EXPECT_EQ(sorted("", &errors), (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(sorted("error", &errors), (std::vector<uint32_t>{3, 6, 0, 4, 2, 1, 5, 7}));
  EXPECT_EQ(sorted("error", nullptr), sorted("execution", nullptr)) << "where there are none";
  EXPECT_EQ(sorted("module", nullptr), (std::vector<uint32_t>{1, 2, 5, 6, 3, 4, 7, 0}));
  EXPECT_EQ(ParseHitSort("evil"), std::nullopt);
}

TEST(SearchTerms, LongPatternsEndSoon) {
  std::string name(60000, 'a'), query = "a";
  for (int i = 0; i < 1000; ++i) query += "*a";
  const auto terms = ParseSearchTerms(query + "*b");
  ASSERT_TRUE(terms.ok());
  EXPECT_FALSE(FitsPattern(name, terms->terms[0].pattern));
  EXPECT_TRUE(FitsPattern(name + "b", terms->terms[0].pattern));
  const auto op = ParseSearchTerms("op:" + query + "*b");
  ASSERT_TRUE(op.ok());
  EXPECT_FALSE(IsPattern(name, op->terms[0].ops[0]));
  EXPECT_TRUE(IsPattern(name + "b", op->terms[0].ops[0]));
}

}  // namespace
}  // namespace msprobe::view
