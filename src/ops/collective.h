// Communications as torch.distributed names them: which way values move, which argument a call fills.
#pragma once

#include <cstdint>
#include <string_view>

namespace msprobe {

/// Which way values move in a communication.
enum class CommFlow : uint8_t { kNone, kSend, kReceive, kBatch, kFromRoot, kToRoot, kAll };

/// A row of op_traits.def.
struct Collective {
  std::string_view api;
  CommFlow flow = CommFlow::kNone;
  int position = -1;         // of the argument that it fills; -1: none
  std::string_view keyword;  // of the same
  uint16_t bits = 0;         // of op_trait

  bool Fills() const { return position >= 0; }
  bool Has(uint16_t trait) const { return (bits & trait) != 0; }
};

/// The row of "all_gather_into_tensor"; null for a name that has none.
const Collective* FindCollective(std::string_view api);

/// True where mindstudio-probe compares only the outputs, and so do the rules that its result files follow.
bool ComparesOutputsOnly(std::string_view api);

/// Of any API of torch.distributed, also of one that has no row.
CommFlow FlowOf(std::string_view api);

/// "all_reduce" of an op of torch.distributed, mindspore.communication.comm_func or mindspore.mint.distributed in any
/// direction, and of "Primitive.sum.AllReduce.0.forward"; "" for what is none.
std::string_view CommFunction(std::string_view op_name);

/// Whether it is one of them.
bool IsCommunication(std::string_view op_name);

/// "all_reduce" of "Distributed.all_reduce.3.forward"; "" for what is not a communication of values (barrier,
/// get_rank, a backward op).
std::string_view CommApi(std::string_view op_name);

/// Between two ranks, as stages of a pipeline do it; the name may have the suffix of a rank ("isend_rank3").
bool IsTransfer(std::string_view op_name);

}  // namespace msprobe
