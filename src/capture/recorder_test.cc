#include "capture/recorder.h"

#include <gtest/gtest.h>
#include <unistd.h>

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

}  // namespace
}  // namespace msprobe
