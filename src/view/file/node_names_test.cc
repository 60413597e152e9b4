#include "view/file/node_names.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace msprobe::view {
namespace {

std::string Lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

TEST(NodeNames, EachOnceInTheOrderOfComing) {
  NodeNames names;
  EXPECT_EQ(names.Find("a"), NodeNames::kNone);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 3000; ++i) EXPECT_EQ(*names.Intern("n" + std::to_string(i)), static_cast<uint32_t>(i));
  }
  EXPECT_EQ(*names.Intern(""), 3000u);
  EXPECT_EQ(names.size(), 3001u);
  EXPECT_EQ(names[2999], "n2999");
  EXPECT_EQ(names.Find("n17"), 17u);
  EXPECT_EQ(names.Find(""), 3000u);
  EXPECT_EQ(names.Find("n3000"), NodeNames::kNone);
  EXPECT_EQ(names.Intern(std::string(70000, 'x')).status().code(), Code::kBadInput);
}

TEST(NodeNames, AppendedOnesAreFoundAfterIndex) {
  NodeNames names;
  for (const char* name : {"a", "b", "a"}) ASSERT_TRUE(names.Append(name).ok());
  names.Index();
  EXPECT_EQ(names.Find("a"), 0u);
  EXPECT_EQ(names.Find("b"), 1u);
  EXPECT_EQ(names.Find(""), NodeNames::kNone);
}

// Against a search of each name by itself, over several pieces of memory.
TEST(NodeNames, ContainingIsWhatEachNameSays) {
  std::mt19937 random(7);
  NodeNames names;
  std::vector<std::string> all;
  for (int i = 0; i < 60000; ++i) {
    std::string name;
    const size_t size = i % 1000 == 0 ? 5000 : random() % 60;
    for (size_t k = 0; k < size; ++k) name += "abAB.@`[{\xC4\x80"[random() % 11];
    all.push_back(name);
    ASSERT_TRUE(names.Append(name).ok());
  }
  size_t hits = 0;
  for (const std::string needle :
       {"a", "ab", ".b", "@", "`a", "abab.", "ba@b{[", "\xC4\x80", "[", "x", "aaaaaaaaaaaaaaaa", "b.a`b"}) {
    const std::vector<uint8_t> found = names.Containing(needle);
    ASSERT_EQ(found.size(), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const bool there = Lower(all[i]).find(needle) != std::string::npos;
      ASSERT_EQ(found[i] != 0, there) << needle << " in " << all[i];
      hits += there;
    }
  }
  EXPECT_GT(hits, 60000u);
  EXPECT_EQ(names.Containing(""), std::vector<uint8_t>(all.size(), 1));
  EXPECT_TRUE(NodeNames().Containing("a").empty());
}

TEST(NodeNames, FindNoCase) {
  const std::string text = std::string(200, '-') + "Linear.Forward" + std::string(63, '-');
  EXPECT_EQ(FindNoCase(text, "linear.f", 0), 200u);
  EXPECT_EQ(FindNoCase(text, "forward", 0), 207u);
  EXPECT_EQ(FindNoCase(text, "forward", 208), std::string::npos);
  EXPECT_EQ(FindNoCase("ab", "abc", 0), std::string::npos);
  EXPECT_EQ(FindNoCase("ABC", "abc", 0), 0u);
}

}  // namespace
}  // namespace msprobe::view
