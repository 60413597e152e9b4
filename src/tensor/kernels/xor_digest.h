// The other checksum of a tensor: its bytes as 64-bit words, all XORed.
#pragma once

#include <cstdint>

#include "tensor/kernels/stats.h"

namespace msprobe {

/// Of the elements in C order, little endian, with zeros up to a multiple of 8 bytes behind them.
uint64_t ComputeXor(const TensorView& t);

}  // namespace msprobe
