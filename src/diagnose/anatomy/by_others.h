// Kinds that show against other tensors: those of other steps, calls, ranks and arguments, and the mask of the tokens.
#pragma once

#include "compare/values/tensor_folder.h"
#include "diagnose/anatomy/anatomy.h"
#include "diagnose/anatomy/evidence.h"
#include "diagnose/anatomy/op_items.h"

namespace msprobe {

/// The item at hand, by values where the dumps hold them.
struct ItemAtHand {
  const OriginEvidence& evidence;
  const AnatomyContext& context;
  const ItemView& target;
  const ItemView& golden;
  const ValuePair* values;  // null without
};

/// It is what the golden run has elsewhere.
Anatomy ExplainStale(const ItemAtHand& at);
/// It is what the golden run has, and what the target had in an earlier step added to it: gradients that are not
/// cleared.
Anatomy ExplainAccumulated(const ItemAtHand& at);
/// Ranks together, or another item of the op with it, give the golden value.
Anatomy ExplainPartial(const ItemAtHand& at, const OpItems& target, const OpItems& golden);
/// All that differs is padding.
Anatomy ExplainPadding(const ItemAtHand& at);

}  // namespace msprobe
