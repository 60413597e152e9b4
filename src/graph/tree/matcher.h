// Which node of one graph is the same call in the other.
#pragma once

#include <optional>
#include <string>

#include "graph/tree/node_graph.h"
#include "match/match_plan.h"

namespace msprobe {

/// Same name and same names of all ancestors. Sets Node::match on both sides. "Module.0." of a model that was recorded
/// as a list stands for "Module." of one that was not.
void MatchByName(NodeGraph* target, NodeGraph* golden);

/// Modules by name alone; the calls directly inside a matched module by their name without the call number, in order.
void MatchFuzzy(NodeGraph* target, NodeGraph* golden);

/// By a plan for the ops of the two dumps; nodes without an op by their name. Ancestors do not count, and several nodes
/// of `target` may stand against one of `golden`.
void MatchByPlan(const MatchPlan& plan, NodeGraph* target, NodeGraph* golden);

/// For the pairs that are there: the calls inside a matched module that have no partner, by their name without the call
/// number, in order.
void MatchCallsInside(NodeGraph* target, NodeGraph* golden);

/// "Functional.linear.12.forward" -> "Functional.linear.forward": call numbers and "_rank<r>" removed.
std::string NameWithoutCounts(std::string_view name);

/// Numbers the micro steps (one forward and backward pass each) by the order of the root's children and hands the
/// numbers down the tree and to the matched nodes of `golden` (may be null). Returns how many there are. With
/// `recorded` (the number that construct.json gives) the numbers of the nodes stay as they were recorded.
int NumberMicroSteps(std::optional<int> recorded, NodeGraph* target, NodeGraph* golden);

}  // namespace msprobe
