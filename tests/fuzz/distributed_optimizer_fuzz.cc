// distrib_optim.pt of Megatron beside fixed weights of one rank: states that are accepted have the shapes of their
// weights, are whole and can be read.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_file.h"
#include "tensor/files/pt_reader.h"
#include "weights/distributed_optimizer.h"

namespace msprobe {
namespace {

/// 0, 1/4, .. as float32, enough for each weight.
const std::array<float, 64>& Quarters() {
  static const std::array<float, 64> kQuarters = [] {
    std::array<float, 64> out{};
    for (size_t i = 0; i < out.size(); ++i) out[i] = 0.25f * static_cast<float>(i);
    return out;
  }();
  return kQuarters;
}

WeightTensor Weight(const std::string& name, int64_t rows, int64_t columns) {
  return WholeTensor({name, DType::kFloat32, Quarters().data(), {rows, columns}, {columns, 1}}, 0);
}

/// Two chunks of a rank, in one of which experts have an optimizer of their own.
const std::vector<std::vector<WeightTensor>>& Model() {
  static const std::vector<std::vector<WeightTensor>> kModel{
      {Weight("decoder.layers.0.mlp.linear_fc1.weight", 8, 4), Weight("decoder.layers.0.mlp.linear_fc2.weight", 4, 4),
       Weight("decoder.layers.1.mlp.experts.local_experts.0.linear_fc1.weight", 4, 2)},
      {Weight("output_layer.weight", 16, 4)}};
  return kModel;
}

}  // namespace
}  // namespace msprobe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const auto file = PtFile::Parse({reinterpret_cast<const char*>(data), size}, "distrib_optim.pt", PtObjects::kShown);
  if (!file.ok()) {
    fuzz::CheckRefusal(file.status());
    return 0;
  }
  std::vector<std::vector<WeightTensor>> states;
  if (!CutDistributedOptimizer(file->value(), 0, Model(), &states)) {
    fuzz::Check(states.empty(), "nothing is kept of what is not understood");
    return 0;
  }
  fuzz::Check(states.size() == Model().size(), "states of each chunk");
  std::vector<char> bytes;
  for (const auto& chunk : states) {
    for (const WeightTensor& t : chunk) {
      fuzz::Check(IsCovered(t), "each element lies in one block");
      bytes.resize(static_cast<size_t>(t.elements()) * ElementSize(t.dtype));
      GatherElements(t, 0, t.elements(), bytes.data());
    }
  }
  return 0;
}
