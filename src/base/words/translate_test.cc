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

std::string Chinese(std::string_view text) { return InLanguage(text, Language::kChinese); }

/// The English with values that no text has.
std::string Instance(std::string_view english) {
  std::string out(english);
  for (size_t at; (at = out.find("{}")) != std::string::npos;) out.replace(at, 2, "~");
  return out;
}

TEST(TranslateTest, AnInstanceOfAnEntryFindsThatEntry) {
  std::set<std::string_view> known;
  for (const Translation& words : AllTranslations()) {
    EXPECT_TRUE(known.insert(words.english).second) << "twice: " << words.english;
    const Translation* found = FindTranslation(Instance(words.english));
    ASSERT_NE(found, nullptr) << words.english;
    EXPECT_EQ(found->english, words.english) << "is hidden by another entry";
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
    // Only what makes a word plural may be left out.
    if (values > 0) EXPECT_GE(CountOf(words.chinese, "{") + CountOf(words.english, "graph{}"), values) << words.english;
  }
}

TEST(TranslateTest, WildcardsHaveEnoughAroundThem) {
  for (const Translation& words : AllTranslations()) {
    EXPECT_GE(words.english.size(), 4 + 2 * CountOf(words.english, "{}")) << words.english;
    // A single word may be somebody's name.
    if (!Contains(words.english, "{}")) EXPECT_TRUE(Contains(words.english, " ")) << words.english;
  }
}

TEST(TranslateTest, ErrorsKeepNamesAndNumbers) {
  EXPECT_EQ(Chinese("/d/a b.json does not exist: check the path"), "/d/a b.json 不存在：请检查路径");
  EXPECT_EQ(Chinese("/d: x is not UTF-8 text: save it as UTF-8"), "/d: x 不是 UTF-8 文本：请存为 UTF-8");
  EXPECT_EQ(Chinese("/x cannot be read (Permission denied): check the path and its permissions"),
            "/x 无法读取（权限不够）：请检查路径及其权限");
  EXPECT_EQ(Chinese("rank 3 of step 7 is left out: /x does not exist: check the path"),
            "step 7 的 rank 3 被略过：/x 不存在：请检查路径");
}

TEST(TranslateTest, AMessageKeepsWhatTheUserNamed) {
  const auto chinese = [](const Message& message) { return InLanguage(message, Language::kChinese); };
  for (const char* name :
       {"learning rate", "all ranks", "./run: out of memory", "{}", "a; b, c", "{} does not exist"}) {
    const std::string path = name;
    EXPECT_EQ(chinese(Msg("{} does not exist: check the path", path)), path + " 不存在：请检查路径");
    EXPECT_EQ(chinese(Msg("not compared: {}", BadInput(Msg("{} does not exist", path)).text())),
              "未比对：" + path + " 不存在");
    EXPECT_EQ(chinese(Message(path)), path);
    EXPECT_EQ(chinese(Msg("  result: {}\n  report: {}\n", path, path)), "  结果：" + path + "\n  报告：" + path + "\n");
  }
  EXPECT_EQ(chinese(Msg("{} ({}) has no entry", "x", Part("Permission denied"))), "x (权限不够) has no entry");
  EXPECT_EQ(InLanguage(Msg("{} does not exist", "x"), Language::kEnglish), "x does not exist");
}

TEST(TranslateTest, PiecesAndIndentation) {
  EXPECT_EQ(Chinese("  here: /x does not exist: check the path\n\nother\n"),
            "  here: /x 不存在：请检查路径\n\nother\n");
  EXPECT_EQ(Chinese("step: out of memory"), "step：内存不足");
}

TEST(TranslateTest, LinesAboutADifferenceAreWholeSentences) {
  EXPECT_EQ(
      Chinese("  first difference: Functional.linear.2.forward (m.py:164 in forward) in Module.a.Linear.forward.0: "
              "input.1 Norm differs by 25 %; a parameter differs before it is used"),
      "  首个差异：Functional.linear.2.forward（m.py:164，forward），位于 Module.a.Linear.forward.0：input.1 Norm "
      "相差 25 %；参数在使用前就已不一致");
  EXPECT_EQ(Chinese("  first difference: Distributed.all_reduce.12.forward (g.py:140 in f): output.0 Norm NaN against "
                    "0.338383, inputs are equal; it comes from other ranks"),
            "  首个差异：Distributed.all_reduce.12.forward（g.py:140，f）：output.0 的 Norm 为 NaN，标杆为 "
            "0.338383，输入相等；来自其他 rank");
  EXPECT_EQ(Chinese("why        parameters.weight is bad: it was already bad when step0 began"),
            "原因       parameters.weight 异常：在 step0 开始之前就已异常");
}

TEST(TranslateTest, WhatHasNoEntryStays) {
  for (const char* text :
       {"", "step  rank  findings", "\n", "Functional.linear.0.forward", "{}", "a: b, c; d", "结论：一致"}) {
    EXPECT_EQ(Chinese(text), text);
  }
  const std::string large(1 << 20, ',');
  EXPECT_EQ(Chinese(large), large);
  EXPECT_EQ(InLanguage("out of memory", Language::kEnglish), "out of memory");
}

}  // namespace
}  // namespace msprobe
