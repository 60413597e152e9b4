// A check of the ops of a rank; op_checks.def lists them.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "dump/flatten.h"
#include "dump/repair/verify_finding.h"

namespace msprobe {

class OpCheck {
 public:
  virtual ~OpCheck() = default;
  /// Every op of the dump in order, before its items.
  virtual void SeeOp(std::string_view name) { (void)name; }
  /// Every input, output and parameter of an op that can be parsed; it lives as long as the call.
  virtual void SeeItem(const Item& item) { (void)item; }
  /// After the last op.
  virtual void Report(std::vector<VerifyFinding>* out) = 0;
};

#define MSPROBE_OP_CHECK(name) std::unique_ptr<OpCheck> Make##name();
#include "dump/repair/op_checks.def"
#undef MSPROBE_OP_CHECK

}  // namespace msprobe
