// What an op costs the recording thread, from a thousand ops in a step to a million, and the memory that takes.
#include <benchmark/benchmark.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "capture/recorder.h"

namespace msprobe {
namespace {

constexpr size_t kNames = 40, kStacks = 60;

uint64_t ResidentBytes() {
  std::ifstream status("/proc/self/statm");
  uint64_t size = 0, resident = 0;
  status >> size >> resident;
  return resident * 4096;
}

/// An op of three tensors with statistics, as a layer of a language model makes them.
void RecordOne(Recorder* recorder, const OpName& name, uint32_t stack) {
  Record* record = recorder->Acquire(name);
  recorder->Reserve(record);
  record->KeyLiteral("input_args");
  record->BeginList();
  for (int i = 0; i < 3; ++i) {
    TensorRecord tensor;
    tensor.dtype = DType::kFloat32;
    tensor.ndim = 3;
    tensor.has_stats = true;
    tensor.stats.max = 1.5 + name.index;
    tensor.stats.min = -0.25;
    tensor.stats.mean = 0.001953125 * i;
    tensor.stats.norm = 17.3;
    tensor.dims = static_cast<uint32_t>(record->dims.size());
    record->dims.insert(record->dims.end(), {2, 128, 256});
    record->Tensor() = tensor;
  }
  record->EndList();
  record->KeyLiteral("input_kwargs");
  record->BeginDict();
  record->EndDict();
  {
    auto lock = recorder->lock();
    recorder->stacks().AddUse(stack, name);
    recorder->construct().AddOp(name, true);
  }
  recorder->Commit(record);
}

void BM_Step(benchmark::State& state) {
  const auto ops = static_cast<int32_t>(state.range(0));
  std::string dir = (std::filesystem::temp_directory_path() / "msprobe_bench.XXXXXX").string();
  if (mkdtemp(dir.data()) == nullptr) return state.SkipWithError("no temporary directory");
  Recorder recorder;
  std::array<const std::string*, kNames> names{};
  for (size_t i = 0; i < kNames; ++i) names[i] = InternName("Functional.op" + std::to_string(i));
  std::array<uint32_t, kStacks> stacks{};
  for (size_t i = 0; i < kStacks; ++i) {
    bool is_new = false;
    const Frame frame{nullptr, static_cast<int32_t>(i)};
    stacks[i] = recorder.stacks().Intern({&frame, 1}, &is_new);
    recorder.stacks().SetText(stacks[i], StackLines(12, std::string(90, 'x') + std::to_string(i)));
  }
  uint64_t most = 0;
  const uint64_t before = ResidentBytes();
  for (auto _ : state) {
    if (!recorder.Open({dir, "statistics", "mix"}).ok()) return state.SkipWithError("not opened");
    for (int32_t i = 0; i < ops; ++i) {
      const auto n = static_cast<size_t>(i);
      RecordOne(&recorder, {names[n % kNames], static_cast<int32_t>(n / kNames), NameForm::kApiForward},
                stacks[n % kStacks]);
      if (i % 10'000 == 0) most = std::max(most, ResidentBytes());
    }
    most = std::max(most, ResidentBytes());
    if (!recorder.Close().ok()) return state.SkipWithError("not written");
    most = std::max(most, ResidentBytes());
  }
  std::filesystem::remove_all(dir);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.SetItemsProcessed(state.iterations() * ops);
  state.counters["MB_more"] = static_cast<double>(most - std::min(most, before)) / 1e6;
  state.counters["MB_peak_process"] = static_cast<double>(usage.ru_maxrss) / 1e3;
}
BENCHMARK(BM_Step)->Arg(1000)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace msprobe
