// Which ranks hold the parts of one model: the groups of tensor, context, expert and pipeline parallelism.
#pragma once

#include <msprobe/graph.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "dump/reader.h"

namespace msprobe {

/// What the dump of one rank says about its groups.
struct RankHints {
  int rank = 0;
  std::vector<std::vector<int>> reduces;  // groups of its all_reduce and reduce_scatter calls, each once, in order
  int sends_to = -1;                      // peer of its first send
  std::vector<std::string> names;         // of `reduces`; an empty group is that of all ranks that have its name
  std::vector<size_t> calls;              // of `reduces`: how many
  std::map<std::vector<int>, size_t> exchanges;  // groups of its all_to_all calls, and how many
};

/// Ranks that become one graph: of each pipeline stage a grid of ranks, tensor parallel fastest, then context, then
/// expert parallel.
struct MergeUnit {
  std::vector<std::vector<int>> stages;
  /// Of each cell, which share of the experts it holds; empty where the grid says it. Expert tensor parallelism of
  /// another size than that of the rest lays the shares over other ranks.
  std::vector<int> shares = {};
  int share_count = 1;
};

struct MergeGroups {
  bool tp_recorded = false, pp_recorded = false;  // read from the data, else from the order of the ranks
  std::vector<std::vector<int>> tp, pp;
  std::vector<std::vector<int>> ep;  // only where recorded calls tell other groups than the order
  std::vector<MergeUnit> units;      // more than one with data parallelism
  std::vector<Message> warnings;
};

/// kUsage when the numbers cannot be: factors that do not divide rank_size, an order with unknown names.
Status CheckMergeSettings(const ParallelLayout& settings, const char* side);

/// The sizes with as many expert parallel ranks as the grid has beside tensor and context parallelism: experts may lie
/// over the ranks of these as well.
ParallelLayout GridOf(const ParallelLayout& settings);

/// The ranks that a call communicates with, where it says so.
std::vector<int> RanksOfGroup(const JsonValue& op, std::string_view name);

RankHints ReadHints(int rank, const DumpFile& dump);

/// Groups of ranks 0..rank_size-1 along some dimensions ("tp", "cp"), by the order alone.
std::vector<std::vector<int>> GroupsByOrder(const ParallelLayout& settings, const std::vector<std::string>& along);

MergeGroups FindMergeGroups(const ParallelLayout& settings, const std::vector<RankHints>& hints);

}  // namespace msprobe
