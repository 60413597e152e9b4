#include "certify/resume_verdict.h"

#include <gtest/gtest.h>

#include "json/parser.h"

namespace msprobe {
namespace {

RankResume Judge(const std::string& straight, const std::string& killed, const std::string& resumed) {
  JsonDoc a, b, c;
  EXPECT_TRUE(ParseJson(straight, "straight", &a).ok());
  EXPECT_TRUE(ParseJson(killed, "killed", &b).ok());
  EXPECT_TRUE(ParseJson(resumed, "resumed", &c).ok());
  auto result = JudgeResume("rank", 1, a, b, c);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : RankResume();
}

/// A run that began steps 0 and 1 with these states, and whose step 1 had this loss.
std::string RunText(const std::string& first, const std::string& then, const std::string& more = "",
                    const std::string& loss = "7") {
  std::string out = R"({"before": [)";
  if (!first.empty()) out += R"({"step": 0, "batch": ["b0"], "states": {)" + first + "}}, ";
  out += R"({"step": 1, "batch": ["b1"], "states": {)" + then + R"(}}], "steps": [)";
  if (!first.empty()) out += R"({"losses": [{"checksum": "l0"}]}, )";
  return out + R"({"losses": [{"checksum": "l)" + loss + R"("}]}])" + more + "}";
}

const char* const kFirst =
    R"("optimizer": {}, "tensor": {"average": "a0"}, "number": {"count": "0"}, "random": {"torch": "t0"})";
const char* const kThen =
    R"("optimizer": {"m": "m1"}, "tensor": {"average": "a1"}, "number": {"count": "1"}, "random": {"torch": "t1"})";

std::string With(const std::string& text, const std::string& from, const std::string& to) {
  std::string out = text;
  return out.replace(out.find(from), from.size(), to);
}

TEST(ResumeVerdict, EqualRunsAreEqual) {
  const RankResume r = Judge(RunText(kFirst, kThen), RunText(kFirst, kThen), RunText("", kThen));
  EXPECT_EQ(r.outcome, ResumeOutcome::kEqual);
  EXPECT_EQ(r.steps, 1);
  EXPECT_EQ(r.compared, 5u);
}

TEST(ResumeVerdict, NamesWhatIsNotThereAndWhatIsAsAtTheFirstStep) {
  const RankResume r = Judge(RunText(kFirst, kThen), RunText(kFirst, kThen),
                             RunText("", With(With(kThen, R"("m": "m1")", ""), "a1", "a0")));
  EXPECT_EQ(r.outcome, ResumeOutcome::kLost);
  ASSERT_EQ(r.lost.size(), 2u);
  EXPECT_EQ(r.lost[0].kind, "optimizer");
  EXPECT_TRUE(r.lost[0].missing());
  EXPECT_EQ(r.lost[1].names[0].name, "average");
  EXPECT_TRUE(r.lost[1].all_first());
  EXPECT_FALSE(r.after);
}

TEST(ResumeVerdict, AnAverageThatIsMadeLaterIsLostWhenItIsStillNone) {
  const std::string none = With(With(kThen, R"("average": "a1")", ""), R"("count")", R"("average": "None", "count")");
  const std::string first = With(With(kFirst, R"("average": "a0")", ""), R"("count")", R"("average": "None", "count")");
  const RankResume r = Judge(RunText(first, kThen), RunText(first, kThen), RunText("", none));
  ASSERT_EQ(r.lost.size(), 1u);
  EXPECT_EQ(r.lost[0].kind, "tensor");
}

TEST(ResumeVerdict, ANumberIsToldAndOnlyLostWhereNothingElseExplainsTheSteps) {
  const std::string other = With(kThen, R"("1")", R"("0")");
  const RankResume told = Judge(RunText(kFirst, kThen), RunText(kFirst, kThen), RunText("", other));
  EXPECT_EQ(told.outcome, ResumeOutcome::kEqual);
  ASSERT_EQ(told.suspects.size(), 1u);
  const RankResume lost = Judge(RunText(kFirst, kThen), RunText(kFirst, kThen), RunText("", other, "", "8"));
  EXPECT_EQ(lost.outcome, ResumeOutcome::kLost);
  EXPECT_EQ(lost.lost[0].kind, "number");
  const RankResume neither = Judge(RunText(kFirst, kThen), RunText(kFirst, kThen), RunText("", kThen, "", "8"));
  EXPECT_EQ(neither.outcome, ResumeOutcome::kUnexplained);
}

/// Runs of an object `ema` with a count; `later` is a weight of its average a step after the resume.
std::string CountedRun(const std::string& count, const std::string& later, bool begins, const char* owners) {
  const auto states = [](const std::string& n, const std::string& weight) {
    return R"("object": {"ema.shadow": ")" + weight + R"("}, "number": {"ema.n": ")" + n + R"("})";
  };
  const auto entry = [&](int step, const std::string& inside) {
    return R"({"step": )" + std::to_string(step) + R"(, "batch": ["b)" + std::to_string(step) + R"("], "owners": )" +
           owners + R"(, "states": {)" + inside + "}}";
  };
  std::string out = R"({"before": [)";
  if (begins) out += entry(0, states("0", "w0")) + ", ";
  out += entry(1, states(count, "w1")) + ", " + entry(2, states(count + "1", later)) + R"(], "steps": [)";
  if (begins) out += R"({"losses": [{"checksum": "l0"}]}, )";
  return out + R"({"losses": [{"checksum": "l1"}]}]})";
}

TEST(ResumeVerdict, ACountIsLostWhereAStateThatWasRestoredThenBecomesAnother) {
  const char* const saves = R"({"ema": "saves"})";
  const std::string whole = CountedRun("4", "w2", true, saves);
  const RankResume lost = Judge(whole, whole, CountedRun("0", "other", false, saves));
  EXPECT_EQ(lost.outcome, ResumeOutcome::kLost);
  ASSERT_EQ(lost.lost.size(), 1u);
  EXPECT_EQ(lost.lost[0].names[0].name, "ema.n");
  EXPECT_NE(lost.lost[0].explanation.find("ema.shadow"), std::string::npos);
  // Nothing follows from it as far as the steps go.
  const RankResume perhaps = Judge(whole, whole, CountedRun("0", "w2", false, saves));
  EXPECT_EQ(perhaps.outcome, ResumeOutcome::kUndecided);
  ASSERT_EQ(perhaps.perhaps.size(), 1u);
  EXPECT_EQ(perhaps.perhaps[0].names[0].name, "ema.n");
}

TEST(ResumeVerdict, ACountOfAnObjectThatSavesNothingMayStartAnew) {
  const char* const holds = R"({"ema": "holds"})";
  const std::string whole = CountedRun("4", "w2", true, holds);
  EXPECT_EQ(Judge(whole, whole, CountedRun("0", "w2", false, holds)).outcome, ResumeOutcome::kEqual);
  EXPECT_EQ(Judge(whole, whole, CountedRun("0", "other", false, holds)).outcome, ResumeOutcome::kLost);
  // Of a function no number belongs to what another variable of it leads to.
  const std::string local = CountedRun("4", "w2", true, "{}");
  EXPECT_EQ(Judge(local, local, CountedRun("0", "other", false, "{}")).outcome, ResumeOutcome::kEqual);
}

TEST(ResumeVerdict, OfAScheduleThatFollowsAMetricTheBestIsToldBeforeTheCount) {
  const char* const first = R"("scheduler": {"s.last_epoch": "0", "s.best": "inf"})";
  const char* const then = R"("scheduler": {"s.last_epoch": "1", "s.best": "0.5"})";
  const RankResume r = Judge(RunText(first, then), RunText(first, then), RunText("", first));
  ASSERT_EQ(r.lost.size(), 1u);
  ASSERT_EQ(r.lost[0].names.size(), 2u);
  EXPECT_EQ(r.lost[0].names[0].name, "s.best");
  EXPECT_EQ(r.lost[0].names[1].is, "0");
}

TEST(ResumeVerdict, ANewIteratorMayDrawFromWhatWasRestored) {
  const std::string killed = RunText(kFirst, kThen, R"(, "torch_states": ["t1"])");
  const std::string drawn = With(kThen, "t1", "t9");
  const RankResume r =
      Judge(RunText(kFirst, kThen), killed, RunText("", drawn, R"(, "iterators": [{"before": ["t1"]}])"));
  EXPECT_EQ(r.outcome, ResumeOutcome::kFrameworkDraws);
  const RankResume lost =
      Judge(RunText(kFirst, kThen), killed, RunText("", drawn, R"(, "iterators": [{"before": ["t3"]}])"));
  EXPECT_EQ(lost.outcome, ResumeOutcome::kLost);
  EXPECT_EQ(lost.lost[0].names[0].name, "torch");
}

TEST(ResumeVerdict, WhatDiffersInEveryRunIsNotJudged) {
  const RankResume r =
      Judge(RunText(kFirst, With(kThen, "t1", "t2")), RunText(kFirst, kThen), RunText("", With(kThen, "t1", "t3")));
  EXPECT_EQ(r.outcome, ResumeOutcome::kEqual);
  ASSERT_EQ(r.unjudged.size(), 1u);
}

TEST(ResumeVerdict, ARunThatStopsEarlyIsAnError) {
  JsonDoc whole, cut;
  ASSERT_TRUE(ParseJson(RunText(kFirst, kThen), "a", &whole).ok());
  ASSERT_TRUE(ParseJson(R"({"before": [], "steps": []})", "b", &cut).ok());
  EXPECT_EQ(JudgeResume("rank", 1, whole, whole, cut).status().code(), Code::kBadInput);
  EXPECT_EQ(JudgeResume("rank", 1, cut, cut, cut).status().code(), Code::kBadInput);
}

}  // namespace
}  // namespace msprobe
