// Where an input comes from that no recorded op made.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compare/describe/differences.h"
#include "compare/first_difference/walk_types.h"
#include "compare/pair/dump_pair.h"
#include "compare/pair/module_tree.h"
#include "compare/values/item_view.h"

namespace msprobe {

/// Whether a function takes its weights there: where no module is known, what requires gradients and comes from no op.
bool IsPlaceOfWeight(std::string_view op, const ItemView& item);

class OutsideValue {
 public:
  /// All of them outlive the object; `tree` is the target's.
  OutsideValue(const DumpPair& pair, const OpDistances& distances, const ModuleTree& tree)
      : pair_(pair), distances_(distances), tree_(tree) {}

  /// It is a parameter, or code in the innermost module whose own inputs agree made it: fills what `out` says of that.
  /// `partner` of the golden run: null where there is none.
  Status Fill(const ItemView& item, const ItemView* partner, FirstDifference* out) const;

 private:
  bool IsGivenNoTensor(size_t module, Status* status) const;
  StatusOr<std::optional<std::string>> ParameterOf(const ItemView& item, std::string_view module) const;
  bool SameValues(const ItemView& a, const ItemView& b) const;
  std::string LastAgreeingIn(std::string_view module, size_t end) const;

  const DumpPair& pair_;
  const OpDistances& distances_;
  const ModuleTree& tree_;
};

}  // namespace msprobe
