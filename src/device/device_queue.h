// Statistics of tensors on CUDA devices: a batch of tensors is one launch on their stream, and what the kernel finds is
// written into memory of the host, where it is read when an event says that it is there. No function throws because of
// the device: what it cannot do is left to the caller.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/cuda_driver.h"
#include "device/statistics.h"

namespace msprobe::device {

/// Memory of the host that the device writes to, and the tensors whose numbers are there once its event has come.
struct ResultSegment {
  struct Entry {
    int32_t slot;
    int32_t first_part;
    DeviceShape shape;
  };
  DeviceTally* host = nullptr;
  DeviceTally* on_device = nullptr;
  CuEvent event = nullptr;
  int32_t used = 0;
  std::vector<Entry> entries;
};

struct ArrivedStats {
  int32_t slot;
  bool known;  // false: they will not come
  Stats stats;
};

/// For one thread at a time.
class DeviceQueue {
 public:
  static constexpr int32_t kSegmentParts = 4096;
  static constexpr size_t kMostSegments = 32;  // of a stream; the oldest is waited for when all are in use

  /// `outside` runs what waits for a device; another thread may use the queue meanwhile.
  using Outside = std::function<void(const std::function<void()>&)>;
  DeviceQueue(const CudaDriver& driver, Outside outside);

  /// Takes a tensor into the open batch; its memory must stay as it is until Launch(). False: it is the caller's.
  bool Add(int device, CuStream stream, const TensorView& view, int32_t slot);
  /// Starts the open batch.
  void Launch();
  /// Takes what has come, without waiting.
  void Poll();
  /// Waits for everything that was started.
  void Fetch();

  bool has_batch() const { return batch_.tensors > 0; }
  /// What was taken and could not be started.
  std::vector<int32_t> TakeLeft() { return std::exchange(left_, {}); }
  std::vector<ArrivedStats> TakeArrived() { return std::exchange(arrived_, {}); }
  /// Why a device is no longer used; said once. Empty: there is nothing to say.
  std::string TakeFault() { return std::exchange(fault_, {}); }

 private:
  struct Device {
    bool works = false;
    CuContext context = nullptr;
    CuFunction function = nullptr;
    std::vector<ResultSegment> free;
  };
  struct Stream {
    bool is_open = false;
    ResultSegment open;
    std::deque<ResultSegment> sent;
  };
  using StreamKey = std::pair<int, CuStream>;

  Device* Opened(int number);
  CuResult Open(int number, Device* device, std::string* what);
  void TurnOff(int number, const std::string& what, CuResult result);
  bool Room(int number, Device* device, Stream* stream, int32_t parts);
  bool Allocate(int number, ResultSegment* segment);
  void Wait(int number, Device* device, Stream* stream);
  void Receive(int number, Device* device, ResultSegment segment, CuResult result);

  const CudaDriver& driver_;
  const Outside outside_;
  std::map<int, Device> devices_;
  std::map<StreamKey, Stream> streams_;
  DeviceBatch batch_;
  StreamKey batch_stream_{};
  int32_t batch_parts_ = 0;
  std::vector<ResultSegment::Entry> batch_entries_;
  std::vector<int32_t> left_;
  std::vector<ArrivedStats> arrived_;
  std::string fault_;
};

/// Whether the kernel finds in known values what this machine finds; on a stream of its own, waited for. `what` says
/// what it does, or what it found wrong, when the result is not kCuSuccess or it gives false.
bool KernelIsRight(const CudaDriver& driver, CuFunction function, std::string* what, CuResult* result);

/// A launch of `blocks` parts.
CuResult LaunchBatch(const CudaDriver& driver, CuFunction function, CuStream stream, DeviceBatch* batch,
                     int32_t blocks);

}  // namespace msprobe::device
