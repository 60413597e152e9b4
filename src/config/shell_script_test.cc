#include "config/shell_script.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "config/launch_command.h"
#include "config/shell_values.h"

namespace msprobe {
namespace {

std::vector<std::vector<std::string>> Commands(const std::string& text, ShellReading* reading = nullptr) {
  const auto read = ReadShell(text, "a.sh");
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.status().message());
  std::vector<std::vector<std::string>> out;
  if (!read.ok()) return out;
  if (reading) *reading = *read;
  for (const auto& command : read->commands) {
    out.emplace_back();
    for (const ShellField& field : command) out.back().push_back(field.text);
  }
  return out;
}

using Words = std::vector<std::string>;

TEST(ShellScript, VariablesQuotesAndContinuedLines) {
  const auto commands = Commands("A=1\nB=\"x $A y\"\nrun --a $A \\\n  --b \"$B\" '$A' \\$A a\"b c\"d # comment\n");
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(commands[0], (Words{"run", "--a", "1", "--b", "x 1 y", "$A", "$A", "ab cd"}));
}

TEST(ShellScript, ArraysKeepTheirElements) {
  const auto commands = Commands(
      "A=(--x 1   # the first\n  --name \"two words\")\nA+=(--y)\nE=()\nrun \"${A[@]}\" \"${E[@]}\" ${A[1]} end\n");
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(commands[0], (Words{"run", "--x", "1", "--name", "two words", "--y", "1", "end"}));
}

TEST(ShellScript, DefaultsArithmeticAndConditions) {
  const auto commands = Commands(
      "N=${N:-4}\nM=${M:=8}\nG=$((N * M / 2 + 1))\nif [ $N -gt 2 ]; then\n  T=big\nelif [ $N -gt 1 ]; then\n  "
      "T=mid\nelse\n"
      "  T=small\nfi\ncase $T in\n  small) L=1 ;;\n  big|huge) L=2 ;;\n  *) L=3 ;;\nesac\nrun $N $M $G $T $L\n");
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(commands[0], (Words{"run", "4", "8", "17", "big", "2"}));
}

TEST(ShellScript, WhatOnlyARunKnowsStaysAsItIsWritten) {
  ShellReading reading;
  const auto commands =
      Commands("X=$(hostname)\nif [ \"$1\" = big ]; then S=1; else S=2; fi\nrun $X $UNKNOWN $S\n", &reading);
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(commands[0], (Words{"run", "$(hostname)", "$UNKNOWN", "1"}));
  ASSERT_EQ(reading.notes.size(), 1u);
  EXPECT_NE(reading.notes[0].English().find("a.sh:2"), std::string::npos);
}

TEST(ShellScript, FunctionsEvalAndHereDocuments) {
  const auto commands = Commands(
      "start() {\n  run --n 1\n}\ncat > x.json <<EOF\n{ \"a\": \"$B\" }\nEOF\nstart\nC=\"run --m\"\nC+=\" 2\"\neval "
      "\"$C\"\n");
  ASSERT_EQ(commands.size(), 3u);
  EXPECT_EQ(commands[1], (Words{"run", "--n", "1"}));
  EXPECT_EQ(commands[2], (Words{"run", "--m", "2"}));
}

TEST(ShellScript, ExportedVariablesHaveTheirPlace) {
  ShellReading reading;
  Commands("export A=1\nB=2\nexport B\nC=3 run\nD=4\n", &reading);
  ASSERT_EQ(reading.environment.size(), 3u);
  EXPECT_EQ(reading.environment[0].key, "A");
  EXPECT_EQ(reading.environment[0].Origin(), "a.sh:1");
  EXPECT_EQ(reading.environment[2].key, "C");
}

TEST(ShellScript, SourcesFilesBesideItAndNeverWithoutEnd) {
  const auto folder = std::filesystem::temp_directory_path() / ("shell_script_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "env.sh") << "ARGS=(--a 1)\n";
  std::ofstream(folder / "self.sh") << "source \"$(dirname \"$0\")/self.sh\"\n";
  const auto read = ReadShell("source env.sh\nrun \"${ARGS[@]}\"\n", (folder / "main.sh").string());
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->commands.size(), 1u);
  EXPECT_EQ(read->commands[0][2].text, "1");
  EXPECT_EQ(read->commands[0][2].file, (folder / "env.sh").string());
  const auto circle = ReadShell("source self.sh\n", (folder / "main.sh").string());
  ASSERT_FALSE(circle.ok());
  EXPECT_NE(circle.status().message().find("without an end"), std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST(ShellScript, BadTextsGetErrorsWithALine) {
  for (const std::string text : {"a\nb 'c\n", "a\nA=(1 2\n", "a\nb ${c\n", "a\nb \"c\n"}) {
    const auto read = ReadShell(text, "a.sh");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(read.status().message().find("a.sh, line 2"), std::string::npos) << read.status().message();
  }
  EXPECT_FALSE(ReadShell("\xff\xfe", "a.sh").ok());
  EXPECT_FALSE(ReadShell(std::string((16 << 20) + 1, 'a'), "a.sh").ok());
  EXPECT_FALSE(ReadShell("f() { f; f; }\nf\n", "a.sh").ok());
  std::string doubling = "A=aaaaaaaaaaaaaaaa\n";
  for (int i = 0; i < 60; ++i) doubling += "A=$A$A\n";
  EXPECT_FALSE(ReadShell(doubling, "a.sh").ok());
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += "if true; then\n";
  EXPECT_FALSE(ReadShell(deep, "a.sh").ok());
}

TEST(ShellScript, AFunctionHasWhatItIsCalledWith) {
  const auto folder = std::filesystem::temp_directory_path() / ("shell_calls_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "lib.sh") << R"(add() { ARGS+=("$@"); }
put() { ARGS+=(--$1 "${2:-7}"); shift; COUNT=$#; })";
  const auto read = ReadShell(R"(. ./lib.sh
ARGS=()
add --a 1 --b 'x y'
add
put seed
put lr 1e-4
all() { add $@; add ${@:2}; }
all --c --d
set -- "$@" --e 5
python train.py "${ARGS[@]}" --n $COUNT "$@")",
                              (folder / "run.sh").string());
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->commands.size(), 1u);
  Words words;
  for (const ShellField& field : read->commands[0]) words.push_back(field.text);
  EXPECT_EQ(words, (Words{"python", "train.py", "--a", "1", "--b", "x y", "--seed", "7", "--lr", "1e-4", "--c", "--d",
                          "--d", "--n", "1", "--e", "5"}));
}

TEST(ShellScript, LoopsOverWordsAndWhatCommandsPrint) {
  const auto commands = Commands(R"(args() {
  echo --a 1
  for kv in lr=1e-4 wd=0.1; do echo "--${kv%%=*} ${kv##*=}"; done
}
doc() { cat <<EOF
--deep $((1 << 3))
EOF
}
N=64
FILE=/data/a.b/c.json.gz
run $(args) $(doc) --n $(expr $N / 4) ${FILE##*/} ${FILE%.gz} ${FILE%%.*} $(hostname)
for i in 0 1 2; do train --rank $i; done
if [ $# -ne 0 ]; then M="$@"; else M=none; fi
run $M "$@" end
)");
  ASSERT_EQ(commands.size(), 3u);
  EXPECT_EQ(commands[0], (Words{"run", "--a", "1", "--lr", "1e-4", "--wd", "0.1", "--deep", "8", "--n", "16",
                                "c.json.gz", "/data/a.b/c.json", "/data/a", "$(hostname)"}));
  EXPECT_EQ(commands[1], (Words{"train", "--rank", "0"})) << "programs of a loop are not one run";
  EXPECT_EQ(commands[2], (Words{"run", "none", "end"}));
}

TEST(ShellScript, WhatPrintsIsBounded) {
  EXPECT_TRUE(ReadShell("f() { echo $(f) $(f) $(f); }\nrun $(f)\n", "a.sh").ok());
  std::string loops, ends;
  for (int i = 0; i < 8; ++i) {
    loops += "for a in 1 2 3 4 5 6 7 8 9 10 11 12; do\n";
    ends += "done\n";
  }
  EXPECT_FALSE(ReadShell(loops + "B=1\n" + ends, "a.sh").ok());
}

TEST(ShellValues, OneWordTakesAsMuchAsAScriptMay) {
  constexpr size_t kText = 1 << 20, kTimes = 1000;
  for (const std::string use : {"$A", "\"$A\"", "${A[@]}", "\"${A[0]}\""}) {
    ShellValues values("");
    values.Set("A", {{std::string(kText, 'a'), "a.sh", 1}});
    std::string word;
    for (size_t i = 0; i < kTimes; ++i) word += use;
    size_t taken = 0;
    for (const ShellField& field : values.Expand(word, "a.sh", 1)) taken += field.text.size();
    EXPECT_FALSE(values.within_bounds()) << use;
    EXPECT_LE(taken, 25 * kText) << use;
  }
  std::string last = "A=" + std::string(1 << 20, 'a') + "\nrun ";  // no command follows at which it could be noticed
  for (int i = 0; i < 100; ++i) last += "$A";
  EXPECT_FALSE(ReadShell(last, "a.sh").ok());
}

Words Arguments(const std::string& line, LaunchCommand* command) {
  const auto read = ReadShell(line, "a.sh");
  Words out;
  if (!read.ok() || read->commands.empty() || !ReadLaunchCommand(read->commands.back(), command)) return out;
  for (const Setting& setting : command->arguments) out.push_back(setting.key + "=" + setting.value.Shown());
  return out;
}

TEST(ShellScript, PatternsKeysAndTestsBeforeACommand) {
  ShellReading reading;
  const auto commands = Commands(
      "M=Llama-7B\ndeclare -A H=([7b]=4096 [13b]=5120)\nL[1]=9\ns=${M##*-}\ns=${s,,}\n"
      "case $M in\n  *-13B|*-13b) N=40 ;;\n  *-7B) N=32 ;;\nesac\n"
      "[ \"$M\" = other ] && N=1\n[[ $M == Llama* ]] && A=yes || A=no\n"
      "cat > c.yaml <<END\nname: \"$M\"\nEND\ncat > d.yaml <<'END'\nname: \"$M\"\nEND\n"
      "run --h ${H[$s]} --n $N --a $A ${X[*]:-none} --seed 3 2>&1 | tee log\n",
      &reading);
  const auto run = std::find_if(commands.begin(), commands.end(), [](const auto& c) { return c[0] == "run"; });
  ASSERT_NE(run, commands.end());
  EXPECT_EQ(*run, (Words{"run", "--h", "4096", "--n", "32", "--a", "yes", "none", "--seed", "3"}));
  ASSERT_EQ(reading.written.size(), 2U);
  EXPECT_EQ(reading.written[0].text, "name: \"Llama-7B\"\n");
  EXPECT_EQ(reading.written[1].text, "name: \"$M\"\n");
}

TEST(LaunchCommand, FlagsDoNotEatTheirNeighbours) {
  LaunchCommand command;
  EXPECT_EQ(
      Arguments("torchrun --nproc_per_node=8 --nnodes 2 train.py --bf16 --lr 1e-4 --min-lr -1 --betas 0.9 0.95 --x=y\n",
                &command),
      (Words{"bf16=True", "lr=1e-4", "min_lr=-1", "betas=['0.9', '0.95']", "x=y"}));
  EXPECT_EQ(command.program, "train.py");
  ASSERT_EQ(command.launcher.size(), 2u);
  EXPECT_EQ(command.launcher[1].value.Shown(), "2");
}

TEST(LaunchCommand, ProgramsOfManyKinds) {
  LaunchCommand command;
  EXPECT_EQ(Arguments("nohup python3.11 -m torch.distributed.launch --nproc_per_node 4 a.py --n 1\n", &command),
            (Words{"n=1"}));
  command = {};
  EXPECT_EQ(Arguments("python3 -m verl.trainer.main_ppo data.x=1 +a.b=True a.b=False\n", &command),
            (Words{"data.x=1", "a.b=True", "a.b=False"}));
  EXPECT_EQ(command.program, "verl.trainer.main_ppo");
  command = {};
  EXPECT_EQ(Arguments("bash msrun_launcher.sh \"run_mindformer.py --config a.yaml --use_parallel True\" 8\n", &command),
            (Words{"config=a.yaml", "use_parallel=['True', '8']"}));
  command = {};
  EXPECT_EQ(Arguments("echo python a.py --n 1\n", &command), Words{});
  command = {};
  EXPECT_EQ(Arguments("N=4\nsrun bash -c \"python a.py --k '{\\\"m\\\": 1}' \\\n --n $N --t \\$N\"\n", &command),
            (Words{"k.m=1", "n=4", "t=4"}));
  EXPECT_TRUE(command.by_slurm);
  command = {};
  EXPECT_EQ(Arguments("./train_net.py --config-file a.yaml OUT o SOLVER.LR 0.1\n", &command),
            (Words{"config_file=a.yaml", "OUT=o", "SOLVER.LR=0.1"}));
}

}  // namespace
}  // namespace msprobe
