// From the graphs of the ranks of one unit to the tree of the merged graph, as a plan: which node of which rank goes
// where, under which name, and whose data it shows.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/merge_data.h"
#include "graph/merge_groups.h"

namespace msprobe {

/// A node that another rank than the first brought in.
struct MergeMove {
  int rank = 0;
  std::string from, to, parent;
};

/// A node that shows the inputs or outputs of the last stage or chunk.
struct MergeTake {
  std::string node;
  bool output = false;
  int rank = 0;
  std::string from;
};

/// What was decided, for people and tests.
struct MergeDecisions {
  std::vector<MergeMove> moved;  // only the tops of subtrees
  std::vector<MergeTake> taken;
  std::vector<std::pair<std::string, std::string>> reduced;  // call, and the reduction that its output becomes
};

/// `graphs` are those of the unit's ranks, stage by stage, cell by cell; they are used up.
StatusOr<RankGraph> MergeRanks(const MergeSettings& settings, const MergeUnit& unit, MergeLayout layout,
                               std::vector<std::unique_ptr<RankGraph>> graphs, MergeDecisions* decisions);

/// The number that makes a module one of several layers or experts: "a.layers.3.B.forward.0" -> prefix "a.layers.".
/// Nothing when the number belongs to `parent` already.
struct LayerNumber {
  std::string_view prefix, rest;  // rest begins behind the number
  int number = 0;
};
bool FindLayerNumber(std::string_view name, std::string_view parent, LayerNumber* out);
bool FindExpertNumber(std::string_view name, std::string_view parent, LayerNumber* out);

}  // namespace msprobe
