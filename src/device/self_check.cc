#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "device/device_queue.h"
#include "device/host_kernel.h"

namespace msprobe::device {
namespace {

constexpr size_t kInputBytes = size_t{1} << 17;
constexpr int32_t kParts = 64;  // of any launch of the check
constexpr size_t kBytes = kInputBytes + kParts * sizeof(DeviceTally);

/// Any bits: numbers of every size, NaN and infinities.
void FillInput(char* memory) {
  uint64_t state = 0x9E3779B97F4A7C15;
  for (size_t i = 0; i + sizeof state <= kInputBytes; i += sizeof state) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const uint64_t bits = state ^ (state >> 29);
    std::memcpy(memory + i, &bits, sizeof bits);
  }
}

/// Of each type one tensor that lies in a run and has several parts where it can, and one with steps.
std::vector<TensorView> Views(const char* memory) {
  static constexpr int64_t kShape[] = {5, 7, 11}, kSteps[] = {3, 150, 17};
  static int64_t whole[static_cast<size_t>(DType::kUnknown)];
  std::vector<TensorView> views;
  for (size_t i = 0; i < static_cast<size_t>(DType::kUnknown); ++i) {
    const auto type = static_cast<DType>(i);
    whole[i] = std::min<int64_t>(kInputBytes / ElementSize(type), kPartElements + 2000);
    views.push_back({memory, type, 1, &whole[i], nullptr});
    views.push_back({memory, type, 3, kShape, kSteps});
  }
  return views;
}

bool SameSum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::fabs(a - b) <= 1e-12 * std::fabs(b);
}

bool SameTally(const DeviceTally& a, const DeviceTally& b) {
  return a.max == b.max && a.min == b.min && a.nan_count == b.nan_count && a.inf_count == b.inf_count &&
         SameSum(a.sum, b.sum) && SameSum(a.squares, b.squares) && SameSum(a.large_squares, b.large_squares) &&
         SameSum(a.small_squares, b.small_squares);
}

/// A stream and an event of the check alone.
struct OwnStream {
  explicit OwnStream(const CudaDriver& of) : driver(of) {
    result = driver.stream_create(&stream, kCuStreamApart);
    if (result == kCuSuccess) result = driver.event_create(&event, kCuEventWithoutTimes);
  }
  ~OwnStream() {
    if (event != nullptr) driver.event_destroy(event);
    if (stream != nullptr) driver.stream_destroy(stream);
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  const CudaDriver& driver;
  CuStream stream = nullptr;
  CuEvent event = nullptr;
  CuResult result;
};

}  // namespace

bool KernelIsRight(const CudaDriver& driver, CuFunction function, std::string* what, CuResult* result) {
  *what = "the kernel could not be tried";
  void* memory = nullptr;
  unsigned long long there = 0;
  const OwnStream own(driver);
  *result = own.result;
  if (*result == kCuSuccess) *result = driver.host_alloc(&memory, kBytes, kCuHostPortable | kCuHostMapped);
  if (*result == kCuSuccess) *result = driver.host_device_pointer(&there, memory, 0);
  if (*result != kCuSuccess) return false;
  auto* const input = static_cast<char*>(memory);
  auto* const parts = reinterpret_cast<DeviceTally*>(input + kInputBytes);
  FillInput(input);
  bool same = true;
  const std::vector<TensorView> views = Views(input);
  for (size_t first = 0; first < views.size() && same && *result == kCuSuccess; first += kMostTensors) {
    DeviceBatch batch;
    batch.tensors = static_cast<int32_t>(std::min<size_t>(kMostTensors, views.size() - first));
    int32_t blocks = 0;
    for (int i = 0; i < batch.tensors; ++i) {
      DeviceShape shape;
      same &= DescribeForKernel(views[first + static_cast<size_t>(i)], &batch.tensor[i], &shape);
      batch.tensor[i].first_part = blocks;
      blocks += shape.parts;
    }
    std::vector<DeviceTally> expected(static_cast<size_t>(blocks));
    batch.parts = expected.data();
    RunBatch(batch, blocks);
    for (int i = 0; i < batch.tensors; ++i) {
      const auto offset = static_cast<const char*>(batch.tensor[i].data) - input;
      batch.tensor[i].data = reinterpret_cast<const char*>(there) + offset;
    }
    batch.parts = reinterpret_cast<DeviceTally*>(there + kInputBytes);
    *result = LaunchBatch(driver, function, own.stream, &batch, blocks);
    if (*result == kCuSuccess) *result = driver.event_record(own.event, own.stream);
    if (*result == kCuSuccess) *result = driver.event_synchronize(own.event);
    same &= std::equal(expected.begin(), expected.end(), parts, SameTally);
  }
  if (*result != kCuSuccess) return false;
  driver.host_free(memory);
  if (!same) *what = "the kernel gave other numbers than this machine";
  return same;
}

}  // namespace msprobe::device
