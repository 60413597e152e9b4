// Calls of modules in two recorded steps that can be held against each other alone: with the same inputs, does a module
// of B give what that of A gives?
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dump/reader.h"

namespace msprobe {

/// B's call -> A's call.
using CallPairs = std::map<std::string, std::string>;

/// dump.json of each rank of a step, by the name of the rank's directory; of a dump without ranks by "".
std::map<std::string, std::string> RankDumps(const std::string& step);

/// The partners of forward calls of B's modules, of those that both dumps hold.
StatusOr<CallPairs> PairCalls(const DumpFile& a, const DumpFile& b, const std::set<std::string>& calls);

/// First forward calls of modules, none within another, that hold together all the modules there are: the innermost of
/// those that contain modules, and what has no such relative. At most `most`, those that run first.
std::set<std::string> SeparateCalls(const DumpFile& dump, size_t most);

/// The first forward call of a module by its path ("layers.1.mlp") or by the name of the call; "" without one.
std::string CallOfModule(const DumpFile& dump, std::string_view module);

/// The path of a call: "layers.1.mlp".
std::string PathOfCall(std::string_view call);

bool IsBackwardOp(std::string_view op);

/// The one of `roots` around an op, or the op itself; "" outside of all.
std::string_view RootOf(const ParentIndex& parents, const std::set<std::string>& roots, std::string_view op);

}  // namespace msprobe
