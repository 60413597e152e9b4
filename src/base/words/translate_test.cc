#include "base/words/translate.h"

#include <gtest/gtest.h>

#include <set>

#include "base/status.h"
#include "base/text.h"

namespace msprobe {
namespace {

size_t CountOf(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++count;
  return count;
}

std::string Chinese(const Message& message) { return InLanguage(message, Language::kChinese); }

TEST(TranslateTest, EveryEntryIsThereOnce) {
  std::set<std::string_view> known;
  for (const Translation& words : AllTranslations()) {
    EXPECT_TRUE(known.insert(words.english).second) << "twice: " << words.english;
    EXPECT_FALSE(words.english.starts_with(" ")) << words.english;
  }
}

TEST(TranslateTest, ChineseHasTheValuesOfTheEnglish) {
  for (const Translation& words : AllTranslations()) {
    const size_t values = CountOf(words.english, "{}"), inOrder = CountOf(words.chinese, "{}");
    EXPECT_NE(words.chinese.find_first_of("\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xef"), std::string_view::npos) << words.chinese;
    if (inOrder > 0) {
      EXPECT_EQ(inOrder, values) << words.english;
      continue;
    }
    for (size_t i = 0; i < 10; ++i) {
      const std::string place = "{" + std::to_string(i) + "}";
      EXPECT_TRUE(i < values || CountOf(words.chinese, place) == 0) << words.english;
    }
  }
}

TEST(TranslateTest, AMessageKeepsWhatTheUserNamed) {
  for (const char* name :
       {"learning rate", "all ranks", "./run: out of memory", "{}", "{0}", "a; b, c", "{} does not exist", "a\nb"}) {
    const std::string path = name;
    EXPECT_EQ(Chinese(Msg("{} does not exist: check the path", path)), path + " 不存在：请检查路径");
    EXPECT_EQ(Chinese(Msg("not compared: {}", BadInput(Msg("{} does not exist", path)).text())),
              "未比对：" + path + " 不存在");
    EXPECT_EQ(Chinese(Message(path)), path);
    EXPECT_EQ(Chinese(Msg("  result: {}\n  report: {}\n", path, path)), "  结果：" + path + "\n  报告：" + path + "\n");
  }
}

TEST(TranslateTest, TextsOfTheProgramAreTranslatedAsAWhole) {
  EXPECT_EQ(
      Chinese(Msg("{} cannot be read ({}): check the path and its permissions", "/x", KnownText("Permission denied"))),
      "/x 无法读取（权限不够）：请检查路径及其权限");
  EXPECT_EQ(Chinese(Msg("rank {} of step {} is left out: {}", 3, 7, Msg("{} does not exist: check the path", "/x"))),
            "step 7 的 rank 3 被略过：/x 不存在：请检查路径");
  EXPECT_EQ(Chinese(KnownText("no such text")), "no such text");
}

TEST(TranslateTest, WhatHasNoEntryStaysButItsMessagesDoNot) {
  EXPECT_EQ(Chinese(Msg("{} ({}) has no entry {{x}}", "x", KnownText("Permission denied"))),
            "x (权限不够) has no entry {x}");
  EXPECT_EQ(InLanguage(Msg("{} does not exist", "x"), Language::kEnglish), "x does not exist");
  EXPECT_EQ(Chinese(Message()), "");
}

TEST(TranslateTest, JoinedMessagesAndFormats) {
  EXPECT_EQ(Chinese(Joined({Msg("{} bit-equal", 3), Message("a, b")}, Msg(", "))), "3 逐位相同，a, b");
  EXPECT_EQ(Chinese(Msg("graph: {} ({:.1f} MB)\n", "a", 1.26)), "图：a（1.3 MB）\n");
}

}  // namespace
}  // namespace msprobe
