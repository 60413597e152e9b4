#include "capture/recorder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "dump/reader.h"

namespace msprobe {
namespace {

class RecorderTest : public testing::Test {
 protected:
  RecorderTest() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    dir_ = std::filesystem::temp_directory_path() /
           ("msprobe_recorder_" + std::string(info->name()) + "_" + std::to_string(::getpid()));
    std::filesystem::create_directories(dir_);
  }
  ~RecorderTest() override { std::filesystem::remove_all(dir_); }

  OpName Name(const std::string& base, int index) { return {InternName(base), index, NameForm::kApiForward}; }

  void RecordOne(Recorder* recorder, const OpName& name) {
    Record* record = recorder->Acquire(name);
    recorder->Reserve(record);
    record->KeyLiteral("input_args");
    record->BeginList();
    record->Int(name.index);
    record->String("text of " + name.str());
    record->EndList();
    {
      auto lock = recorder->lock();
      recorder->construct().BeginModule({name.base, name.index, NameForm::kModuleForward});
      recorder->construct().AddOp(name, true);
      recorder->construct().EndModule({name.base, name.index, NameForm::kModuleForward});
    }
    recorder->Commit(record);
  }

  std::vector<std::string> Names() {
    const auto dump = DumpFile::Open((dir_ / "dump.json").string());
    EXPECT_TRUE(dump.ok());
    std::vector<std::string> names;
    if (dump.ok()) {
      for (const OpSpan& op : dump->ops()) names.emplace_back(op.name);
    }
    return names;
  }

  std::filesystem::path dir_;
};

TEST_F(RecorderTest, WritesOpsOfSeveralThreads) {
  constexpr int kThreads = 4, kOps = 1500;
  Recorder recorder;
  ASSERT_TRUE(recorder.Open({dir_.string(), "statistics", "mix"}).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, &recorder, t] {
      for (int i = 0; i < kOps; ++i) RecordOne(&recorder, Name("Tensor.t" + std::to_string(t), i));
    });
  }
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(recorder.Flush().ok());
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(recorder.Close().ok());
  const auto names = Names();
  EXPECT_EQ(names.size(), size_t{kThreads} * kOps);
  std::vector<int> next(kThreads, 0);  // each thread's in its own order
  for (const std::string& name : names) {
    const auto thread = static_cast<size_t>(name[std::string("Tensor.t").size()] - '0');
    EXPECT_EQ(name, Name("Tensor.t" + std::to_string(thread), next[thread]++).str());
  }
}

TEST_F(RecorderTest, CloseKeepsWhatHasAPlaceAndDropsTheRest) {
  Recorder recorder;
  ASSERT_TRUE(recorder.Open({dir_.string(), "statistics", "L1"}).ok());
  recorder.Reserve(recorder.Acquire(Name("Tensor.begun", 0)));
  recorder.Acquire(Name("Tensor.dropped", 0));
  recorder.Acquire(Name("Tensor.kept", 0))->keep_unfinished = true;
  recorder.Discard(recorder.Acquire(Name("Tensor.discarded", 0)));
  RecordOne(&recorder, Name("Tensor.done", 0));
  EXPECT_TRUE(recorder.Close().ok());
  EXPECT_EQ(Names(),
            (std::vector<std::string>{"Tensor.begun.0.forward", "Tensor.done.0.forward", "Tensor.kept.0.forward"}));
  EXPECT_FALSE(recorder.is_open());
}

TEST_F(RecorderTest, OneStepAfterTheOther) {
  Recorder recorder;
  for (int step = 0; step < 20; ++step) {
    const auto dir = dir_ / std::to_string(step);
    ASSERT_TRUE(MakeOutputDir(dir.string()).ok());
    ASSERT_TRUE(recorder.Open({dir.string(), "statistics", "mix"}).ok());
    for (int i = 0; i <= step; ++i) RecordOne(&recorder, Name("Tensor.add", i));
    EXPECT_TRUE(recorder.Close().ok());
    const auto dump = DumpFile::Open((dir / "dump.json").string());
    ASSERT_TRUE(dump.ok());
    EXPECT_EQ(dump->ops().size(), static_cast<size_t>(step) + 1);
  }
}

// A record that is not finished for long keeps its place only as long as memory is bounded.
TEST_F(RecorderTest, AnUnfinishedRecordHoldsUpOnlySoMany) {
  constexpr int kOps = 20'000;
  Recorder recorder;
  ASSERT_TRUE(recorder.Open({dir_.string(), "statistics", "L1"}).ok());
  Record* first = recorder.Acquire(Name("Tensor.waits", 0));
  recorder.Reserve(first);
  for (int i = 0; i < kOps; ++i) RecordOne(&recorder, Name("Tensor.add", i));
  size_t before = 0;  // written before it is finished; the thread that writes may be late, or in the middle of it
  for (int i = 0; i < 600 && before <= 5000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto dump = DumpFile::Open((dir_ / "dump.json").string());
    if (dump.ok()) before = dump->ops().size();
  }
  ASSERT_GT(before, size_t{5000});
  recorder.Commit(first);
  EXPECT_TRUE(recorder.Close().ok());
  const auto names = Names();
  ASSERT_EQ(names.size(), size_t{kOps} + 1);
  EXPECT_EQ(names.back(), "Tensor.waits.0.forward");
}

TEST_F(RecorderTest, WithoutAThreadTheCallerWrites) {
  Recorder recorder;
  recorder.set_no_thread();
  ASSERT_TRUE(recorder.Open({dir_.string(), "statistics", "mix"}).ok());
  for (int i = 0; i < 3000; ++i) RecordOne(&recorder, Name("Tensor.add", i));
  EXPECT_GE(Names().size(), size_t{2000});
  EXPECT_TRUE(recorder.Close().ok());
  EXPECT_EQ(Names().size(), size_t{3000});
  EXPECT_EQ(recorder.summary().state, "complete");
}

TEST_F(RecorderTest, APauseFlushes) {
  Recorder recorder;
  ASSERT_TRUE(recorder.Open({dir_.string(), "statistics", "mix"}).ok());
  RecordOne(&recorder, Name("Tensor.add", 0));
  const std::string path = (dir_ / kSummaryName).string();
  uint64_t flushed = 0;
  for (int i = 0; i < 600 && flushed == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    flushed = StepSummary::Read(path)->ops;
  }
  EXPECT_EQ(flushed, 1u);
  EXPECT_EQ(Names().size(), size_t{1});
  EXPECT_EQ(StepSummary::Read(path)->state, "recording");
  EXPECT_TRUE(recorder.Close().ok());
  EXPECT_EQ(StepSummary::Read(path)->state, "complete");
}

TEST_F(RecorderTest, TheGateEndsTheRecordingOfARun) {
  Recorder recorder;
  for (int step = 0; step < 2; ++step) {
    const auto dir = dir_ / std::to_string(step);
    ASSERT_TRUE(MakeOutputDir(dir.string()).ok());
    ASSERT_TRUE(recorder.Open({dir.string(), "statistics", "L1"}).ok());
    for (int i = 0; i < 10; ++i) {
      if (i == 4) {
        recorder.gate().Stop(OutputGate::Part::kOps, OutputGate::Until::kEndOfRun, "the budget is used up");
        EXPECT_FALSE(recorder.gate().open(OutputGate::Part::kTensors));
      }
      RecordOne(&recorder, Name("Tensor.add", i));
    }
    EXPECT_TRUE(recorder.Close({{"a kind", 3}}).ok());
    const auto summary = StepSummary::Read((dir / kSummaryName).string());
    ASSERT_TRUE(summary.ok());
    EXPECT_EQ(summary->ops, step == 0 ? 4u : 0u);
    EXPECT_EQ(summary->ops_not_written, step == 0 ? 6u : 10u);
    EXPECT_EQ(summary->ops_stopped, "the budget is used up");
    EXPECT_EQ(summary->state, "incomplete");
    EXPECT_EQ(summary->skipped.at("a kind"), 3u);
    EXPECT_GT(recorder.gate().bytes_of_run(), 0u);
  }
}

// The limit on file sizes stands in for the full disk: the files stay complete JSON, and SIGXFSZ kills nobody.
TEST_F(RecorderTest, AFullDiskEndsTheStepAndNotTheProcess) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_DFL);
    Recorder recorder;
    bool good = recorder.Open({dir_.string(), "statistics", "mix"}).ok();
    const rlimit limit{100'000, 200'000};
    good = good && setrlimit(RLIMIT_FSIZE, &limit) == 0;
    for (int i = 0; i < 5000; ++i) RecordOne(&recorder, Name("Tensor.add", i));
    const Status full = recorder.Close();
    _exit(good && full.code() == Code::kInternal && recorder.summary().ops_not_written > 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  const auto dump = DumpFile::Open((dir_ / "dump.json").string());
  ASSERT_TRUE(dump.ok());
  EXPECT_EQ(dump->truncated().English(), "");
  const auto summary = StepSummary::Read((dir_ / kSummaryName).string());
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->state, "incomplete");
  EXPECT_EQ(summary->ops, dump->ops().size());
  EXPECT_EQ(summary->ops + summary->ops_not_written, 5000u);
}

TEST_F(RecorderTest, ADeletedDirectoryIsTold) {
  Recorder recorder;
  ASSERT_TRUE(recorder.Open({dir_.string(), "statistics", "mix"}).ok());
  std::filesystem::remove_all(dir_);
  for (int i = 0; i < 3000; ++i) RecordOne(&recorder, Name("Tensor.add", i));
  const Status gone = recorder.Close();
  EXPECT_NE(gone.message().find("was deleted while it was written"), std::string::npos) << gone.message();
  EXPECT_EQ(recorder.summary().ops, 0u);
  std::filesystem::create_directories(dir_);
  ASSERT_TRUE(recorder.Open({dir_.string(), "statistics", "mix"}).ok());
  RecordOne(&recorder, Name("Tensor.add", 0));
  EXPECT_TRUE(recorder.Close().ok());
}

TEST_F(RecorderTest, WhatMemoryEndedHalfWayIsDropped) {
  Recorder recorder;
  ASSERT_TRUE(recorder.Open({dir_.string(), "statistics", "L1"}).ok());
  RecordOne(&recorder, Name("Tensor.add", 0));
  for (const bool reserved : {true, false}) {
    Record* half = recorder.Acquire(Name("Tensor.half", reserved));
    if (reserved) recorder.Reserve(half);
    half->KeyLiteral("input_args");
    half->BeginList();
    recorder.Commit(half);
  }
  Record* open = recorder.Acquire(Name("Tensor.half", 2));
  recorder.Reserve(open);
  open->KeyLiteral("output");
  RecordOne(&recorder, Name("Tensor.add", 1));
  EXPECT_TRUE(recorder.Close().ok());
  EXPECT_EQ(Names(), (std::vector<std::string>{"Tensor.add.0.forward", "Tensor.add.1.forward"}));
  EXPECT_EQ(recorder.summary().ops_not_written, 3u);
  EXPECT_TRUE(DumpFile::Open((dir_ / "dump.json").string())->truncated().empty());
}

TEST_F(RecorderTest, StacksOfAllFlushesAreListedOnceInTheEnd) {
  Recorder recorder;
  ASSERT_TRUE(recorder.Open({dir_.string(), "statistics", "mix"}).ok());
  bool is_new = false;
  const Frame frames[] = {{nullptr, 1}, {nullptr, 2}};
  const uint32_t first = recorder.stacks().Intern({&frames[0], 1}, &is_new);
  const uint32_t second = recorder.stacks().Intern({&frames[1], 1}, &is_new);
  recorder.stacks().SetText(first, {"File a.py"});
  recorder.stacks().SetText(second, {"File b.py"});
  const std::string path = (dir_ / "stack.json").string();
  for (int i = 0; i < 3; ++i) {
    recorder.stacks().AddUse(first, Name("Tensor.add", i));
    recorder.stacks().AddUse(second, Name("Tensor.mul", i));
    ASSERT_TRUE(recorder.Flush().ok());
    const auto stacks = StackFile::Open(path);
    ASSERT_TRUE(stacks.ok()) << stacks.status().message();
    EXPECT_EQ(stacks->Frames(*stacks->StackOf(Name("Tensor.mul", i).str())), StackLines{"File b.py"});
  }
  ASSERT_TRUE(recorder.Close().ok());
  const std::string wanted = R"({
 "0": [
  [
   "Tensor.add.0.forward",
   "Tensor.add.1.forward",
   "Tensor.add.2.forward"
  ],
  [
   "File a.py"
  ]
 ],
 "1": [
  [
   "Tensor.mul.0.forward",
   "Tensor.mul.1.forward",
   "Tensor.mul.2.forward"
  ],
  [
   "File b.py"
  ]
 ]
})";
  EXPECT_EQ(MappedFile::Open(path)->text(), wanted);
}

TEST_F(RecorderTest, TheLimitHoldsAllFilesOfAStepTogether) {
  for (const bool long_stacks : {false, true}) {
    for (const uint64_t limit : {4000u, 200000u}) {
      Recorder recorder;
      ASSERT_TRUE(recorder.Open({.dir = dir_.string(), .task = "statistics", .level = "mix"}).ok());
      recorder.Limit(limit, "enough");
      for (int i = 0; i < 2000; ++i) {
        const Frame frame{this, 4 * i};
        bool is_new = false;
        const uint32_t stack = recorder.stacks().Intern({&frame, 1}, &is_new);
        recorder.stacks().SetText(
            stack, {std::string(long_stacks ? 500 : 20, 'f') + "\"" + std::to_string(i / (long_stacks ? 1 : 50))});
        {
          auto lock = recorder.lock();
          recorder.stacks().AddUse(stack, Name("Tensor.add", i));
        }
        RecordOne(&recorder, Name("Tensor.add", i));
        if (i % 100 == 0) (void)recorder.Flush();
      }
      EXPECT_FALSE(recorder.Close().ok());
      EXPECT_TRUE(recorder.limited());
      uint64_t bytes = 0;
      for (const char* name : {"dump.json", "construct.json", "stack.json"}) {
        bytes += std::filesystem::file_size(dir_ / name);
      }
      EXPECT_LE(bytes, limit) << long_stacks;
      // What is counted is not far from what is written.
      EXPECT_GT(bytes, limit == 200000 ? limit / 3 : 0) << long_stacks;
      for (const std::string& name : Names())
        EXPECT_TRUE(StackFile::Open((dir_ / "stack.json").string())->StackOf(name));
    }
  }
}

}  // namespace
}  // namespace msprobe
