// How fast numbers are cast: bytes of float32 that go in.
#include <benchmark/benchmark.h>

#include "lowp/formats/scaled_format.h"

namespace msprobe {
namespace {

DenseMatrix Numbers(int64_t rows, int64_t cols) {
  DenseMatrix out(rows, cols);
  uint32_t state = 1;
  for (float& v : out.values)
    v = static_cast<float>(static_cast<int32_t>(state = state * 1664525 + 1013904223)) * 1e-9F;
  return out;
}

void BM_Store(benchmark::State& state, const char* name) {
  const DenseMatrix in = Numbers(256, 4096);
  DenseMatrix out;
  const ScaledFormat format = *ParseScaledFormat(name);
  for (auto _ : state) {
    const float largest = LargestMagnitude(in.values.data(), in.rows * in.cols);
    benchmark::DoNotOptimize(StoreAndRead(format, {}, largest, in, &out));
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * in.rows * in.cols * 4);
}
BENCHMARK_CAPTURE(BM_Store, e4m3, "e4m3");
BENCHMARK_CAPTURE(BM_Store, e4m3_tiles, "e4m3:128x128");
BENCHMARK_CAPTURE(BM_Store, mxfp8, "mxfp8");
BENCHMARK_CAPTURE(BM_Store, nvfp4, "nvfp4");
BENCHMARK_CAPTURE(BM_Store, int8_rows, "int8:row");

}  // namespace
}  // namespace msprobe
