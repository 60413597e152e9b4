#include "graph/tree/finding_kind.h"

#include <gtest/gtest.h>

#include <set>

namespace msprobe {
namespace {

TEST(FindingKind, EachHasAWordOfItsOwn) {
  std::set<std::string_view> words;
  for (int kind = 1; kind <= static_cast<int>(FindingKind::kSuspectRank); ++kind) {
    const std::string_view word = FindingKindText(static_cast<FindingKind>(kind));
    EXPECT_FALSE(word.empty()) << kind;
    EXPECT_TRUE(words.insert(word).second) << word;
  }
  EXPECT_EQ(FindingKindText(FindingKind::kNone), "");
}

}  // namespace
}  // namespace msprobe
