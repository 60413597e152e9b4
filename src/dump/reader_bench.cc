// Index and parse speed on a dump like those of real runs. MSPROBE_BENCH_DUMP names another file to read.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "dump/flatten.h"
#include "dump/reader.h"
#include "json/scan.h"

namespace msprobe {
namespace {

const std::string& DumpPathForBench() {
  static const std::string path = [] {
    if (const char* given = std::getenv("MSPROBE_BENCH_DUMP")) return std::string(given);
    std::string name = "/tmp/msprobe_reader_bench." + std::to_string(getpid()) + ".json";
    const std::string tensor =
        "    {\n     \"type\": \"torch.Tensor\",\n     \"dtype\": \"torch.float32\",\n     \"shape\": [\n      4,\n    "
        "  1024\n"
        "     ],\n     \"Max\": 2.559911012649536,\n     \"Min\": -2.6796107292175293,\n     \"Mean\": "
        "-0.045041438192129135,\n"
        "     \"Norm\": 9.091238021850586,\n     \"requires_grad\": true\n    }";
    std::string text = "{\n \"task\": \"statistics\",\n \"level\": \"mix\",\n \"data\": {";
    for (int i = 0; i < 100000; ++i) {
      text += (i ? ",\n  \"Functional.linear." : "\n  \"Functional.linear.") + std::to_string(i) +
              ".forward\": {\n   \"input_args\": [\n" + tensor + ",\n" + tensor +
              "\n   ],\n   \"input_kwargs\": {},\n   \"output\": [\n" + tensor + "\n   ]\n  }";
    }
    text += "\n }\n}";
    if (FILE* f = std::fopen(name.c_str(), "w")) {
      std::fwrite(text.data(), 1, text.size(), f);
      std::fclose(f);
    }
    std::atexit([] { std::remove(("/tmp/msprobe_reader_bench." + std::to_string(getpid()) + ".json").c_str()); });
    return name;
  }();
  return path;
}

void BM_Open(benchmark::State& state) {
  size_t bytes = 0;
  for (auto _ : state) {
    auto dump = DumpFile::Open(DumpPathForBench());
    if (!dump.ok()) return state.SkipWithError(dump.status().message().c_str());
    bytes += dump->file().text().size();
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK(BM_Open)->Unit(benchmark::kMillisecond);

void BM_Depth(benchmark::State& state) {
  auto dump = DumpFile::Open(DumpPathForBench());
  if (!dump.ok()) return state.SkipWithError(dump.status().message().c_str());
  size_t bytes = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(NestingDepth(dump->file().text()));
    bytes += dump->file().text().size();
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK(BM_Depth)->Unit(benchmark::kMillisecond);

void BM_ParseAndFlatten(benchmark::State& state) {
  auto dump = DumpFile::Open(DumpPathForBench());
  if (!dump.ok()) return state.SkipWithError(dump.status().message().c_str());
  JsonDoc doc;
  std::vector<Item> items;
  size_t bytes = 0, ops = 0;
  for (auto _ : state) {
    for (size_t i = 0; i < dump->ops().size(); ++i) {
      if (!dump->ParseOp(i, &doc).ok()) return state.SkipWithError("an op does not parse");
      items.clear();
      FlattenOp(dump->ops()[i].name, doc, &items);
      bytes += dump->ops()[i].length;
    }
    ops += dump->ops().size();
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
  state.SetItemsProcessed(static_cast<int64_t>(ops));
}
BENCHMARK(BM_ParseAndFlatten)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace msprobe
