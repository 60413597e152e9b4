#include "doctor/diagnosis.h"

#include <gtest/gtest.h>

#include "base/message.h"
#include "base/text.h"
#include "doctor/doctor.h"

namespace msprobe {
namespace {

/// Runs whose losses agree up to `step`, and are `apart` from there on, relative.
DoctorEvidence PartingAt(int step, double apart) {
  RunFiles a, b;
  a.given = {"A"};
  b.given = {"B"};
  TrainingLog left, right;
  for (int i = 0; i < 20; ++i) {
    left.steps.push_back({i + 1, {4.0 - 0.1 * i, 5e-7}, {}, {}});
    right.steps.push_back(left.steps.back());
    if (i >= step) right.steps.back().loss.value *= 1 + apart;
  }
  a.logs = {left};
  b.logs = {right};
  DoctorEvidence out;
  out.curves = CompareCurves(a, b, {}, false);
  out.a = a;
  out.b = b;
  return out;
}

ConfigDifference Differs(const std::string& id, StageId effect, bool later) {
  ConfigDifference out;
  out.id = id;
  out.fails = true;
  out.effect = effect;
  out.later = later;
  return out;
}

TEST(Diagnosis, NamesTheStageAtWhichLossesPart) {
  EXPECT_EQ(Diagnose(PartingAt(0, 0.1)).stage, StageId::kStep1Loss);
  EXPECT_EQ(Diagnose(PartingAt(1, 0.1)).stage, StageId::kStep2);
  const Diagnosis late = Diagnose(PartingAt(10, 0.1));
  EXPECT_EQ(late.stage, StageId::kTraining);
  EXPECT_EQ(late.step, 10);
  EXPECT_FALSE(late.exact);
  EXPECT_FALSE(late.bug);
  ASSERT_TRUE(late.next);
  EXPECT_EQ(late.next->commands.size(), 2u);
  EXPECT_NE(late.next->commands[0].find("--step 0,1,9,10"), std::string::npos) << late.next->commands[0];
}

TEST(Diagnosis, EqualLossesAgreeAndSmallDifferencesAreNotDecided) {
  EXPECT_EQ(Diagnose(PartingAt(30, 0)).outcome, Diagnosis::Outcome::kAgree);
  EXPECT_EQ(Diagnose(PartingAt(10, 1e-4)).outcome, Diagnosis::Outcome::kUndecided);
  EXPECT_EQ(Diagnose(DoctorEvidence()).outcome, Diagnosis::Outcome::kUndecided);
}

/// Steps in which small differences add up from an op on.
DoctorEvidence Growing(GraftEvidence::Outcome graft) {
  DoctorEvidence out;
  StoryOrigin origin;
  origin.cause = Cause::kGrows;
  out.dumps.seen = out.dumps.first_step = true;
  out.dumps.steps = {0};
  out.dumps.story.outcome = Story::Outcome::kOrigin;
  out.dumps.story.origins = {origin};
  out.dumps.origin = DumpOrigin{StageId::kStep1Loss, 0, origin, "bug"};
  out.graft.outcome = graft;
  out.graft.step = 0;
  out.graft.modules = {"layers.0", "layers.1"};
  out.graft.module = "layers.1";
  return out;
}

TEST(Diagnosis, WhatModulesGiveWithTheInputsOfTheReferenceDecidesWhereDifferencesAddUp) {
  EXPECT_FALSE(Diagnose(Growing(GraftEvidence::Outcome::kNone)).bug);
  const Diagnosis module = Diagnose(Growing(GraftEvidence::Outcome::kModule));
  EXPECT_TRUE(module.bug);
  EXPECT_EQ(module.cause, "module layers.1");
  EXPECT_EQ(module.stage, StageId::kStep1Loss);
  const Diagnosis inputs = Diagnose(Growing(GraftEvidence::Outcome::kSame));
  EXPECT_FALSE(inputs.bug);
  EXPECT_FALSE(inputs.exact);
  const auto& evidence = inputs.results[static_cast<size_t>(StageId::kStep1Loss)].evidence;
  ASSERT_FALSE(evidence.empty());
  EXPECT_NE(evidence.back().en.find("only the inputs of these modules differ"), std::string::npos);
}

TEST(Diagnosis, OfACutStepAStageBeforeTheOriginHasNoStepsThatAgree) {
  DoctorEvidence cut = Growing(GraftEvidence::Outcome::kNone);
  cut.dumps.whole = false;
  const Diagnosis early = Diagnose(cut);
  const auto& evidence = early.results[static_cast<size_t>(StageId::kWeights)].evidence;
  ASSERT_FALSE(evidence.empty());
  EXPECT_EQ(evidence.back().en, "dumps: no difference here beyond rounding, up to the first op that differs");
}

TEST(Diagnosis, AnOpThatIsNamedStaysTheCauseWhereNoTermExplainsTheUpdate) {
  DoctorEvidence evidence = Growing(GraftEvidence::Outcome::kNone);
  evidence.dumps.origin->stage = StageId::kOptimizer;
  evidence.dumps.origin->origin.cause = Cause::kArgument;
  evidence.dumps.origin->origin.op = "Tensor.__add__.16.forward";
  evidence.optimizer.seen = true;
  evidence.optimizer.how = {"no term that is known", "没有任何已知的项"};
  evidence.optimizer.term = "unknown";
  const Diagnosis op = Diagnose(evidence);
  EXPECT_EQ(op.cause, "argument Tensor.__add__.16.forward");
  EXPECT_TRUE(op.exact);
  evidence.optimizer.term = "eps";
  EXPECT_EQ(Diagnose(evidence).cause, "term eps");
}

/// 20 steps whose losses and norms agree but for rounding, and dumps that begin to differ at an op.
DoctorEvidence AgreeingWith(Cause cause) {
  DoctorEvidence out = PartingAt(30, 0);
  out.curves.norm = out.curves.loss;
  StoryOrigin origin;
  origin.cause = cause;
  origin.op = "Functional.silu.1.forward";
  origin.verdict = RulerVerdict::kSuspicious;
  out.dumps.seen = out.dumps.first_step = true;
  out.dumps.steps = {0};
  out.dumps.story.outcome = Story::Outcome::kOrigin;
  out.dumps.story.origins = {origin};
  out.dumps.origin = DumpOrigin{StageId::kStep1Loss, 0, origin, "suspicious", false};
  return out;
}

TEST(Diagnosis, AnOpThatOnlyOneRunCallsIsNoEvidenceWhereTheOtherHasItsValues) {
  DoctorEvidence evidence = AgreeingWith(Cause::kMissingOp);
  EXPECT_EQ(Diagnose(evidence).outcome, Diagnosis::Outcome::kUndecided);
  evidence.dumps.origin->elsewhere = true;
  EXPECT_EQ(Diagnose(evidence).outcome, Diagnosis::Outcome::kRounding);
  evidence.curves = PartingAt(5, 0.1).curves;
  EXPECT_EQ(Diagnose(evidence).outcome, Diagnosis::Outcome::kParted);
}

TEST(Diagnosis, ASettingOfACallIsTheCauseThoughTheLossesAgree) {
  const Diagnosis d = Diagnose(AgreeingWith(Cause::kArgument));
  EXPECT_EQ(d.outcome, Diagnosis::Outcome::kParted);
  EXPECT_EQ(d.cause, "argument Functional.silu.1.forward");
}

TEST(Diagnosis, SmallDifferencesOfWhichNothingComesAreRounding) {
  DoctorEvidence agreeing = AgreeingWith(Cause::kGrows);
  agreeing.dumps.origin->verdict = "bug";
  EXPECT_EQ(Diagnose(agreeing).outcome, Diagnosis::Outcome::kRounding);
  DoctorEvidence module = agreeing;
  module.graft = Growing(GraftEvidence::Outcome::kModule).graft;
  EXPECT_EQ(Diagnose(module).outcome, Diagnosis::Outcome::kParted);
  DoctorEvidence parting = agreeing;
  parting.curves.norm = PartingAt(5, 1e-4).curves.loss;
  EXPECT_EQ(Diagnose(parting).outcome, Diagnosis::Outcome::kUndecided);
}

TEST(Diagnosis, AMultipleOfTheGradientsIsNamed) {
  DoctorEvidence evidence = PartingAt(30, 0);
  evidence.curves.norm = PartingAt(0, 3).curves.loss;  // four times
  EXPECT_NE(Diagnose(evidence).cause_text.en.find("those of A times 4:"), std::string::npos);
  evidence.curves.norm = PartingAt(0, 0.7).curves.loss;
  EXPECT_EQ(Diagnose(evidence).cause_text.en, "the gradients of step 1 differ");
  // Records of the optimizers show it exactly.
  evidence.optimizer.seen = evidence.optimizer.follows = true;
  evidence.optimizer.step = 0;
  evidence.optimizer.factor = 1.7;
  const Diagnosis d = Diagnose(evidence);
  EXPECT_NE(d.cause_text.en.find("times 1.7:"), std::string::npos);
  const auto& said = d.results[static_cast<size_t>(StageId::kOptimizer)].evidence.front().en;
  EXPECT_NE(said.find("each does what its hyperparameters say"), std::string::npos) << said;
}

TEST(Diagnosis, StepsThatAreCutOtherwiseAgreeWhereAllLossesDo) {
  DoctorEvidence evidence = AgreeingWith(Cause::kShape);
  evidence.dumps.origin.reset();
  evidence.dumps.unknown = true;
  evidence.dumps.unknown_step = 0;
  EXPECT_EQ(Diagnose(evidence).outcome, Diagnosis::Outcome::kUndecided);
  evidence.dumps.story.cut = evidence.dumps.story.origins;
  EXPECT_EQ(Diagnose(evidence).outcome, Diagnosis::Outcome::kRounding);
}

TEST(Diagnosis, DataThatDifferComeFirstAndALaterCauseIsToldToo) {
  DoctorEvidence evidence = AgreeingWith(Cause::kDType);
  evidence.curves = PartingAt(0, 0.1).curves;
  evidence.dumps.origin->verdict = "bug";
  evidence.dumps.given = GivenData{"Functional.nll_loss.0.forward", "input.1", "Min -1", "Min 0"};
  evidence.dumps.given_step = 0;
  const Diagnosis d = Diagnose(evidence);
  EXPECT_EQ(d.stage, StageId::kData);
  EXPECT_TRUE(d.exact);
  ASSERT_EQ(d.also.size(), 1u);
  EXPECT_NE(d.also[0].en.find("loss of step 1"), std::string::npos);
}

TEST(Diagnosis, WhatAGraftCannotSayIsSaidInBothLanguages) {
  DoctorEvidence evidence = Growing(GraftEvidence::Outcome::kUnknown);
  for (const Message& why :
       {Msg("no module of B got an input of A"), Msg("ops of the modules cannot be held against each other"),
        Msg("an input of {} could not be loaded and differs", "layers.1"),
        Msg("small differences add up in {}, and no op of it stands out", "layers.1"),
        Msg("A has no recorded step {}", 7)}) {
    evidence.graft.why = why;
    const BothWords said = Diagnose(evidence).results[static_cast<size_t>(StageId::kStep1Loss)].evidence.back();
    EXPECT_EQ(said.en, std::string("graft: step 1 says nothing: ") + why.English());
    EXPECT_TRUE(StartsWith(said.zh, "移植输入：第 1 步无法判断："));
    EXPECT_EQ(said.zh.find(why.English().substr(0, 5)), std::string::npos) << said.zh;
  }
}

TEST(Diagnosis, AConfigurationIsTheCauseOnlyOfWhatItCanChange) {
  DoctorEvidence evidence = PartingAt(1, 0.1);
  evidence.config.seen = true;
  evidence.config.differences = {Differs("optimizer.beta2", StageId::kOptimizer, true)};
  Diagnosis d = Diagnose(evidence);
  EXPECT_EQ(d.stage, StageId::kConfig);
  EXPECT_EQ(d.cause, "rule optimizer.beta2");
  evidence = PartingAt(0, 0.1);
  evidence.config.seen = true;
  evidence.config.differences = {Differs("optimizer.beta2", StageId::kOptimizer, true)};
  d = Diagnose(evidence);  // the first loss knows no optimizer
  EXPECT_EQ(d.stage, StageId::kStep1Loss);
  ASSERT_EQ(d.also.size(), 1u);
  EXPECT_NE(d.also[0].en.find("does not explain"), std::string::npos);
}

TEST(Diagnosis, ALowerLossIsCalledLower) {
  for (const double apart : {0.07, -0.07}) {
    DoctorEvidence evidence = PartingAt(3, 0.1);
    evidence.curves.loss.mean_difference = apart;
    const Diagnosis diagnosis = Diagnose(evidence);
    std::string said;
    for (const BothWords& line : diagnosis.results[static_cast<size_t>(StageId::kTraining)].evidence) {
      said += line.en + "\n" + line.zh + "\n";
    }
    EXPECT_EQ(said.find("-0.07"), std::string::npos) << said;
    EXPECT_NE(said.find(apart > 0 ? "is 0.07 higher than" : "is 0.07 lower than"), std::string::npos) << said;
  }
}

TEST(Diagnosis, BatchesGoBeforeWhatTheyCause) {
  DoctorEvidence evidence = PartingAt(0, 0.1);
  evidence.batches.compared = 1;
  evidence.batches.first = 0;
  evidence.batches.how = {"tokens differ", "tokens 不同"};
  const Diagnosis d = Diagnose(evidence);
  EXPECT_EQ(d.stage, StageId::kData);
  EXPECT_TRUE(d.exact);
}

TEST(Diagnosis, TheHeadlineSaysWhichStepOfADumpIsMeant) {
  DoctorReport report;
  report.evidence = PartingAt(1, 0.1);
  report.diagnosis = Diagnose(report.evidence);
  EXPECT_NE(DoctorText(report, Language::kEnglish).find("\", step 2.\n"), std::string::npos);
  report.evidence.dumps.seen = true;
  EXPECT_NE(DoctorText(report, Language::kEnglish).find("\", step 2 (step 1 of the dumps).\n"), std::string::npos);
  EXPECT_NE(DoctorText(report, Language::kChinese).find("（第 2 步，即 dump 的 step 1）分叉。\n"), std::string::npos);
}

}  // namespace
}  // namespace msprobe
