#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "tensor/kernels/content_hash.h"
#include "weights/fingerprint/row_hash.h"

namespace msprobe {
namespace {

constexpr int64_t kBytes = int64_t{400} << 20;

std::vector<char> Memory() {
  std::vector<char> memory(kBytes);
  uint64_t x = 1;
  for (size_t i = 0; i < memory.size(); i += 8) {
    x = x * 6364136223846793005 + 1442695040888963407;
    std::memcpy(&memory[i], &x, 8);
  }
  return memory;
}

// Rows of range(0) bytes against XXH3 of the same memory.
void BM_RowHashes(benchmark::State& state) {
  const std::vector<char> memory = Memory();
  const int64_t row = state.range(0), rows = kBytes / row;
  std::vector<uint64_t> out(static_cast<size_t>(rows));
  for (auto _ : state) {
    AddRowHashes(memory.data(), static_cast<size_t>(rows), row, static_cast<size_t>(row), 0, out.data());
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(state.iterations() * rows * row);
}
BENCHMARK(BM_RowHashes)->Arg(128)->Arg(512)->Arg(2048)->Arg(8192)->Arg(37888);

void BM_WholeXxh3(benchmark::State& state) {
  const std::vector<char> memory = Memory();
  const int64_t shape[] = {kBytes};
  for (auto _ : state) benchmark::DoNotOptimize(HashContent({memory.data(), DType::kUInt8, 1, shape, nullptr}));
  state.SetBytesProcessed(state.iterations() * kBytes);
}
BENCHMARK(BM_WholeXxh3);

}  // namespace
}  // namespace msprobe
