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
  RankLaws read;
  EXPECT_TRUE(ReadLaws(path, 0, &read).ok());  // laws were not asked for
  EXPECT_TRUE(read.broken.empty());
  Write(path, R"({"rank": 3, "step": 9, "laws": {"tied": {"looks": 4, "broken": []}, "clip":
      {"broken": [{"name": "0:fc.weight", "step": 5, "last_step": 8, "times": 2, "text": "too large", "rank": null},
                  {"name": "", "step": 6, "last_step": 6, "times": 1, "text": "of all", "rank": 1}]}}})");
  ASSERT_TRUE(ReadLaws(path, 3, &read).ok());
  const std::vector<BrokenLaw>& laws = read.broken;
  EXPECT_EQ(read.held, 1U);
  ASSERT_EQ(laws.size(), 2U);
  EXPECT_EQ(laws[0].law, "clip");
  EXPECT_EQ(laws[0].names, std::vector<std::string>{"0:fc.weight"});
  EXPECT_FALSE(laws[0].culprit);
  EXPECT_TRUE(laws[1].names.empty());
  EXPECT_EQ(laws[1].culprit, 1);
  for (const char* text : {"{", "[]", R"({"laws": 1})", R"({"laws": {"clip": {"broken": [{"step": 1}]}}})"}) {
    Write(path, text);
    EXPECT_EQ(ReadLaws(path, 0, &read).code(), Code::kBadInput) << text;
  }
}

TEST(LawFile, ALawThatWasLookedAtInPartIsNotHeld) {
  const auto directory = TempDirectory::Create(testing::TempDir(), "laws");
  ASSERT_TRUE(directory.ok());
  const std::string path = JoinPath(directory->path(), "laws.json");
  Write(path, R"({"laws": {"tied": {"looks": 4, "broken": []},
      "accumulation": {"looks": 4, "partly_not_checked": "the model returns no loss", "broken": []},
      "experts": {"looks": 0, "not_checked": "the model has no experts", "broken": []}}})");
  RankLaws laws;
  ASSERT_TRUE(ReadLaws(path, 0, &laws).ok());
  ASSERT_TRUE(ReadLaws(path, 1, &laws).ok());
  EXPECT_EQ(laws.held, 2U);
  ASSERT_EQ(laws.unseen.size(), 2U);
  EXPECT_TRUE(laws.unseen[0].in_part);
  EXPECT_EQ(laws.unseen[0].ranks, (std::set<size_t>{0, 1}));
  JudgedDirectory run;
  run.steps = 1000;
  EXPECT_EQ(Conclude(JudgementsOf(run)).kind, JudgementKind::kRoundOff);
  run.unseen_laws = {laws.unseen[1]};  // what does not occur breaks no law
  EXPECT_EQ(Conclude(JudgementsOf(run)).kind, JudgementKind::kRoundOff);
  run.unseen_laws = laws.unseen;
  EXPECT_EQ(Conclude(JudgementsOf(run)).kind, JudgementKind::kNotSeen);
  EXPECT_NE(JudgementText(run).English().find("law accumulation was looked at in part"), std::string::npos);
  run.steps = 100;
  run.unseen_laws.clear();
  EXPECT_EQ(Conclude(JudgementsOf(run)).kind, JudgementKind::kTooEarly);
  EXPECT_EQ(JudgementText(run).English().find("no change"), std::string::npos);
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
  JudgedDirectory judgement;
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
