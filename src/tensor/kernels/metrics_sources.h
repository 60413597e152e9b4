// Two tensors as runs of elements side by side, in the types that the comparing kernels know.
#pragma once

#include <cstdint>
#include <functional>

#include "tensor/kernels/layout.h"
#include "tensor/kernels/metrics_kernels.h"

namespace msprobe::metrics {

/// The type in which elements are compared.
enum class Work : uint8_t {
  kFloats,   // float, bfloat16 or half on each side
  kDoubles,  // double on both sides
  kInts,     // int64 or uint64 on each side
  kComplex,  // pairs of double on both sides
};

using Converter = void (*)(const void* from, size_t n, void* to);

struct SideLayout {
  DType dtype = DType::kUnknown;
  Layout layout;
  Converter convert = nullptr;  // null: the kernels read the elements as they are
  Floats floats = kFloat;       // kFloats: the type of the elements, converted where they are
  bool is_unsigned = false;     // kInts
};

struct Run {
  const void *target = nullptr, *golden = nullptr;
  size_t elements = 0;
  bool same = false;  // to the bit, and in dtype
};

class PairReader {
 public:
  /// To be used when the result is kCompared.
  PairState Init(const TensorView& target, const TensorView& golden);

  Work work() const { return work_; }
  int64_t count() const { return target_.layout.count; }
  /// How often each of them appears: dimensions that both tensors only repeat are read once.
  int64_t repeats() const { return repeats_; }
  const SideLayout& target() const { return target_; }
  const SideLayout& golden() const { return golden_; }

  /// take(run) for runs of up to kRun elements; their places do not depend on anything but `begin`.
  template <typename Take>
  void ForEachRun(int64_t begin, int64_t end, const Take& take) const;
  /// Tells that elements [begin, end) were read, where they lie in one stretch.
  void Release(int64_t begin, int64_t end, const std::function<void(const void*, size_t)>& release) const;
  /// Runs may go through memory in another order than that of the tensor.
  int64_t LogicalIndex(int64_t index) const;

 private:
  struct Buffers {
    alignas(64) char gathered[kRun * 16];
    alignas(64) char converted[kRun * 16];
  };
  const void* Read(const SideLayout& side, int64_t begin, size_t n, Buffers* buffers, const void** raw) const;
  void SortByMemory();

  struct Dimension {
    int64_t length;
    int64_t target, golden;  // strides
    int64_t logical;         // step in C order
    bool backwards;          // read from its last element on
  };
  /// The view with the dimensions in the order of runs; its shape and strides are put where the pointers say.
  TensorView Ordered(const TensorView& t, int64_t Dimension::*stride, int64_t* shape, int64_t* strides) const;

  SideLayout target_, golden_;
  Work work_ = Work::kDoubles;
  int64_t repeats_ = 1;
  Dimension dimensions_[kMaxDims];
  int ndim_ = 0;
};

template <typename Take>
void PairReader::ForEachRun(int64_t begin, int64_t end, const Take& take) const {
  Buffers target_buffers, golden_buffers;
  const bool comparable = target_.dtype == golden_.dtype;
  for (int64_t at = begin; at < end; at += static_cast<int64_t>(kRun)) {
    Run run;
    run.elements = static_cast<size_t>(end - at < static_cast<int64_t>(kRun) ? end - at : static_cast<int64_t>(kRun));
    const void *t = nullptr, *g = nullptr;
    run.target = Read(target_, at, run.elements, &target_buffers, &t);
    run.golden = Read(golden_, at, run.elements, &golden_buffers, &g);
    run.same = comparable && __builtin_memcmp(t, g, run.elements * target_.layout.element) == 0;
    take(run);
  }
}

/// Elements as doubles, complex ones by their absolute value; those that lie in `from` may have any alignment. False
/// for an unknown dtype.
bool ToDoubles(DType dtype, const void* from, size_t n, double* to);

/// The kernel of 64-bit integers that fits the signs of the two sides.
void CompareInts(const PairTable& table, const PairReader& pair, const Run& run, PairPartial* acc);
/// Element `i` of a run; its index is left to the caller. abs_err is infinite where one side is not finite and the
/// other is not the same, and 0 where both are the same.
WorstElement ElementOf(const PairReader& pair, const Run& run, size_t i);
/// The difference of a pair of one element each, rounded to the type in which the frameworks subtract them.
double RoundedDifference(const PairReader& pair, double difference);

/// The kernels in use: the fastest of this machine, if none were named.
const PairTable& ActivePairs();
/// False where this machine has none of this name.
bool UsePairs(const char* name);

}  // namespace msprobe::metrics
