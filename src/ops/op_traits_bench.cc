// What it costs to ask for an op's traits: rules ask once for every op of a comparison.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "ops/op_traits.h"

namespace msprobe {
namespace {

/// Ops as the dump of a language model has them, one in twelve of them ignored.
std::vector<std::string> OpNames() {
  std::vector<std::string> names;
  for (const char* api :
       {"Functional.linear", "Tensor.view", "Tensor.transpose", "Torch.matmul", "Functional.softmax", "Tensor.__add__",
        "Functional.scaled_dot_product_attention", "Tensor.contiguous", "Tensor.to", "Torch.somebody_s_kernel"}) {
    for (const char* rest : {".17.forward", ".17.backward"}) names.push_back(api + std::string(rest));
  }
  names.emplace_back("Module.model.layers.11.mlp.down_proj.Linear.forward.0");
  names.emplace_back("Module.model.layers.11.input_layernorm.LlamaRMSNorm.forward.0");
  names.emplace_back("Distributed.all_reduce.3.forward");
  names.emplace_back("Torch.cat.3.forward");
  return names;
}

template <auto Ask>
void BM_Ask(benchmark::State& state) {
  const std::vector<std::string> names = OpNames();
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(Ask(names[i]));
    if (++i == names.size()) i = 0;
  }
}
BENCHMARK(BM_Ask<IsIgnoredApi>)->Name("BM_IsIgnoredApi");
BENCHMARK(BM_Ask<HasArbitraryValues>)->Name("BM_HasArbitraryValues");
BENCHMARK(BM_Ask<ArithmeticOf>)->Name("BM_ArithmeticOf");
BENCHMARK(BM_Ask<OnlyMovesOrCasts>)->Name("BM_OnlyMovesOrCasts");

}  // namespace
}  // namespace msprobe
