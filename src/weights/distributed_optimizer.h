// The states of Megatron's distributed optimizer: one long tensor for all weights of a rank, without their names.
#pragma once

#include <vector>

#include "tensor/files/pt_value.h"
#include "weights/weight_tensor.h"

namespace msprobe {

/// The flat tensors of one buffer, by their key; "param" has the fp32 weights.
using FlatStates = std::vector<std::pair<std::string, WeightTensor>>;

/// Cuts what distrib_optim.pt holds into states of the weights of its rank, as "exp_avg.NAME": weights lie last first,
/// each from a multiple of 64 elements on, which starts again with each bucket. `model` has the weights of each chunk
/// in the order of its file, and `out` gets the states of each. False, and nothing in `out`, unless the fp32 weights in
/// the file round to those of the model.
bool CutDistributedOptimizer(const PtValue& saved, int file, const std::vector<std::vector<WeightTensor>>& model,
                             std::vector<std::vector<WeightTensor>>* out);

/// The buffers in what distrib_optim.pt holds.
std::vector<FlatStates> FlatStatesOf(const PtValue& saved, int file);
/// As CutDistributedOptimizer(), of buffers that lie anywhere.
bool CutFlatStates(const std::vector<FlatStates>& buffers, const std::vector<std::vector<WeightTensor>>& model,
                   std::vector<std::vector<WeightTensor>>* out);

}  // namespace msprobe
