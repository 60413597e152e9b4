#include <gtest/gtest.h>

#include <cmath>

#include "optimizer/compare_records.h"
#include "optimizer/optimizer_record.h"
#include "optimizer/terms.h"
#include "optimizer/weight_check.h"

namespace msprobe {
namespace {

WeightValues OneElement(double before, double grad, double m, double v, double steps) {
  WeightValues out;
  out.dtype = out.coarsest = DType::kFloat64;
  out.shape = {1};
  out.steps = steps;
  out.before = {before};
  out.grad = {grad};
  for (const auto& [role, value] : {std::pair{StateRole::kFirst, m}, {StateRole::kSecond, v}}) {
    StateValues& state = out.states[static_cast<size_t>(role)];
    state.recorded = state.had_before = true;
    state.dtype = DType::kFloat64;
    state.before = {value};
  }
  return out;
}

UpdateRule AdamWRule() {
  UpdateRule rule;
  rule.kind = OptimizerKind::kAdamW;
  rule.lr = 0.1;
  rule.weight_decay = 0.5;
  return rule;
}

OptimizerRecord RecordWithRate(double rate, int64_t length) {
  OptimizerRecord out;
  RecordedStep& step = out.steps.emplace_back();
  step.groups = {AdamWRule()};
  step.groups[0].lr = rate;
  RecordedWeight& weight = step.weights.emplace_back();
  weight.name = "w";
  weight.before.shape = {length};
  return out;
}

TEST(RecordsTest, ANumberRoundedToFloatIsNoOtherSetting) {
  // Weights of two shapes, so that their elements are not looked at.
  const auto what = [](double rate) {
    const auto found = CompareRecords(RecordWithRate(0.1, 1), RecordWithRate(rate, 2));
    return found.ok() && !found->empty() ? found->front().what : std::string();
  };
  EXPECT_EQ(what(static_cast<double>(0.1F)), "shape");
  EXPECT_EQ(what(0.100001), "lr");
}

TEST(UpdateTest, AdamWAsItIsWritten) {
  WeightValues in = OneElement(2, 4, 1, 3, 3);
  in.states[0].after = {0.9 * 1 + 0.1 * 4};
  in.states[1].after = {0.999 * 3 + 0.001 * 16};
  const double c1 = 1 - std::pow(0.9, 3), c2 = 1 - std::pow(0.999, 3);
  const double expected = 2 * (1 - 0.05) - 0.1 / c1 * 1.3 / (std::sqrt(3.013 / c2) + 1e-8);
  in.after = {expected};
  const UpdatedWeight out = ApplyRule(AdamWRule(), in);
  ASSERT_TRUE(out.computed);
  EXPECT_DOUBLE_EQ(out.weight[0], expected);
  EXPECT_TRUE(CheckUpdate(AdamWRule(), in).fine());
  in.after[0] += 1e-12;
  EXPECT_FALSE(CheckUpdate(AdamWRule(), in).fine());
}

TEST(UpdateTest, ABFloat16WeightLosesSmallUpdates) {
  WeightValues in = OneElement(1, 1, 0, 0, 1);
  in.dtype = in.coarsest = DType::kBFloat16;
  in.states[0].after = {0.1};
  in.states[1].after = {0.001};
  UpdateRule rule = AdamWRule();
  rule.lr = 1e-4;
  in.after = {1};
  const WeightCheck check = CheckUpdate(rule, in);
  EXPECT_TRUE(check.fine());
  EXPECT_EQ(check.lost, 1u);
  in.after = {0.5};
  EXPECT_FALSE(CheckUpdate(rule, in).fine());
}

TEST(UpdateTest, WithoutStatesNothingIsComputed) {
  WeightValues in = OneElement(1, 1, 0, 0, 1);
  in.after = {1};
  in.states[1].recorded = false;
  EXPECT_FALSE(CheckUpdate(AdamWRule(), in).computed);
}

TEST(TermsTest, EachChangesTheRuleOrSaysThatItDoesNot) {
  for (const UpdateTerm& term : UpdateTerms()) {
    for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdam, OptimizerKind::kAdamW,
                                     OptimizerKind::kLion, OptimizerKind::kAdafactor, OptimizerKind::kMuon}) {
      UpdateRule rule;
      rule.kind = kind;
      if (!term.apply({}, &rule)) continue;
      // A rule that has it already is not changed to itself, but for switches that go back and forth.
      EXPECT_FALSE(term.text.empty());
    }
  }
}

TEST(TermsTest, TwoOfWhichOneTakesBackTheOtherChangeNothing) {
  UpdateRule rule = AdamWRule();
  FittedNumbers fitted;
  fitted.weight_decay = FittedNumber{rule.weight_decay * 1.004, 0.01};  // the same but for chance
  UpdateRule both = rule;
  size_t applied = 0;
  for (const UpdateTerm& term : UpdateTerms()) {
    if (term.id == "weight_decay_missing" || term.id == "weight_decay") applied += term.apply(fitted, &both);
  }
  EXPECT_EQ(applied, 2u);
  EXPECT_TRUE(IsSameRule(rule, both));
  both.beta2 = 0.95;
  EXPECT_FALSE(IsSameRule(rule, both));
}

TEST(TermsTest, AStateThatLosesDigitsIsFound) {
  WeightValues in;
  in.shape = {64};
  for (auto& state : in.states) state.recorded = false;
  for (const StateRole role : {StateRole::kFirst, StateRole::kSecond}) {
    StateValues& state = in.states[static_cast<size_t>(role)];
    state.recorded = state.had_before = true;
    state.before.assign(64, 0);
  }
  UpdateRule rule = AdamWRule();
  const auto fill = [&](bool coarse) {
    in.before.clear(), in.after.clear(), in.grad.clear();
    for (StateValues& state : in.states) state.after.clear();
    for (int i = 1; i <= 64; ++i) {
      const double g = 0.01 * i + 0.003, v = 0.001 * g * g, w = 0.1 * i;
      const int exponent = std::ilogb(v) - 7;
      const double kept = coarse ? std::ldexp(std::nearbyint(std::ldexp(v, -exponent)), exponent) : v;
      in.before.push_back(w);
      in.grad.push_back(g);
      in.states[0].after.push_back(static_cast<float>(0.1 * g));
      in.states[1].after.push_back(static_cast<float>(kept));
    }
    in.after = ApplyRule(rule, in).weight;
    NumberFit fit;
    fit.Add(rule, in);
    return fit.Result();
  };
  EXPECT_EQ(fill(false).held_bits, 0);
  EXPECT_TRUE(CheckUpdate(rule, in).fine());
  const FittedNumbers fitted = fill(true);
  EXPECT_EQ(fitted.held_bits, 7);
  EXPECT_FALSE(CheckUpdate(rule, in).fine());
  rule.held_bits = fitted.held_bits;
  EXPECT_TRUE(CheckUpdate(rule, in).fine());
}

TEST(OptimizerKindTest, NamesOfClasses) {
  EXPECT_EQ(ParseOptimizerKind("FusedAdam"), OptimizerKind::kAdam);
  EXPECT_EQ(ParseOptimizerKind("AdamWeightDecay"), OptimizerKind::kAdamW);
  EXPECT_EQ(ParseOptimizerKind("DistributedMuon"), OptimizerKind::kMuon);
  EXPECT_EQ(ParseOptimizerKind("NAdam"), OptimizerKind::kUnknown);
  EXPECT_EQ(ParseOptimizerKind("LBFGS"), OptimizerKind::kUnknown);
}

TEST(HyperparameterTest, ByNameAndValue) {
  UpdateRule rule;
  EXPECT_TRUE(SetHyperparameter("lr", "1e-3", &rule).ok());
  EXPECT_DOUBLE_EQ(rule.lr, 1e-3);
  EXPECT_TRUE(SetHyperparameter("amsgrad", "true", &rule).ok());
  EXPECT_TRUE(rule.amsgrad);
  for (const auto& [name, value] : {std::pair{"lr", "fast"}, {"speed", "1"}, {"amsgrad", "1"}}) {
    EXPECT_EQ(SetHyperparameter(name, value, &rule).code(), Code::kUsage) << name;
  }
}

TEST(UlpTest, OfEachType) {
  EXPECT_EQ(UlpAt(1, DType::kBFloat16), 0x1p-7);
  EXPECT_EQ(UlpAt(-3, DType::kFloat32), 0x1p-22);
  EXPECT_EQ(UlpAt(0, DType::kFloat16), 0x1p-24);
}

}  // namespace
}  // namespace msprobe
