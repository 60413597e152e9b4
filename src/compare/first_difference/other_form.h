// Modules that hold their weights in another form than their partners.
#pragma once

#include "base/slot_table.h"
#include "compare/pair/dump_pair.h"
#include "compare/pair/module_tree.h"
#include "compare/round_off/ruler.h"

namespace msprobe {

struct OtherForms {
  TextIds calls;           // forward and backward, of both runs
  uint64_t modules = 0;    // of the target
  std::string_view first;  // its first call
};

/// The modules of both runs whose partners are of another class and hold other parameters: adapters beside a
/// weight against the merged one, a quantised weight. A weight is no evidence there, what the module gives is: their
/// parameters are left out of `distances`.
StatusOr<OtherForms> LeaveOutOtherForms(const DumpPair& pair, const MatchPlan& plan, OpDistances* distances);

/// Adds the modules whose arguments are others than those of their partners, and in which no module has a partner:
/// what they compute with inside says nothing, what they give does.
void AddOtherCalls(const DumpPair& pair, const MatchPlan& plan, const OpDistances& distances, const ModuleTree& target,
                   TextIds* calls);

}  // namespace msprobe
