#include "base/process_gone.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace msprobe {
namespace {

TEST(ProcessGone, OneThatNobodyWaitedForHasEnded) {
  EXPECT_FALSE(ProcessGone(getpid()));
  EXPECT_GT(StatOfProcess(getpid())->start, 0u);
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  ASSERT_GT(child, 0);
  EXPECT_FALSE(ProcessGone(child));
  kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(ProcessGone(child));
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(ProcessGone(child));
}

}  // namespace
}  // namespace msprobe
