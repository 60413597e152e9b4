#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "base/parallel.h"
#include "tensor/kernels/crc32.h"
#include "tensor/kernels/stats.h"

namespace msprobe {
namespace {

void Fill(std::vector<float>* v) {
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  for (float& x : *v) x = normal(rng);
}

void Run(benchmark::State& state, const char* isa, DType dtype, int threads) {
  const std::string before = StatsIsa();
  if (!SetStatsIsa(isa)) return state.SkipWithError("this machine lacks it");
  SetThreadCount(threads);
  const int64_t n = state.range(0);
  std::vector<float> memory(static_cast<size_t>(n) * ElementSize(dtype) / 4 + 4);
  Fill(&memory);
  // Two bfloat16 or half values in each float: exponents near 1, so that no block overflows.
  if (ElementSize(dtype) == 2 && IsFloating(dtype)) {
    for (float& x : memory)
      x = __builtin_bit_cast(float, (__builtin_bit_cast(uint32_t, x) & 0x807F807Fu) | 0x3E803E80u);
  }
  for (auto _ : state) {
    Stats s;
    benchmark::DoNotOptimize(ComputeStats({memory.data(), dtype, 1, &n, nullptr}, &s));
    benchmark::DoNotOptimize(s);
  }
  state.SetBytesProcessed(state.iterations() * n * static_cast<int64_t>(ElementSize(dtype)));
  SetThreadCount(0);
  (void)SetStatsIsa(before.c_str());
}

void BM_Transposed(benchmark::State& state) {
  const int64_t n = state.range(0), shape[2] = {n, n}, strides[2] = {1, n}, every[2] = {2 * n, 2};
  std::vector<float> memory(static_cast<size_t>(2 * n * n));
  Fill(&memory);
  for (auto _ : state) {
    Stats s;
    benchmark::DoNotOptimize(
        ComputeStats({memory.data(), DType::kFloat32, 2, shape, state.range(1) ? every : strides}, &s));
  }
  state.SetBytesProcessed(state.iterations() * n * n * 4);
}
BENCHMARK(BM_Transposed)->Args({1000, 0})->Args({1000, 1});

void BM_StatsAndCrc(benchmark::State& state) {
  const int64_t n = state.range(0);
  std::vector<float> memory(static_cast<size_t>(n));
  Fill(&memory);
  SetThreadCount(1);
  for (auto _ : state) {
    Stats s;
    uint32_t crc = 0;
    benchmark::DoNotOptimize(ComputeStatsAndCrc32({memory.data(), DType::kFloat32, 1, &n, nullptr}, &s, &crc));
    benchmark::DoNotOptimize(crc);
  }
  state.SetBytesProcessed(state.iterations() * n * 4);
  SetThreadCount(0);
}
BENCHMARK(BM_StatsAndCrc)->Arg(1000)->Arg(100000)->Arg(10000000)->Arg(100000000);

/// What one core reads: eight running sums, nothing else.
void BM_Read(benchmark::State& state) {
  const auto n = static_cast<size_t>(state.range(0));
  std::vector<uint64_t> memory(n / 2, 1);
  for (auto _ : state) {
    uint64_t sums[32] = {};
    for (size_t i = 0; i + 32 <= memory.size(); i += 32) {
      for (size_t k = 0; k < 32; ++k) sums[k] += memory[i + k];
    }
    benchmark::DoNotOptimize(sums);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 4);
}
BENCHMARK(BM_Read)->Arg(1000)->Arg(100000)->Arg(10000000)->Arg(100000000);

void BM_Crc(benchmark::State& state) {
  std::vector<float> memory(static_cast<size_t>(state.range(0)));
  Fill(&memory);
  for (auto _ : state) benchmark::DoNotOptimize(Crc32(memory.data(), memory.size() * 4));
  state.SetBytesProcessed(state.iterations() * state.range(0) * 4);
}
BENCHMARK(BM_Crc)->Arg(1000)->Arg(100000)->Arg(10000000);

int Register() {
  for (const char* isa : {"scalar", "avx2", "avx512", "neon"}) {
    if (const std::string before = StatsIsa(); !SetStatsIsa(isa)) {
      continue;
    } else {
      (void)SetStatsIsa(before.c_str());
    }
    for (const DType t :
         {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kFloat64, DType::kInt64, DType::kInt32,
          DType::kInt16, DType::kInt8, DType::kBool, DType::kFloat8E4M3FN, DType::kComplex64}) {
      const std::string name = "BM_Stats/" + std::string(isa) + "/" + std::string(DTypeName(t));
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& s) { Run(s, isa, t, 1); })
          ->Arg(1000)
          ->Arg(int64_t{1 << 20} / static_cast<int64_t>(ElementSize(t)))
          ->Arg(int64_t{64 << 20} / static_cast<int64_t>(ElementSize(t)));
    }
    const std::string name = "BM_Stats2Threads/" + std::string(isa) + "/float32";
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& s) { Run(s, isa, DType::kFloat32, 2); })
        ->Arg(10000000)
        ->UseRealTime();
  }
  return 0;
}
[[maybe_unused]] const int registered = Register();

}  // namespace
}  // namespace msprobe
