// Values of tensors that are on a device: their reductions are started where the tensor is met and run in the order of
// its stream, and the numbers are read when they have arrived. Python (device_stats.py) starts and fetches; here the
// numbers become statistics, and the records that wait for them are finished.
#pragma once

#include <string>
#include <vector>

#include "bindings/python/py.h"
#include "capture/record.h"

namespace msprobe {

/// The slot in which the values of a tensor of this type and shape will arrive; with a `file` it will be saved there.
int32_t NewTensorSlot(const TensorView& view, int64_t count, bool checksums, const std::string& file);
/// The framework computes what goes to `slot`, or copies the elements. False when it cannot, which was counted.
bool DeferInFramework(PyObject* tensor, int32_t slot, bool elements, bool integer);
/// Nothing waits for it.
void DropSlot(int32_t slot);

/// A slot for values that whoever asks for it delivers itself, by DeliverValues().
int32_t NewDeferredSlot();
/// Type, shape, statistics and checksum, and the file it was saved in; empty: none.
void DeliverValues(int32_t slot, const TensorRecord& values, const std::vector<int64_t>& shape,
                   const std::string& file);
/// Nothing is known of the tensor: it is shown as null.
void DeliverNull(int32_t slot);

/// The numbers that a device computed of consecutive parts of a tensor.
struct DeviceCells {
  const char* first = nullptr;  // in host memory
  int64_t parts = 0;
  bool wide = true;  // double, else float
};
/// Bytes of the cells of a part: eight doubles or sixteen floats, of which the first six are maximum, minimum, sum,
/// norm, elements that are not finite, NaN; the last two int64 are maximum and minimum of integers.
inline constexpr int64_t kCellBytes = 64;

void DeliverStats(int32_t slot, const Stats& stats);
void DeliverCells(int32_t slot, const DeviceCells& cells);
/// The elements themselves, in C order.
void DeliverBytes(int32_t slot, const void* data);
/// Nothing will come.
void DeliverNothing(int32_t slot);
/// Finishes records whose values have all arrived.
void ResolveDeferred();
/// Before the files of a step are flushed or closed: waits for the devices.
void FetchDeferred();
/// The record's values are there when it returns; waits for the devices. For decisions that need them.
void ResolveNow(Record* record);
/// The record is dropped.
void ForgetDeferred(const Record& record);
/// Forgets what nobody asked for.
void EndDeferred();

}  // namespace msprobe
