#include "config/python_program.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/python_expression.h"
#include "config/python_lines.h"
#include "config/shell_patterns.h"

namespace msprobe {
namespace {

std::string Shown(std::string_view text) {
  const ConfigValue known = ConfigValue::Of(int64_t{8});
  return PythonValue(text, [&](std::string_view name) { return name == "n" ? &known : nullptr; }).Shown();
}

PythonProgram Read(std::string_view text, const std::vector<Setting>& given = {}) {
  auto read = ReadPythonProgram(text, "train.py", given);
  EXPECT_TRUE(read.ok());
  return std::move(*read);
}

std::string ValueOf(const std::vector<Setting>& settings, std::string_view key) {
  for (auto at = settings.rbegin(); at != settings.rend(); ++at) {
    if (at->key == key) return at->value.Shown();
  }
  return "nothing";
}

TEST(PythonExpression, RepeatsAreBounded) {
  EXPECT_EQ(Shown("[] * 10000000000000"), "[]");
  EXPECT_EQ(Shown("[1] * -2"), "[]");
  EXPECT_EQ(Shown("[1, 2, 3, 4] * 4611686018427387904"), "$(list)");
  EXPECT_EQ(Shown("[[1] * 4000] * 4000"), "$(list)");
}

TEST(PythonExpression, ConstantsArithmeticAndConditions) {
  EXPECT_EQ(Shown("2 ** 10 // 3 - 1"), "340");
  EXPECT_EQ(Shown("-1e-4 * 2"), "-0.0002");
  EXPECT_EQ(Shown("[0.9] * 2 + [1_000]"), "[0.9, 0.9, 1000]");
  EXPECT_EQ(Shown("'a' \"b\" if n == 8 else None"), "ab");
  EXPECT_EQ(Shown("dict(a=n, b={'c': (1,)})['b']['c'][0]"), "1");
  EXPECT_EQ(Shown("int(0.05 * n * 100)"), "40");
  EXPECT_EQ(Shown("torch.bfloat16"), "torch.bfloat16");
  EXPECT_EQ(Shown("0.9, 0.95"), "[0.9, 0.95]");
  for (const char* open : {"len(x)", "f'{n}'", "x.y", "[i for i in x]", "n +", "{", "1 / 0", "args.lr"}) {
    EXPECT_TRUE(IsOpenValue(PythonValue(open, [](std::string_view) { return nullptr; }))) << open;
  }
}

TEST(PythonLines, BracketsTextsAndComments) {
  const auto lines = PythonLines("a = (1,  # one\n     2)\nb = '''x\n# y'''; c = 3\n  d = \\\n 4\n");
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].text, "a = (1,        2)");
  EXPECT_EQ(lines[2].text, "c = 3");
  EXPECT_EQ(lines[3].line, 5);
  EXPECT_EQ(lines[3].indent, 2);
  EXPECT_EQ(AssignmentOf("f(a=1) == b"), std::string_view::npos);
}

TEST(PythonProgram, OptionsFieldsAndWhatACommandGives) {
  const std::string_view text = R"(
import argparse
from dataclasses import dataclass, field
@dataclass
class Optim:
    lr: float = 1e-3
    betas: tuple = field(default_factory=lambda: (0.9, 0.95))
p = argparse.ArgumentParser()
p.add_argument("-b", "--batch-size", type=int, default=32)
p.add_argument("--no-shuffle", dest="shuffle", action="store_false")
p.add_argument("--amp", action=argparse.BooleanOptionalAction, default=True)
args = p.parse_args()
opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, betas=(0.9, 0.99), weight_decay=args.batch_size / 320)
)";
  std::vector<Setting> given = {{"b", ConfigValue::Of("64"), "run.sh", 1},
                                {"no_shuffle", ConfigValue::Of(true), "run.sh", 1},
                                {"no_amp", ConfigValue::Of(true), "run.sh", 1}};
  const PythonProgram program = Read(text, given);
  EXPECT_EQ(ValueOf(program.settings, "lr"), "0.001");
  EXPECT_EQ(ValueOf(program.settings, "betas"), "[0.9, 0.95]");
  EXPECT_EQ(ValueOf(program.settings, "shuffle"), "True");
  ASSERT_EQ(program.calls.size(), 1U);
  EXPECT_EQ(ValueOf(program.calls[0].settings, "optimizer.weight_decay"), "0.2");
  EXPECT_EQ(ValueOf(program.calls[0].settings, "optimizer.eps"), "1e-08");
  NameByOptions(program, &given);
  EXPECT_EQ(given[0].key + given[1].key + given[2].key, "batch_sizeshuffleamp");
  EXPECT_EQ(given[1].value.Shown() + given[2].value.Shown(), "FalseFalse");
}

TEST(PythonProgram, ClassesLightningAndEnvironment) {
  const PythonProgram program = Read(R"(
import lightning as L
import os
os.environ["NCCL_ALGO"] = "Ring"
class Net(L.LightningModule):
    def __init__(self, lr: float = 1e-3):
        self.save_hyperparameters()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.hparams.lr, momentum=0.9)
L.Trainer(max_steps=10).fit(Net(lr=0.5))
)");
  ASSERT_EQ(program.calls.size(), 2U);
  EXPECT_EQ(ValueOf(program.calls[0].settings, "optimizer.lr"), "0.5");
  EXPECT_EQ(ValueOf(program.calls[1].settings, "trainer.max_steps"), "10");
  EXPECT_EQ(ValueOf(program.environment, "NCCL_ALGO"), "Ring");
}

TEST(PythonProgram, CallsThatStandForCallsAndParameterGroups) {
  const PythonProgram program = Read(R"(
from functools import partial
import torch
groups = [{"params": a, "weight_decay": 0.2}, {"params": b, "weight_decay": 0.0}]
opt = torch.optim.AdamW(groups, lr=0.5)
make = partial(torch.optim.SGD, lr=0.25, **more())
other = torch.optim.Adam(choose(model), lr=0.125)
)");
  ASSERT_EQ(program.calls.size(), 3U);
  EXPECT_EQ(ValueOf(program.calls[0].settings, "optimizer.group_weight_decay"), "0.2");
  EXPECT_EQ(ValueOf(program.calls[0].settings, "optimizer.undecayed_groups"), "True");
  EXPECT_EQ(program.calls[0].Find("optimizer.weight_decay"), nullptr);
  EXPECT_EQ(ValueOf(program.calls[1].settings, "optimizer.lr"), "0.25");
  EXPECT_TRUE(program.calls[1].partial);
  EXPECT_EQ(program.calls[1].Find("optimizer.momentum"), nullptr);  // it may be among the others
  EXPECT_EQ(ValueOf(program.calls[2].settings, "optimizer.eps"), "1e-08");
  EXPECT_EQ(program.calls[2].Find("optimizer.weight_decay"), nullptr);  // groups may have their own
}

TEST(PythonProgram, DefaultsAreThoseOfItsLibrary) {
  const PythonProgram program = Read("from keras.optimizers import Adam\nopt = Adam(learning_rate=0.5)\n");
  ASSERT_EQ(program.calls.size(), 1U);
  EXPECT_EQ(ValueOf(program.calls[0].settings, "optimizer.eps"), "1e-07");
}

TEST(ShellPatterns, WhatASlurmJobAsksFor) {
  const SlurmJob job = SlurmJobOf("#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH -n 16\n#SBATCH --gres=gpu:h100:8\n");
  EXPECT_EQ(job.nodes, 2);
  EXPECT_EQ(job.tasks_per_node, 8);
  EXPECT_EQ(job.gpus_per_node, 8);
  EXPECT_EQ(SlurmJobOf("echo #SBATCH --nodes=2\n").nodes, 0);
}

TEST(ShellPatterns, WhatFollowsAName) {
  EXPECT_EQ(ChangedBy("Llama-7B", "##*-"), "7B");
  EXPECT_EQ(ChangedBy("a.b.c", "//./_"), "a_b_c");
  EXPECT_EQ(ChangedBy("7B", ",,"), "7b");
  EXPECT_EQ(ChangedBy("abcdef", ":1:2"), "bc");
  EXPECT_EQ(ChangedBy("abc", "@Q"), std::nullopt);
  EXPECT_EQ(TestHolds("a7", "==", "*8"), false);
  EXPECT_EQ(TestHolds("x", "-lt", "3"), std::nullopt);
}

TEST(PythonProgram, NamesMadeOfNamesDoNotGrowWithoutBound) {
  std::string text = "lr = 0.5\nx = 'aa'\nd = {'a': 1}\nl = [1]\n";
  for (int i = 0; i < 60; ++i) text += "x = x + x\nd = {'a': d, 'b': d}\n";
  for (int i = 0; i < 3000; ++i) text += "l = [[[[[[[[l]]]]]]]]\n";
  const auto read = ReadPythonProgram(text, "in.py", {});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(ValueOf(read->settings, "lr"), "0.5");
  EXPECT_LE(read->settings.size(), size_t{1} << 14);
}

TEST(ShellPatterns, WhatIsNoOffsetIsNotKnown) {
  EXPECT_EQ(ChangedBy("abc", ":nan"), std::nullopt);
  EXPECT_EQ(ChangedBy("abc", ":0:inf"), std::nullopt);
  EXPECT_EQ(ChangedBy("abc", ":4"), std::nullopt);
  EXPECT_EQ(ChangedBy("abc", ":3"), "");
}

}  // namespace
}  // namespace msprobe
