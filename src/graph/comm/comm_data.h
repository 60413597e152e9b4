// What a communication call moves, as far as both ends must agree on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/communication_call.h"

namespace msprobe {

/// Of one transfer. Only what all members of an exchange must have in common is filled in.
struct CommData {
  std::string dtype;      // "torch.float32"; "" if not known
  std::string shape;      // "[2, 3]"; "" if not known
  int64_t elements = -1;  // -1: not known, or free to differ between ranks
  std::string reduction;  // "ReduceOp.SUM"; "" if not known or not a reduction
  bool operator==(const CommData&) const = default;
};

/// True for barriers: they move no values, but every rank of the group must come to them.
bool IsBarrier(std::string_view op_name);

/// The exchanges of a call, barriers included, each with what it moves.
void ReadExchanges(std::string_view op_name, const JsonValue& op, int own_rank, std::vector<CommTransfer>* transfers,
                   std::vector<CommData>* data);

}  // namespace msprobe
