#include "trend/monitor_trend.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace msprobe {
namespace {

namespace fs = std::filesystem;

TEST(MonitorTrend, RowsThatATrainingAddsMeanwhileAreLeftForTheNextTime) {
  const fs::path root = fs::path(testing::TempDir()) / ("monitor_trend_" + std::to_string(getpid()));
  const fs::path run = root / "Dec03_21-34-40-rank0-1a2b3c4d";
  fs::create_directories(run);
  std::ofstream csv(run / "grad_reduced_0-9.csv");
  csv << "vpp_stage,name,step,norm\n";
  int step = 0;
  const auto add = [&] { csv << "0,w," << step++ << ",1.5\n"; };
  while (step < 30'000) add();
  csv << std::flush;
  const auto files = FindMonitorFiles(root.string());
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 1u);
  std::atomic<bool> started{false}, done{false};
  std::thread training([&] {
    while (!done && step < 400'000) {
      add();
      csv << std::flush;
      started = true;
    }
  });
  while (!started) std::this_thread::yield();
  TrendSettings settings;
  settings.output = (root / "monitor_data.trend.db").string();
  const auto report = WriteMonitorTrend(*files, settings);
  done = true;
  training.join();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->rows, static_cast<uint64_t>(report->max_step) + 1) << "a row for each step that it tells of";
  fs::remove_all(root);
}

}  // namespace
}  // namespace msprobe
