// Layer mapping: ops stand against each other by where they are in the model.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dump/reader.h"
#include "match/mapping.h"
#include "match/match_plan.h"

namespace msprobe {

/// The ops of one run, and what contains them; `parents` may be null. `modules` stands for it when it is given: the
/// module of each op.
struct LayerSide {
  std::vector<std::string_view> ops;
  std::shared_ptr<const ParentIndex> parents;
  std::vector<std::string_view> modules;
};

/// A module is where its name says, a function where its module in construct.json is. On the way down from the top, the
/// class of each module of the target selects the rules that give its children the golden run's names, longest first.
/// The n-th call of a module or function in one place and direction stands against the n-th of the golden run there.
StatusOr<MatchPlan> MatchLayers(const DumpFile& target, const DumpFile& golden, const std::vector<LayerRule>& rules);
MatchPlan MatchLayers(const LayerSide& target, const LayerSide& golden, const std::vector<LayerRule>& rules);

/// "" unless the mapping has rules and none of them gave an op its partner: then which file and line, and which side
/// lacks the names.
Message UnusedRulesWarning(const MatchPlan& plan, const Mapping& mapping);

/// Where the ops of a run are, as nested YAML: what the rules of a mapping go by. Layers deeper than 100 are left out.
using TakeText = std::function<Status(std::string_view)>;
Status WriteLayerTree(const DumpFile& dump, const TakeText& take);

}  // namespace msprobe
