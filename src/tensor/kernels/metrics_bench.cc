#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "tensor/kernels/metrics.h"

namespace msprobe {
namespace {

/// Normal numbers, or two short ones with exponents near 1 in the place of each float.
void Fill(std::vector<float>* v, DType dtype, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  const bool two = ElementSize(dtype) == 2 && IsFloating(dtype);
  for (float& x : *v) {
    x = normal(rng);
    if (two) x = __builtin_bit_cast(float, (__builtin_bit_cast(uint32_t, x) & 0x807F807Fu) | 0x3E803E80u);
  }
}

void Run(benchmark::State& state, const char* isa, DType dtype, bool same, int threads) {
  const std::string before = MetricsIsa();
  if (!SetMetricsIsa(isa)) return state.SkipWithError("this machine lacks it");
  SetThreadCount(threads);
  const int64_t n = state.range(0);
  std::vector<float> target(static_cast<size_t>(n) * ElementSize(dtype) / 4 + 4), golden(target.size());
  Fill(&target, dtype, 1);
  Fill(&golden, dtype, same ? 1 : 2);
  for (auto _ : state) {
    const TensorMetrics m =
        CompareTensors({target.data(), dtype, 1, &n, nullptr}, {golden.data(), dtype, 1, &n, nullptr});
    benchmark::DoNotOptimize(m.cosine);
  }
  state.SetBytesProcessed(state.iterations() * 2 * n * static_cast<int64_t>(ElementSize(dtype)));
  SetThreadCount(0);
  (void)SetMetricsIsa(before.c_str());
}

/// What one core reads of two tensors: running sums of both, nothing else.
void BM_ReadPair(benchmark::State& state) {
  const auto n = static_cast<size_t>(state.range(0));
  std::vector<uint64_t> target(n / 2, 1), golden(n / 2, 2);
  for (auto _ : state) {
    uint64_t sums[32] = {};
    for (size_t i = 0; i + 32 <= target.size(); i += 32) {
      for (size_t k = 0; k < 32; ++k) sums[k] += target[i + k] ^ golden[i + k];
    }
    benchmark::DoNotOptimize(sums);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 8);
}
BENCHMARK(BM_ReadPair)->Arg(100000)->Arg(30000000);

int Register() {
  for (const char* isa : {"scalar", "avx2", "avx512", "neon"}) {
    if (const std::string before = MetricsIsa(); !SetMetricsIsa(isa)) {
      continue;
    } else {
      (void)SetMetricsIsa(before.c_str());
    }
    const auto add = [&](const std::string& name, DType t, bool same, int threads) {
      const std::string full = name + "/" + isa + "/" + std::string(DTypeName(t));
      benchmark::RegisterBenchmark(full.c_str(), [=](benchmark::State& s) { Run(s, isa, t, same, threads); })
          ->Arg(1000)
          ->Arg(30000000)
          ->UseRealTime();
    };
    for (const DType t : {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kFloat64, DType::kFloat8E4M3FN,
                          DType::kInt32, DType::kInt64, DType::kComplex64}) {
      add("BM_Pair", t, false, 1);
    }
    add("BM_SamePair", DType::kFloat32, true, 1);
    add("BM_Pair2Threads", DType::kFloat32, false, 2);
    add("BM_Pair2Threads", DType::kBFloat16, false, 2);
  }
  return 0;
}
[[maybe_unused]] const int registered = Register();

}  // namespace
}  // namespace msprobe
