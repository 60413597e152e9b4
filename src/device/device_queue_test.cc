#include "device/device_queue.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace msprobe::device {
namespace {

/// The library that stands in for the driver (tests/device/stand_in_driver.cc), loaded as a framework would load it.
struct StandIn {
  void (*set)(const char* name, int64_t value);
  int64_t (*count)(const char* call);
};

const StandIn& TheStandIn() {
  static const StandIn stand_in = [] {
    const std::string path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libcuda.so.1";
    void* library = dlopen(path.c_str(), RTLD_NOW);
    EXPECT_NE(library, nullptr) << dlerror();
    return StandIn{reinterpret_cast<decltype(StandIn::set)>(dlsym(library, "stand_in_set")),
                   reinterpret_cast<decltype(StandIn::count)>(dlsym(library, "stand_in_count"))};
  }();
  return stand_in;
}

class DeviceQueueTest : public testing::Test {
 protected:
  DeviceQueueTest() {
    TheStandIn().set("reset", 0);
    const CudaDriver* driver = CudaDriver::OfProcess();
    EXPECT_NE(driver, nullptr);
    queue = std::make_unique<DeviceQueue>(*driver, [this](const std::function<void()>& wait) {
      ++waits;
      wait();
    });
  }

  bool Add(const std::vector<float>& v, int32_t slot, CuStream stream = nullptr, int device = 0) {
    const auto count = static_cast<int64_t>(v.size());
    return queue->Add(device, stream, {v.data(), DType::kFloat32, 1, &count, nullptr}, slot);
  }

  static int64_t Launches() { return TheStandIn().count("launch") - kOfCheck; }

  static constexpr int64_t kOfCheck = 3;  // launches of the check when a device is opened
  static inline CuStream const kOther = reinterpret_cast<CuStream>(64);
  std::unique_ptr<DeviceQueue> queue;
  int waits = 0;
};

TEST_F(DeviceQueueTest, TensorsOfACallAreOneLaunch) {
  const std::vector<float> a{1, -2, 5}, b{7};
  EXPECT_TRUE(Add(a, 10));
  EXPECT_TRUE(Add(b, 11));
  EXPECT_TRUE(queue->has_batch());
  queue->Launch();
  EXPECT_EQ(Launches(), 1);
  EXPECT_TRUE(queue->TakeArrived().empty());
  queue->Fetch();
  const std::vector<ArrivedStats> got = queue->TakeArrived();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].slot, 10);
  EXPECT_TRUE(got[0].known);
  EXPECT_EQ(got[0].stats.max, 5);
  EXPECT_EQ(got[0].stats.min, -2);
  EXPECT_EQ(got[0].stats.norm, std::sqrt(30.0));
  EXPECT_EQ(got[1].slot, 11);
  EXPECT_EQ(got[1].stats.mean, 7);
  EXPECT_TRUE(queue->TakeLeft().empty());
  EXPECT_EQ(queue->TakeFault(), "");
}

TEST_F(DeviceQueueTest, StreamsHaveLaunchesOfTheirOwn) {
  const std::vector<float> v{1};
  EXPECT_TRUE(Add(v, 0));
  EXPECT_TRUE(Add(v, 1, kOther));
  EXPECT_EQ(Launches(), 1);
  EXPECT_TRUE(Add(v, 2));
  queue->Fetch();
  EXPECT_EQ(Launches(), 3);
  EXPECT_EQ(queue->TakeArrived().size(), 3u);
}

TEST_F(DeviceQueueTest, ManyTensorsFillBatchesAndSegmentsAndNothingIsWaitedFor) {
  std::vector<std::vector<float>> tensors(20);
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].assign(100'000, static_cast<float>(i));  // seven parts
  constexpr int32_t kTensors = 2000;
  for (int32_t i = 0; i < kTensors; ++i) ASSERT_TRUE(Add(tensors[static_cast<size_t>(i) % 20], i));
  EXPECT_EQ(waits, 0);
  queue->Fetch();
  std::vector<ArrivedStats> got = queue->TakeArrived();
  ASSERT_EQ(got.size(), static_cast<size_t>(kTensors));
  for (int32_t i = 0; i < kTensors; ++i) {
    EXPECT_EQ(got[static_cast<size_t>(i)].slot, i);
    EXPECT_EQ(got[static_cast<size_t>(i)].stats.max, i % 20);
  }
  EXPECT_LE(Launches(), kTensors / kMostTensors + 5);
}

TEST_F(DeviceQueueTest, TheOldestSegmentIsWaitedForAtTheBound) {
  const std::vector<float> first{1};
  EXPECT_TRUE(Add(first, -1));
  queue->Fetch();
  waits = 0;
  TheStandIn().set("late", 1);
  TheStandIn().set("idle", 1);  // what is found does not matter
  const std::vector<float> large(static_cast<size_t>(kPartElements) * 512);
  constexpr auto kMost = static_cast<int32_t>(DeviceQueue::kMostSegments);
  const int32_t most = kMost * (DeviceQueue::kSegmentParts / 512);
  for (int32_t i = 0; i < most; ++i) ASSERT_TRUE(Add(large, i));
  queue->Launch();
  EXPECT_EQ(waits, 0);
  for (int32_t i = 0; i < 8; ++i) ASSERT_TRUE(Add(large, most + i));
  queue->Launch();
  for (int32_t i = 0; i < 8; ++i) ASSERT_TRUE(Add(large, most + i));
  queue->Launch();
  EXPECT_GT(waits, 0);
  EXPECT_FALSE(queue->TakeArrived().empty());
  queue->Fetch();
}

TEST_F(DeviceQueueTest, ResultsAreNotReadBeforeTheyAreThere) {
  TheStandIn().set("late", 1);
  const std::vector<float> v{3};
  EXPECT_TRUE(Add(v, 1));
  queue->Launch();
  queue->Poll();
  EXPECT_TRUE(queue->TakeArrived().empty());
  queue->Fetch();
  EXPECT_EQ(waits, 1);
  ASSERT_EQ(queue->TakeArrived().size(), 1u);
}

TEST_F(DeviceQueueTest, WhileAGraphIsCapturedNothingIsTaken) {
  const std::vector<float> v{3};
  for (const int64_t how : {1, 2}) {
    TheStandIn().set("capturing", how);
    EXPECT_FALSE(Add(v, 1));
    EXPECT_EQ(Launches(), 0);
  }
  TheStandIn().set("capturing", 0);
  EXPECT_TRUE(Add(v, 1));
  EXPECT_EQ(queue->TakeFault(), "");
}

TEST_F(DeviceQueueTest, ADeviceThatFailsTheCheckIsNotUsed) {
  const struct {
    const char* fault;
    const char* said;
  } kFaults[] = {{"init_fails", "cuda:0: the driver did not give the device (error 500)"},
                 {"module_fails", "cuda:0: the driver did not take the kernel (error 200)"},
                 {"alloc_fails", "cuda:0: the kernel could not be tried (CUDA_ERROR_OUT_OF_MEMORY)"},
                 {"lost", "cuda:0: the kernel could not be tried (CUDA_ERROR_LAUNCH_FAILED)"},
                 {"wrong", "cuda:0: the kernel gave other numbers than this machine"}};
  const std::vector<float> v{3};
  for (const auto& fault : kFaults) {
    TheStandIn().set("reset", 0);
    TheStandIn().set(fault.fault, 1);
    DeviceQueue own(*CudaDriver::OfProcess(), [](const std::function<void()>& wait) { wait(); });
    const int64_t count = 1;
    EXPECT_FALSE(own.Add(0, nullptr, {v.data(), DType::kFloat32, 1, &count, nullptr}, 1));
    EXPECT_EQ(own.TakeFault(), fault.said);
    EXPECT_FALSE(own.Add(0, nullptr, {v.data(), DType::kFloat32, 1, &count, nullptr}, 1));
    EXPECT_EQ(own.TakeFault(), "");
  }
  EXPECT_FALSE(Add(v, 1, nullptr, 5));
  EXPECT_EQ(queue->TakeFault(), "cuda:5: the driver did not give the device (error 1)");
}

TEST_F(DeviceQueueTest, WhatCouldNotBeStartedIsLeftToTheCaller) {
  const std::vector<float> v{3};
  for (const auto& [fault, calls_of_check] :
       {std::pair{"launch_fails", kOfCheck}, std::pair{"alloc_fails", int64_t{1}}}) {
    TheStandIn().set("reset", 0);
    TheStandIn().set(fault, calls_of_check + 1);
    queue = std::make_unique<DeviceQueue>(*CudaDriver::OfProcess(), [](const auto& wait) { wait(); });
    EXPECT_TRUE(Add(v, 4));
    EXPECT_TRUE(Add(v, 5));
    queue->Launch();
    EXPECT_EQ(queue->TakeLeft(), (std::vector<int32_t>{4, 5})) << fault;
    EXPECT_NE(queue->TakeFault().find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << fault;
    EXPECT_FALSE(Add(v, 6));
    queue->Fetch();
    EXPECT_TRUE(queue->TakeArrived().empty());
  }
}

TEST_F(DeviceQueueTest, OfALostDeviceEverySlotIsAnswered) {
  const std::vector<float> v{3};
  EXPECT_TRUE(Add(v, 1));
  queue->Launch();
  EXPECT_TRUE(Add(v, 2));
  EXPECT_TRUE(Add(v, 3, kOther));
  queue->Launch();
  TheStandIn().set("lost", 1);
  EXPECT_TRUE(Add(v, 4));
  queue->Launch();
  EXPECT_EQ(queue->TakeLeft(), std::vector<int32_t>{4});
  queue->Fetch();
  std::vector<ArrivedStats> got = queue->TakeArrived();
  ASSERT_EQ(got.size(), 3u);
  EXPECT_TRUE(std::none_of(got.begin(), got.end(), [](const ArrivedStats& one) { return one.known; }));
  EXPECT_FALSE(queue->TakeFault().empty());
}

TEST_F(DeviceQueueTest, AnEventThatCannotBeRecordedAnswersItsSlots) {
  const std::vector<float> v{3};
  TheStandIn().set("record_fails", kOfCheck + 2);
  EXPECT_TRUE(Add(v, 1));
  queue->Launch();
  EXPECT_TRUE(Add(v, 2));
  queue->Launch();
  const std::vector<ArrivedStats> got = queue->TakeArrived();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_FALSE(got[0].known || got[1].known);
  EXPECT_TRUE(queue->TakeLeft().empty());
  EXPECT_FALSE(Add(v, 3));
}

}  // namespace
}  // namespace msprobe::device
