// Two dumps of different frameworks, without a mapping: by the structure of the models, the order of calls, and names
// that both frameworks have for the same thing.
#pragma once

#include <vector>

#include "dump/reader.h"
#include "match/mapping.h"
#include "match/match_plan.h"

namespace msprobe {

/// Modules pair by what they are and contain (module_pairs.h). In each pair, functions stand against each other in
/// order, those that compute first, those that only move elements in the gaps between them. Gradients go with their
/// forward calls. A linear layer or convolution that one side computes as a product and an added bias stands against
/// both, and layers that one side computes as one (query, key and value) against that together. `rules`, a layer
/// mapping, come first. kBadInput when a dump holds no call.
StatusOr<MatchPlan> MatchAcross(const DumpFile& target, const DumpFile& golden,
                                const std::vector<LayerRule>& rules = {});

/// The same for two implementations of a model in one framework: only modules are paired. What is inside of them is
/// made of other functions, which stand against each other by chance.
StatusOr<MatchPlan> MatchImplementations(const DumpFile& target, const DumpFile& golden,
                                         const std::vector<LayerRule>& rules);

/// Whether what is recorded as the gradient of a function is in one framework that of its last part only.
bool IsBackwardOfPart(std::string_view op);

/// The plan with the two runs exchanged.
MatchPlan Inverted(const MatchPlan& plan, size_t golden_ops);

}  // namespace msprobe
