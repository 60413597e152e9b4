#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "tensor/kernels/content_hash.h"
#include "tensor/kernels/content_hash_kernels.h"

namespace msprobe {
namespace {

void Run(benchmark::State& state, const content_hash::Kernel& kernel) {
  std::mt19937 random(1);
  std::vector<unsigned> memory(static_cast<size_t>(state.range(0)) / sizeof(unsigned));
  for (unsigned& x : memory) x = static_cast<unsigned>(random());
  for (auto _ : state) benchmark::DoNotOptimize(kernel.whole(memory.data(), memory.size() * sizeof(unsigned)));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void BM_ContentHashOfPieces(benchmark::State& state) {
  const int64_t n = state.range(0), shape[] = {n, n}, strides[] = {1, n};
  const std::vector<float> memory(static_cast<size_t>(n * n), 1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(HashContent({memory.data(), DType::kFloat32, 2, shape, strides}));
  }
  state.SetBytesProcessed(state.iterations() * n * n * 4);
}
BENCHMARK(BM_ContentHashOfPieces)->Arg(1000);

int Register() {
  const std::pair<const char*, const content_hash::Kernel*> all[] = {
      {"plain", content_hash::Plain()}, {"avx2", content_hash::Avx2()}, {"avx512", content_hash::Avx512()}};
  for (const auto& [isa, kernel] : all) {
    if (kernel == nullptr) continue;
    const std::string name = "BM_ContentHash/" + std::string(isa);
    benchmark::RegisterBenchmark(name.c_str(), [k = kernel](benchmark::State& s) { Run(s, *k); })
        ->Arg(64)
        ->Arg(4096)
        ->Arg(1 << 20)
        ->Arg(64 << 20);
  }
  return 0;
}
[[maybe_unused]] const int registered = Register();

}  // namespace
}  // namespace msprobe
