// A recording process killed at any moment: nothing that was reported flushed is lost, and the files can be finished.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <random>
#include <string>

#include "base/file.h"
#include "capture/recorder.h"
#include "dump/reader.h"
#include "dump/repair/recover.h"
#include "dump/repair/verify.h"
#include "dump/test_files.h"

namespace msprobe {
namespace {

// Ops of all sizes, each with a stack and a parent, until somebody kills the process.
[[noreturn]] void RecordForEver(const std::string& dir, unsigned seed) {
  std::mt19937 random(seed);
  Recorder recorder;
  if (!recorder.Open({dir, "statistics", "mix"}).ok()) _exit(1);
  std::array<uint32_t, 7> stacks{};
  for (uint32_t i = 0; i < stacks.size(); ++i) {
    bool is_new = false;
    const Frame frame{nullptr, static_cast<int32_t>(i)};
    auto lock = recorder.lock();
    stacks[i] = recorder.stacks().Intern({&frame, 1}, &is_new);
    recorder.stacks().SetText(stacks[i], {"File train.py, line " + std::to_string(i)});
  }
  const std::string text(3000, 'x');
  for (int32_t i = 0;; ++i) {
    const OpName name{InternName("Tensor.add"), i, NameForm::kApiForward};
    Record* record = recorder.Acquire(name);
    recorder.Reserve(record);
    record->KeyLiteral("input_args");
    record->BeginList();
    record->String(std::string_view(text).substr(0, random() % text.size()));
    record->EndList();
    {
      auto lock = recorder.lock();
      recorder.stacks().AddUse(stacks[random() % stacks.size()], name);
      recorder.construct().AddOp(name, true);
    }
    recorder.Commit(record);
    if (random() % 500 == 0 && !recorder.Flush().ok()) _exit(1);
  }
}

/// Ops that were reported flushed when the process was killed after some microseconds; nothing: before its first file.
std::optional<uint64_t> KillOne(const std::string& dir, unsigned seed, unsigned microseconds) {
  const pid_t child = fork();
  if (child == 0) RecordForEver(dir, seed);
  usleep(microseconds);
  kill(child, SIGKILL);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  const auto summary = StepSummary::Read(dir + "/dump_summary.json");
  if (!summary.ok() || !PathExists(dir + "/stack.json")) return std::nullopt;
  EXPECT_EQ(WriterOf(*summary), Writer::kGone);
  return summary->ops;
}

void ExpectOps(const std::string& dir, uint64_t least) {
  const auto dump = DumpFile::Open(dir + "/dump.json");
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  ASSERT_GE(dump->ops().size(), least);
  const auto stacks = StackFile::Open(dir + "/stack.json");
  ASSERT_TRUE(stacks.ok()) << stacks.status().message();
  const auto construct = ConstructFile::Open(dir + "/construct.json");
  ASSERT_TRUE(construct.ok()) << construct.status().message();
  ASSERT_GE(construct->entries.size(), dump->ops().size());
  JsonDoc doc;
  for (size_t i = 0; i < dump->ops().size(); ++i) {
    const std::string name = "Tensor.add." + std::to_string(i) + ".forward";
    ASSERT_EQ(dump->ops()[i].name, name);
    ASSERT_TRUE(stacks->StackOf(name)) << name;
    ASSERT_EQ(construct->entries[i].name, name);
    ASSERT_TRUE(dump->ParseOp(i, &doc).ok());
  }
}

TEST(KilledRecorder, LosesNothingThatWasReportedFlushed) {
  std::mt19937 random(20240817);
  uint64_t flushed = 0, finished = 0;
  // A busy machine may not get to a flush in that time: then more rounds, with more of it.
  for (unsigned round = 0; round < 100 || (flushed == 0 && round < 300); ++round) {
    const TempDir dir;
    const auto reported = KillOne(dir.path(), round, (500 + random() % 25'000) * (round < 100 ? 1 : 40));
    if (!reported) continue;
    flushed += *reported;
    ExpectOps(dir.path(), *reported);
    const auto recovered = RecoverDump({dir.path(), "", false});
    ASSERT_TRUE(recovered.ok()) << recovered.status().message();
    const RankRecovery& rank = (*recovered)[0];
    EXPECT_TRUE(rank.complete()) << RecoveryText(*recovered).English();
    EXPECT_EQ(rank.ops_missing + rank.without_stack + rank.without_parent, 0u) << RecoveryText(*recovered).English();
    finished += rank.changed();
    ExpectOps(dir.path(), *reported);
    EXPECT_TRUE(DumpFile::Open(dir.path() + "/dump.json")->truncated().empty());
    const auto again = RecoverDump({dir.path(), "", false});
    ASSERT_TRUE(again.ok());
    EXPECT_FALSE((*again)[0].changed()) << RecoveryText(*again).English();
    const auto check = VerifyDump(dir.path());
    ASSERT_TRUE(check.ok());
    for (const VerifyFinding& f : check->ranks[0].findings) {
      EXPECT_TRUE(f.note || f.kind == "unfinished" || f.kind == "temporary_file") << f.text.English();
    }
  }
  EXPECT_GT(flushed, 0u);
  RecordProperty("finished", std::to_string(finished));
}

}  // namespace
}  // namespace msprobe
