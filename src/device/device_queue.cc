#include "device/device_queue.h"

#include <algorithm>
#include <span>

#include "base/embed.h"

MSPROBE_EMBED(device_kernel, MSPROBE_KERNEL_FILE);

namespace msprobe::device {

DeviceQueue::DeviceQueue(const CudaDriver& driver, Outside outside) : driver_(driver), outside_(std::move(outside)) {
  batch_.tensors = 0;
}

CuResult LaunchBatch(const CudaDriver& driver, CuFunction function, CuStream stream, DeviceBatch* batch,
                     int32_t blocks) {
  void* arguments[] = {batch};
  return driver.launch(function, static_cast<unsigned>(blocks), 1, 1, kLanes, 1, 1, 0, stream, arguments, nullptr);
}

bool DeviceQueue::Add(int device, CuStream stream, const TensorView& view, int32_t slot) {
  DeviceTensor tensor;
  DeviceShape shape;
  if (!DescribeForKernel(view, &tensor, &shape)) return false;
  Device* opened = Opened(device);
  if (!opened->works) return false;
  const StreamKey key{device, stream};
  // Again, because another thread may have added to it while this one waited.
  while (has_batch() &&
         (batch_stream_ != key || batch_.tensors == kMostTensors || batch_parts_ + shape.parts > kSegmentParts)) {
    Launch();
  }
  if (!has_batch()) {
    const OnDevice on(driver_, opened->context);
    int capturing = kCuCaptureNone;
    const CuResult result = driver_.stream_is_capturing(stream, &capturing);
    if (result != kCuSuccess || capturing != kCuCaptureNone) return false;
    batch_stream_ = key;
    batch_parts_ = 0;
  }
  tensor.first_part = batch_parts_;
  batch_.tensor[batch_.tensors++] = tensor;
  batch_entries_.push_back({slot, batch_parts_, shape});
  batch_parts_ += shape.parts;
  return true;
}

void DeviceQueue::Launch() {
  if (!has_batch()) return;
  // Room() may wait, and another thread may then begin the next batch.
  DeviceBatch batch = batch_;
  const int32_t parts = batch_parts_;
  const StreamKey key = batch_stream_;
  std::vector<ResultSegment::Entry> entries;
  entries.swap(batch_entries_);
  batch_.tensors = 0;
  const int number = key.first;
  Device* device = Opened(number);
  Stream* stream = &streams_[key];
  const OnDevice on(driver_, device->context);
  bool started = Room(number, device, stream, parts);
  if (started) {
    ResultSegment& segment = stream->open;
    batch.parts = segment.on_device + segment.used;
    CuResult result = LaunchBatch(driver_, device->function, key.second, &batch, parts);
    if (result != kCuSuccess) TurnOff(number, "a kernel could not be launched", result);
    started = result == kCuSuccess;
    if (started) {
      for (ResultSegment::Entry entry : entries) {
        entry.first_part += segment.used;
        segment.entries.push_back(entry);
      }
      segment.used += parts;
      // With each launch: the stream may be gone when the segment is full.
      result = driver_.event_record(segment.event, key.second);
      if (result != kCuSuccess) Receive(number, device, std::exchange(segment, {}), result), stream->is_open = false;
    }
  }
  if (!started) {
    for (const ResultSegment::Entry& entry : entries) left_.push_back(entry.slot);
  }
  if (batch_entries_.empty()) {  // keeps its memory
    entries.clear();
    batch_entries_.swap(entries);
  }
}

bool DeviceQueue::Room(int number, Device* device, Stream* stream, int32_t parts) {
  while (device->works) {
    if (stream->is_open && stream->open.used + parts <= kSegmentParts) return true;
    if (stream->is_open) {
      stream->is_open = false;
      stream->sent.push_back(std::exchange(stream->open, {}));
      Poll();
    }
    if (!device->free.empty()) {
      stream->open = std::move(device->free.back());
      device->free.pop_back();
      stream->is_open = true;
    } else if (stream->sent.size() < kMostSegments) {
      stream->is_open = Allocate(number, &stream->open);
    } else {
      Wait(number, device, stream);
    }
  }
  return false;
}

bool DeviceQueue::Allocate(int number, ResultSegment* segment) {
  void* memory = nullptr;
  unsigned long long there = 0;
  CuResult result = driver_.host_alloc(&memory, kSegmentParts * sizeof(DeviceTally), kCuHostPortable | kCuHostMapped);
  if (result == kCuSuccess) result = driver_.host_device_pointer(&there, memory, 0);
  if (result == kCuSuccess) result = driver_.event_create(&segment->event, kCuEventWithoutTimes);
  if (result != kCuSuccess) {
    if (memory != nullptr) driver_.host_free(memory);
    TurnOff(number, "there is no memory of the host for results", result);
    return false;
  }
  segment->host = static_cast<DeviceTally*>(memory);
  segment->on_device = reinterpret_cast<DeviceTally*>(there);
  return true;
}

void DeviceQueue::Poll() {
  for (auto& [key, stream] : streams_) {
    if (stream.sent.empty()) continue;
    Device* device = Opened(key.first);
    const OnDevice on(driver_, device->context);
    while (!stream.sent.empty()) {
      const CuResult result = driver_.event_query(stream.sent.front().event);
      if (result == kCuNotReady) break;
      ResultSegment segment = std::move(stream.sent.front());
      stream.sent.pop_front();
      Receive(key.first, device, std::move(segment), result);
    }
  }
}

void DeviceQueue::Wait(int number, Device* device, Stream* stream) {
  ResultSegment segment = std::move(stream->sent.front());
  stream->sent.pop_front();
  CuResult result = kCuSuccess;
  outside_([&] {
    const OnDevice on(driver_, device->context);
    result = driver_.event_synchronize(segment.event);
  });
  Receive(number, device, std::move(segment), result);
}

void DeviceQueue::Fetch() {
  Launch();
  for (auto& [key, stream] : streams_) {
    if (stream.is_open && stream.open.used > 0) {
      stream.is_open = false;
      stream.sent.push_back(std::exchange(stream.open, {}));
    }
  }
  // A map keeps its members where they are while other threads add to it.
  for (auto& [key, stream] : streams_) {
    while (!stream.sent.empty()) Wait(key.first, Opened(key.first), &stream);
  }
}

void DeviceQueue::Receive(int number, Device* device, ResultSegment segment, CuResult result) {
  for (const ResultSegment::Entry& entry : segment.entries) {
    ArrivedStats arrived{entry.slot, result == kCuSuccess, {}};
    const std::span parts(segment.host + entry.first_part, static_cast<size_t>(entry.shape.parts));
    if (arrived.known) arrived.stats = StatsOfTallies(entry.shape, parts);
    arrived_.push_back(arrived);
  }
  if (result != kCuSuccess) return TurnOff(number, "results did not come", result);  // it may still write to the memory
  segment.used = 0;
  segment.entries.clear();
  device->free.push_back(std::move(segment));
}

void DeviceQueue::TurnOff(int number, const std::string& what, CuResult result) {
  Device& device = devices_[number];
  if (!device.works) return;
  device.works = false;
  const std::string cause = result == kCuSuccess ? "" : " (" + driver_.NameOf(result) + ")";
  fault_ = "cuda:" + std::to_string(number) + ": " + what + cause;
}

DeviceQueue::Device* DeviceQueue::Opened(int number) {
  const auto [place, is_new] = devices_.try_emplace(number);
  Device* device = &place->second;
  if (!is_new) return device;
  device->works = true;
  std::string what;
  const CuResult result = Open(number, device, &what);
  if (!what.empty()) TurnOff(number, what, result);
  return device;
}

CuResult DeviceQueue::Open(int number, Device* device, std::string* what) {
  *what = "the driver did not give the device";
  CuDevice handle = 0;
  CuResult result = driver_.init(0);
  if (result == kCuSuccess) result = driver_.device_get(&handle, number);
  if (result == kCuSuccess) result = driver_.context_retain(&device->context, handle);
  if (result != kCuSuccess) return result;
  const OnDevice on(driver_, device->context);
  *what = "the driver did not take the kernel";
  CuModule module = nullptr;
  result = driver_.module_load(&module, MSPROBE_EMBEDDED(device_kernel).data());
  if (result == kCuSuccess) result = driver_.function_get(&device->function, module, "msprobe_statistics");
  if (result != kCuSuccess) return result;
  if (KernelIsRight(driver_, device->function, what, &result)) what->clear();
  return result;
}

}  // namespace msprobe::device
