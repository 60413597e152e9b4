#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/joined_threads.h"

namespace msprobe {
namespace {

TEST(JoinedThreads, AreWaitedForWhenAnExceptionPasses) {
  std::atomic<int> done{0};
  const auto fails = [&] {
    const JoinedThreads threads = StartThreads(2, [&] { ++done; });
    throw std::bad_alloc();
  };
  EXPECT_THROW(fails(), std::bad_alloc);
  EXPECT_EQ(done.load(), 2);
}

TEST(ParallelFor, VisitsEachIndexOnce) {
  for (int threads : {1, 2, 7}) {
    SetThreadCount(threads);
    std::vector<std::atomic<int>> seen(1000);
    ASSERT_TRUE(ParallelFor(1000, [&](size_t i) {
                  ++seen[i];
                  return OkStatus();
                }).ok());
    for (auto& s : seen) EXPECT_EQ(s.load(), 1);
  }
  SetThreadCount(0);
}

TEST(ParallelFor, ReportsAnError) {
  SetThreadCount(4);
  Status s = ParallelFor(100, [](size_t i) { return i == 17 ? BadInput("seventeen") : OkStatus(); });
  EXPECT_EQ(s.message(), "seventeen");
  SetThreadCount(0);
}

TEST(ParallelOrdered, TakesInOrderWithinTheWindow) {
  for (int threads : {1, 3, 8}) {
    SetThreadCount(threads);
    std::atomic<int> alive{0};
    std::vector<size_t> order;
    Status s = ParallelOrdered<size_t>(
        500, 4,
        [&](size_t i) -> StatusOr<size_t> {
          EXPECT_LE(++alive, 8 + threads);
          return i * i;
        },
        [&](size_t i, size_t&& v) {
          --alive;
          EXPECT_EQ(v, i * i);
          order.push_back(i);
          return OkStatus();
        });
    ASSERT_TRUE(s.ok());
    ASSERT_EQ(order.size(), 500u);
    for (size_t i = 0; i < 500; ++i) EXPECT_EQ(order[i], i);
  }
  SetThreadCount(0);
}

TEST(ThreadBudget, DividesTheThreadsAndGivesThemBack) {
  SetThreadCount(6);
  {
    ThreadBudget budget(4, 3);
    ThreadBudget::Task one(&budget);
    EXPECT_EQ(ThreadCount(), 2);
    std::vector<std::thread> threads = StartThreads(1, [] { EXPECT_EQ(ThreadCount(), 2); });
    ASSERT_EQ(threads.size(), 1u);
    threads[0].join();
    { ThreadBudget::Task another(&budget); }
    EXPECT_EQ(ThreadCount(), 2);
    { ThreadBudget::Task another(&budget); }
    EXPECT_EQ(ThreadCount(), 3);
    { ThreadBudget::Task another(&budget); }
    EXPECT_EQ(ThreadCount(), 6);
  }
  EXPECT_EQ(ThreadCount(), 6);
  ThreadBudget many(100, 100);
  ThreadBudget::Task one(&many);
  EXPECT_EQ(ThreadCount(), 1);
  SetThreadCount(0);
}

TEST(ThreadBudget, AnOrderedLoopTakesThreadsThatBecomeFree) {
  SetThreadCount(2);
  ThreadBudget budget(2, 2);
  ThreadBudget::Task task(&budget);
  const std::thread::id here = std::this_thread::get_id();
  std::atomic<size_t> elsewhere{0};
  size_t taken = 0;
  const Status status = ParallelOrdered<size_t>(
      200, 4,
      [&](size_t i) -> StatusOr<size_t> {
        elsewhere += std::this_thread::get_id() != here;
        return i;
      },
      [&](size_t i, size_t&& v) {
        EXPECT_EQ(i, v);
        EXPECT_EQ(i, taken);
        ++taken;
        if (i < 50) {
          EXPECT_EQ(elsewhere.load(), 0u);
        }
        if (i == 50) std::thread([&] { ThreadBudget::Task ended(&budget); }).join();
        return OkStatus();
      });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(taken, 200u);
  EXPECT_EQ(elsewhere.load(), 149u);
  SetThreadCount(0);
}

TEST(ParallelOrdered, StopsAtTheFirstError) {
  SetThreadCount(3);
  size_t taken = 0;
  Status s = ParallelOrdered<int>(
      100, 8,
      [](size_t i) -> StatusOr<int> {
        if (i == 10) return BadInput("ten");
        return 1;
      },
      [&](size_t, int&&) {
        ++taken;
        return OkStatus();
      });
  EXPECT_EQ(s.message(), "ten");
  EXPECT_EQ(taken, 10u);
  SetThreadCount(0);
}

TEST(Parallel, ExceptionsBecomeAStatus) {
  for (const int threads : {1, 4}) {
    SetThreadCount(threads);
    const Status status = ParallelFor(8, [](size_t i) -> Status {
      if (i == 3) throw std::bad_alloc();
      return OkStatus();
    });
    EXPECT_EQ(status.code(), Code::kInternal);
    EXPECT_NE(status.message().find("out of memory"), std::string::npos);
    const auto make = [](size_t i) -> StatusOr<int> {
      if (i == 5) throw std::length_error("long");
      return static_cast<int>(i);
    };
    const Status made = ParallelOrdered<int>(8, 2, make, [](size_t, int&&) { return OkStatus(); });
    EXPECT_EQ(made.code(), Code::kInternal);
    const auto take = [](size_t i, int&&) -> Status {
      if (i == 2) throw std::bad_alloc();
      return OkStatus();
    };
    EXPECT_EQ(ParallelOrdered<int>(
                  8, 2, [](size_t) -> StatusOr<int> { return 1; }, take)
                  .code(),
              Code::kInternal);
  }
  SetThreadCount(0);
}

}  // namespace
}  // namespace msprobe
