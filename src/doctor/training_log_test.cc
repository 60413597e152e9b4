#include "doctor/training_log.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

TEST(TrainingLog, ReadsTheLinesOfEachFramework) {
  const struct {
    std::string_view text;
    double loss;
    int64_t number;
    double norm, rate;  // 0: none
  } cases[] = {
      {" iteration       12/   1000 | consumed samples: 48 | learning rate: 1.000000E-02 | lm loss: 3.912023E+00 | "
       "loss scale: 1.0 | grad norm: 1.250 | number of skipped iterations:   0 |\n",
       3.912023, 12, 1.25, 0.01},
      {"INFO - { Epoch:[  1/  1], step:[   12/ 6500], loss: 3.912023, per_step_time: 12ms, lr: 1e-02, overflow cond: "
       "False, loss_scale: 1.0, global_norm: [1.25], train_throughput_per_npu: 1.0\n",
       3.912023, 12, 1.25, 0.01},
      {"{'loss': 3.912023, 'grad_norm': 1.25, 'learning_rate': 0.01, 'epoch': 0.1}\n", 3.912023, 1, 1.25, 0.01},
      {"epoch 0 step 12 loss 3.912023\n", 3.912023, 12, 0, 0},
      {"step=12 train_loss=3.912023 lr=0.01\n", 3.912023, 12, 0, 0.01},
      {"step,loss,lr\n12,3.912023,0.01\n", 3.912023, 12, 0, 0.01},
  };
  for (const auto& c : cases) {
    const TrainingLog log = ReadTrainingLog(c.text, "x.log");
    ASSERT_EQ(log.steps.size(), 1u) << c.text;
    EXPECT_DOUBLE_EQ(log.steps[0].loss.value, c.loss) << c.text;
    EXPECT_EQ(log.steps[0].number, c.number) << c.text;
    EXPECT_EQ(log.steps[0].gradient_norm ? log.steps[0].gradient_norm->value : 0, c.norm) << c.text;
    EXPECT_EQ(log.steps[0].learning_rate ? log.steps[0].learning_rate->value : 0, c.rate) << c.text;
  }
}

TEST(TrainingLog, KnowsTheWorthOfTheLastDigit) {
  EXPECT_DOUBLE_EQ(ReadTrainingLog("loss: 3.91\n", "x").steps.at(0).loss.half_digit, 0.005);
  EXPECT_NEAR(ReadTrainingLog("loss: 3.912E+02\n", "x").steps.at(0).loss.half_digit, 0.05, 1e-12);
}

TEST(TrainingLog, TakesTheLastLineOfAStepAndReadsNaN) {
  const TrainingLog log = ReadTrainingLog("step: 2 loss: 3.5\nstep: 1 loss: 4\nstep: 2 loss: nan\n", "x");
  ASSERT_EQ(log.steps.size(), 2u);
  EXPECT_EQ(log.steps[0].number, 1);
  EXPECT_TRUE(log.steps[1].loss.value != log.steps[1].loss.value);
}

TEST(TrainingLog, HasNoStepsWithoutALoss) {
  EXPECT_TRUE(ReadTrainingLog("", "x").steps.empty());
  EXPECT_TRUE(ReadTrainingLog("loss\nlossy: 3\nloss_scale: 4\nloss:\nno numbers,here\n", "x").steps.empty());
}

}  // namespace
}  // namespace msprobe
