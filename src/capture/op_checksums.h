// The tensors of one op as another run can be asked for them: where each stands, its shape and its CRC-32.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "capture/record.h"
#include "json/value.h"

namespace msprobe {

struct TensorSum {
  uint32_t place = 0;  // hash of side and position: ".input.0", ".output.1.key"
  uint32_t shape = 0;  // hash of the dimensions
  uint32_t crc = 0;
  bool operator==(const TensorSum&) const = default;
};

/// Tensors without a CRC-32 (fake ones, ...) are left out, as they are on the other side.
struct OpChecksums {
  std::vector<TensorSum> inputs, outputs;
  void Clear() { inputs.clear(), outputs.clear(); }
};

/// From what has been recorded. Parameters are left out.
void SumsOf(const Record& record, OpChecksums* sums);
/// From an op of a dump.json.
void SumsOf(std::string_view op_name, const JsonValue& op, OpChecksums* sums);

/// All inputs of `golden` are those of `here`, and an output is not.
bool OnlyOutputsDiffer(const OpChecksums& here, std::span<const TensorSum> golden_inputs,
                       std::span<const TensorSum> golden_outputs);

uint64_t HashText(std::string_view text);

}  // namespace msprobe
