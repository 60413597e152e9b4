// A script of plain torch that calls the op which makes the first difference, with its inputs beside it.
#pragma once

#include <string>

#include "diagnose/divergence.h"
#include "match/mapping.h"

namespace msprobe {

struct Repro {
  std::string script;    // path of repro.py
  std::string tensors;   // path of repro.safetensors; "" when the dumps hold statistics only
  bool made_up = false;  // the inputs have the dump's shapes, types and statistics, but are drawn at random
};

/// Writes DIR/repro.py, at most 50 lines, and its tensors. kBadInput, one line, for what cannot be called again from a
/// dump: communication, modules of other classes than torch's own, arguments of other types.
StatusOr<Repro> WriteRepro(const Origin& origin, const Mapping& mapping, const std::string& directory);

}  // namespace msprobe
