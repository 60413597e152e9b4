// Which forward and backward pass of a step an op belongs to, and its call number within that pass.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "dump/reader.h"

namespace msprobe {

struct MicroPlace {
  int32_t micro_step = 0;
  int64_t call = -1;  // its number among the calls of its name in the micro step; -1: it has no number
};

struct MicroSteps {
  int count = 1;
  /// By position in DumpFile::ops(). Empty where construct.json names no module: ops keep their numbers then.
  std::vector<MicroPlace> places;
};

/// A micro step begins with a module below no other that runs forward after a backward pass, or that began the one
/// before; where Megatron counts them, its count holds.
MicroSteps FindMicroSteps(const ConstructFile& construct, const std::vector<std::string_view>& ops);

/// The last or last but one part of a name when it is a number: where it stands, and the number.
struct CallNumber {
  size_t begin = 0, end = 0;
  int64_t number = -1;  // -1: there is none
};
CallNumber CallNumberOf(std::string_view name);

}  // namespace msprobe
