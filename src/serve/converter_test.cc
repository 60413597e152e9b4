#include "serve/converter.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "view/test_db.h"

namespace msprobe::serve {
namespace {

using State = Conversion::State;
using std::chrono::milliseconds;

// Stands for msprobe; its first option says what it does.
constexpr const char* kScript = R"sh(#!/bin/sh
echo $$ > pid
echo "$@" > words
echo 'PROGRESS: {"current_progress": 40, "process_running": true, "error_msg": []}'
case "$2" in
  done) echo '[msprobe] warning: rank 3 is cut' >&2; echo '{"file": "./out/build_1.vis.db", "graphs": 1}';;
  partial) echo '[msprobe] error: 1 of 2 graphs are missing' >&2; echo '{"file": "./out/build_1.vis.db"}'; exit 3;;
  plan) echo '{"plan": [1, 2]}';;
  fail) echo '[msprobe] error: dump.json is empty: run again' >&2; exit 3;;
  both) printf '[msprobe] error: all ranks does not exist\n\036[msprobe] error: all ranks 不存在\n' >&2; exit 3;;
  early) echo 'PROGRESS: {"current_progress": 0, "process_running": false, "error_msg": ["no such directory"]}'; exit 3;;
  noise) yes 'PROGRESS: {"current_progress": -7' | head -n 20000; yes x | head -c 3000000; yes y | head -c 3000000 >&2;;
  killed) kill -9 $$;;
  flood) while :; do yes x; done;;
  slow) trap 'echo "[msprobe] error: interrupted" >&2; exit 130' INT; while :; do sleep 0.02; done;;
  stubborn) trap '' INT TERM; while :; do sleep 0.02; done;;
  fds) ls /proc/self/fd > fds;;
  locale) echo "[msprobe] error: $LC_ALL" >&2; exit 3;;
esac
)sh";

struct ConverterTest : testing::Test {
  void SetUp() override {
    dir.Write("fake", kScript);
    chmod((dir / "fake").c_str(), 0755);
  }
  Conversion Wait(Converter* converter, bool busy = false) const {
    for (int i = 0; i < 12000; ++i) {
      const Conversion c = converter->Last().value();
      const bool running = c.state == State::kRunning || c.state == State::kCancelling;
      if (busy ? c.percent == 40 : !running) return c;
      std::this_thread::sleep_for(milliseconds(5));
    }
    ADD_FAILURE() << "it does not end";
    return {};
  }
  Conversion Run(const std::string& how) const {
    Converter converter(dir / "fake", dir.path());
    EXPECT_EQ(converter.Start({how}), 1);
    return Wait(&converter);
  }
  std::string Read(const std::string& name) const {
    std::ifstream in(dir / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool Alive() const { return kill(static_cast<pid_t>(std::stoi(Read("pid"))), 0) == 0; }
  bool Ends() const {
    for (int i = 0; i < 12000 && Alive(); ++i) std::this_thread::sleep_for(milliseconds(5));
    return !Alive();
  }

  view::TestDir dir;
};

// A program that we are a guest of may let the system forget its children.
TEST_F(ConverterTest, EndsWhereChildrenAreNotWaitedFor) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(Run("done").file, "out/build_1.vis.db");
  EXPECT_EQ(Run("fail").error.english, "dump.json is empty: run again");
  signal(SIGCHLD, before);
}

TEST_F(ConverterTest, Done) {
  const Conversion c = Run("done");
  EXPECT_EQ(c.state, State::kDone);
  EXPECT_EQ(c.file, "out/build_1.vis.db");
  EXPECT_EQ(c.percent, 100);
  EXPECT_EQ(c.error.english, "");
  ASSERT_EQ(c.log.size(), 1u);
  EXPECT_EQ(c.log[0].english, "[msprobe] warning: rank 3 is cut");
  EXPECT_EQ(c.command, (std::vector<std::string>{"msprobe", "graph_visualize", "done"}));
  EXPECT_EQ(Read("words"), "graph_visualize done --json --is_print_progress_log\n");
}

TEST_F(ConverterTest, WhatIsWrittenCountsEvenWithoutAllRanks) {
  const Conversion c = Run("partial");
  EXPECT_EQ(c.state, State::kDone);
  EXPECT_EQ(c.file, "out/build_1.vis.db");
  EXPECT_EQ(c.error.english, "1 of 2 graphs are missing");
}

TEST_F(ConverterTest, APlanIsText) {
  const Conversion c = Run("plan");
  EXPECT_EQ(c.state, State::kDone);
  EXPECT_EQ(c.file, "");
  EXPECT_EQ(c.text, "{\"plan\": [1, 2]}\n");
}

TEST_F(ConverterTest, Failures) {
  EXPECT_EQ(Run("fail").state, State::kFailed);
  EXPECT_EQ(Run("fail").error.english, "dump.json is empty: run again");
  EXPECT_EQ(Run("early").error.english, "no such directory");
  const Conversion both = Run("both");
  EXPECT_EQ(both.error.english, "all ranks does not exist");
  EXPECT_EQ(both.error.chinese, "all ranks 不存在");
  ASSERT_EQ(both.log.size(), 1u);
  EXPECT_EQ(both.log[0].chinese, "[msprobe] error: all ranks 不存在");
  EXPECT_NE(Run("killed").error.english.find("signal 9"), std::string::npos);
  Converter absent(dir / "absent", dir.path());
  EXPECT_EQ(absent.Start({}), 1);
  const Conversion c = Wait(&absent);
  EXPECT_EQ(c.state, State::kFailed);
  EXPECT_NE(c.error.english.find("cannot be started"), std::string::npos);
}

// Its words are translated where they are shown, for each reader.
TEST_F(ConverterTest, SpeaksEnglishInAnyLocale) {
  const char* before = std::getenv("LC_ALL");
  const std::string kept = before ? before : "";
  setenv("LC_ALL", "zh_CN.UTF-8", 1);
  EXPECT_EQ(Run("locale").error.english, "C.UTF-8");
  before ? setenv("LC_ALL", kept.c_str(), 1) : unsetenv("LC_ALL");
}

TEST_F(ConverterTest, NoiseIsBounded) {
  const Conversion c = Run("noise");
  EXPECT_EQ(c.state, State::kDone);
  EXPECT_LE(c.log.size(), 400u);
  EXPECT_LE(c.text.size(), size_t{1} << 20);
}

TEST_F(ConverterTest, WhoWritesWithoutEndCanBeAskedAndCancelled) {
  Converter converter(dir / "fake", dir.path(), milliseconds(50));
  ASSERT_EQ(converter.Start({"flood"}), 1);
  Wait(&converter, true);
  EXPECT_TRUE(converter.Cancel(1));
  EXPECT_EQ(Wait(&converter).state, State::kCancelled);
}

TEST_F(ConverterTest, OneAtATimeAndCancel) {
  Converter converter(dir / "fake", dir.path());
  EXPECT_FALSE(converter.Last());
  EXPECT_FALSE(converter.Cancel(1));
  ASSERT_EQ(converter.Start({"slow"}), 1);
  EXPECT_EQ(Wait(&converter, true).state, State::kRunning);
  EXPECT_FALSE(converter.Start({"done"}));
  EXPECT_FALSE(converter.Cancel(2));
  EXPECT_TRUE(converter.Cancel(1));
  const Conversion c = Wait(&converter);
  EXPECT_EQ(c.state, State::kCancelled);
  EXPECT_EQ(c.error.english, "");
  EXPECT_TRUE(Ends());
  EXPECT_FALSE(converter.Cancel(1));
  EXPECT_EQ(converter.Start({"done"}), 2);
  EXPECT_EQ(Wait(&converter).state, State::kDone);
}

TEST_F(ConverterTest, WhoDoesNotListenIsEnded) {
  Converter converter(dir / "fake", dir.path(), milliseconds(50));
  ASSERT_EQ(converter.Start({"stubborn"}), 1);
  Wait(&converter, true);
  EXPECT_TRUE(converter.Cancel(1));
  EXPECT_EQ(Wait(&converter).state, State::kCancelled);
  EXPECT_TRUE(Ends());
}

TEST_F(ConverterTest, EndsWithTheServer) {
  {
    Converter converter(dir / "fake", dir.path());
    ASSERT_EQ(converter.Start({"slow"}), 1);
    Wait(&converter, true);
    EXPECT_TRUE(Alive());
  }
  EXPECT_FALSE(Alive());
}

TEST_F(ConverterTest, EndsWhenTheServerIsKilled) {
  const pid_t server = fork();
  if (server == 0) {
    Converter converter(dir / "fake", dir.path());
    converter.Start({"slow"});
    for (;;) pause();
  }
  for (int i = 0; i < 12000 && Read("words").find('\n') == std::string::npos; ++i)
    std::this_thread::sleep_for(milliseconds(5));
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  EXPECT_TRUE(Ends());
}

// The sockets of the server, above all the one that it listens on.
TEST_F(ConverterTest, InheritsNoDescriptors) {
  const int mine = dup(1);
  EXPECT_EQ(Run("fds").state, State::kDone);
  close(mine);
  const std::string listed = Read("fds");  // of ls itself: 0, 1, 2 and the directory it reads
  EXPECT_LE(std::count(listed.begin(), listed.end(), '\n'), 4) << listed;
}

}  // namespace
}  // namespace msprobe::serve
