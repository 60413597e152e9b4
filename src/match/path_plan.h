// Which files of the target run stand against which files of the golden run: steps by number, ranks by id.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "dump/rank_choice.h"

namespace msprobe {

class JsonWriter;

struct FilePair {
  std::string target, golden;  // paths of dump.json or debug.json
  std::string label;           // "step0 rank1", "rank1", "proc42"; "" for two files
  std::string suffix;          // of result files: "_step0_rank1", "_rank1", "_proc42"; ""
  int step = -1, rank = -1;    // -1: not known
  std::string folder;          // of the results, below the output directory: "graph/step0"; ""
  std::string stack;           // stack.json of the target when it is not beside it; ""
};

/// A plain result that prints as JSON; comparing follows it.
struct PathPlan {
  std::vector<FilePair> pairs;
  std::vector<std::string> target_only, golden_only;  // directories without a partner
  bool debug = false;                                 // debug.json instead of dump.json
};

/// Two files; two rank, step or dump directories; two directories with dumps of MindSpore's modes ("graph",
/// "pynative"). kBadInput when the kinds differ or nothing pairs up.
StatusOr<PathPlan> PlanPaths(const std::string& target, const std::string& golden);
/// The same of the chosen ranks alone. kUsage when none of them is there.
StatusOr<PathPlan> PlanPaths(const std::string& target, const std::string& golden, const RankChoice& ranks);

void WritePathPlan(JsonWriter* json, const PathPlan& plan);

}  // namespace msprobe
