#include "judgement/judgement.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

Judgement Of(JudgementKind kind, const char* about = "x") {
  Judgement out;
  out.kind = kind;
  out.about = Message(std::string(about));
  return out;
}

Code EndOf(const std::vector<Judgement>& judgements, std::optional<FailOn> given, ExitRule usual = {}) {
  return StatusOf(Conclude(judgements), given, usual).code();
}

TEST(Judgement, NothingLookedAtIsNotSeen) {
  EXPECT_EQ(Conclude({}).kind, JudgementKind::kNotSeen);
  EXPECT_EQ(EndOf({}, FailOn::kSuspicious), Code::kUndecided);
  EXPECT_EQ(EndOf({}, std::nullopt), Code::kOk);
}

TEST(Judgement, WhatWasSeenInPartDoesNotCountAsPassed) {
  Judgement part = Of(JudgementKind::kBitEqual);
  part.not_seen.emplace_back("the loss");
  EXPECT_EQ(Conclude({Of(JudgementKind::kBitEqual), part}).kind, JudgementKind::kNotSeen);
  EXPECT_EQ(EndOf({part}, FailOn::kSuspicious), Code::kUndecided);
  EXPECT_EQ(EndOf({part}, FailOn::kCannotSay), Code::kFindings);
  part.kind = JudgementKind::kBug;  // a finding stays one
  EXPECT_EQ(Conclude({part}).kind, JudgementKind::kBug);
}

TEST(Judgement, WhatNobodyAskedForDoesNotLowerTheHeadline) {
  Judgement other = Of(JudgementKind::kNotSeen);
  other.asked = false;
  const Conclusion conclusion = Conclude({other, Of(JudgementKind::kRoundOff)});
  EXPECT_EQ(conclusion.kind, JudgementKind::kRoundOff);
  EXPECT_EQ(conclusion.counts[static_cast<size_t>(JudgementKind::kNotSeen)], 1u);
  EXPECT_EQ(Conclude({other}).kind, JudgementKind::kNotSeen);
}

TEST(Judgement, TheWorstIsTheHeadline) {
  const Conclusion conclusion =
      Conclude({Of(JudgementKind::kRoundOff), Of(JudgementKind::kSuspicious, "a"), Of(JudgementKind::kBug, "b"),
                Of(JudgementKind::kBug, "c"), Of(JudgementKind::kNotSeen)});
  EXPECT_EQ(conclusion.kind, JudgementKind::kBug);
  EXPECT_EQ(conclusion.worst->about.English(), "b");
  EXPECT_EQ(HeadlineOf(conclusion).English(), "bug: b");
}

TEST(Judgement, FailOnMeansTheSameForAll) {
  struct Row {
    JudgementKind kind;
    std::array<int, 6> codes;  // in the order of kFailOnNames
  };
  const Row rows[] = {
      {JudgementKind::kBitEqual, {0, 0, 0, 0, 0, 0}},   {JudgementKind::kRoundOff, {0, 0, 0, 0, 0, 1}},
      {JudgementKind::kAnotherWay, {0, 0, 0, 0, 0, 1}}, {JudgementKind::kRandom, {0, 0, 0, 0, 0, 1}},
      {JudgementKind::kTooEarly, {0, 5, 5, 5, 1, 1}},   {JudgementKind::kNotSeen, {0, 5, 5, 5, 1, 1}},
      {JudgementKind::kCannotSay, {0, 5, 5, 5, 1, 1}},  {JudgementKind::kInherited, {0, 5, 5, 5, 1, 1}},
      {JudgementKind::kAskPerson, {0, 5, 5, 1, 1, 1}},  {JudgementKind::kDrift, {0, 0, 1, 1, 1, 1}},
      {JudgementKind::kSuspicious, {0, 0, 1, 1, 1, 1}}, {JudgementKind::kContainsOrigin, {0, 1, 1, 1, 1, 1}},
      {JudgementKind::kBug, {0, 1, 1, 1, 1, 1}},
  };
  for (const Row& row : rows) {
    for (size_t i = 0; i < kFailOnNames.size(); ++i) {
      EXPECT_EQ(static_cast<int>(EndOf({Of(row.kind)}, ParseFailOn(kFailOnNames[i]))), row.codes[i])
          << NameOf(row.kind) << " " << kFailOnNames[i];
    }
  }
}

TEST(Judgement, ACommandKeepsItsUsualEnd) {
  const std::vector<Judgement> open{Of(JudgementKind::kCannotSay)};
  EXPECT_EQ(EndOf(open, std::nullopt, {FailOn::kSuspicious, true}), Code::kUndecided);
  EXPECT_EQ(EndOf(open, std::nullopt, {FailOn::kSuspicious, false}), Code::kOk);
  EXPECT_EQ(EndOf(open, std::nullopt, {FailOn::kCannotSay, false}), Code::kFindings);
  const Status own = StatusOf(Conclude({Of(JudgementKind::kBug)}), std::nullopt, {FailOn::kBug, false},
                              Message(std::string("the runs part")));
  EXPECT_EQ(own.message(), "the runs part");
}

}  // namespace
}  // namespace msprobe
