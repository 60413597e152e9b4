#include "judge/law_events.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "base/temp_directory.h"
#include "judge/judge_directory.h"

namespace msprobe {
namespace {

BrokenLaw Law(const std::string& law, int64_t step, size_t rank, const std::string& name) {
  BrokenLaw one;
  one.law = law;
  one.text = "it does not hold";
  one.step = step;
  one.names = {name};
  one.ranks = {rank};
  return one;
}

void Write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST(LawFile, WhatIsBrokenIsReadAndTheRestRefused) {
  const auto directory = TempDirectory::Create(testing::TempDir(), "laws");
  ASSERT_TRUE(directory.ok());
  const std::string path = JoinPath(directory->path(), "laws.json");
  std::vector<BrokenLaw> laws;
  EXPECT_TRUE(ReadBrokenLaws(path, 0, &laws).ok());  // laws were not asked for
  EXPECT_TRUE(laws.empty());
  Write(path, R"({"rank": 3, "step": 9, "laws": {"tied": {"looks": 4, "broken": []}, "clip":
      {"broken": [{"name": "0:fc.weight", "step": 5, "last_step": 8, "times": 2, "text": "too large", "rank": null},
                  {"name": "", "step": 6, "last_step": 6, "times": 1, "text": "of all", "rank": 1}]}}})");
  ASSERT_TRUE(ReadBrokenLaws(path, 3, &laws).ok());
  ASSERT_EQ(laws.size(), 2U);
  EXPECT_EQ(laws[0].law, "clip");
  EXPECT_EQ(laws[0].names, std::vector<std::string>{"0:fc.weight"});
  EXPECT_FALSE(laws[0].culprit);
  EXPECT_TRUE(laws[1].names.empty());
  EXPECT_EQ(laws[1].culprit, 1);
  for (const char* text : {"{", "[]", R"({"laws": 1})", R"({"laws": {"clip": {"broken": [{"step": 1}]}}})"}) {
    Write(path, text);
    EXPECT_EQ(ReadBrokenLaws(path, 0, &laws).code(), Code::kBadInput) << text;
  }
}

TEST(LawFile, WhatRanksSayAlikeIsOne) {
  const auto all = TogetherOf({Law("update", 4, 0, "a"), Law("update", 4, 1, "a"), Law("update", 4, 1, "b")}, 2);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].names, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(all[0].culprit);
  EXPECT_EQ(TogetherOf({Law("update", 4, 1, "a")}, 2)[0].culprit, 1);
  EXPECT_FALSE(TogetherOf({Law("update", 4, 0, "a")}, 1)[0].culprit);
  // Rank 0 says it of all: it is not the guilty one.
  const BrokenLaw replicas = TogetherOf({Law("replicas", 4, 0, "a")}, 2)[0];
  EXPECT_TRUE(replicas.undecided && !replicas.culprit);
}

TEST(LawEvents, ALawIsEvidenceOfTheChangeBesideIt) {
  JudgedEvent change;
  change.onset = change.told = 300;
  change.rank_undecided = true;
  std::vector<JudgedEvent> events{change};
  BrokenLaw replicas = Law("replicas", 320, 0, "a");
  replicas.culprit = 2;
  AddLaws({Law("clip", 3, 1, "b"), Law("clip", 3, 1, "c"), replicas}, INT64_MIN, &events);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_TRUE(events[0].by_law);
  EXPECT_EQ(events[0].layers, (std::vector<std::string>{"b", "c"}));
  ASSERT_EQ(events[1].laws.size(), 1U);
  EXPECT_EQ(events[1].culprit, 2);  // three ranks and more: the laws have a majority
  EXPECT_FALSE(events[1].rank_undecided);
  Judgement judgement;
  judgement.ranks = 3;
  judgement.events = events;
  EXPECT_NE(JudgementText(judgement).English().find("step 3: law clip broken, b: it does not hold\n"),
            std::string::npos);
  EXPECT_NE(
      JudgementText(judgement).English().find("  step 320: law replicas broken, a: it does not hold, rank 2 only"),
      std::string::npos);
  EXPECT_NE(EventJson(events[0], judgement).find("\"law_clip\""), std::string::npos);
  std::vector<JudgedEvent> later;
  AddLaws({Law("clip", 3, 1, "b")}, 4, &later);
  EXPECT_TRUE(later.empty());
}

}  // namespace
}  // namespace msprobe
