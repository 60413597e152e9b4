// Merged graphs of two frameworks as the dumps of single ranks: what pairs the ops of two frameworks reads dumps.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/message.h"
#include "base/temp_directory.h"
#include "dump/reader.h"
#include "graph/build/graph_links.h"
#include "graph/tree/builder.h"
#include "match/mapping.h"

namespace msprobe {

/// The two dumps, in a directory that is removed with the object.
struct WholeDumps {
  explicit WholeDumps(TempDirectory made) : directory(std::move(made)) {}
  TempDirectory directory;
  std::unique_ptr<DumpFile> target, golden;
  std::vector<uint32_t> target_op, golden_op;  // of each node; kNoOp: it has no data
};

/// Writes all nodes of both graphs, in the order of the graphs, below `output`.
StatusOr<std::unique_ptr<WholeDumps>> WriteWholeDumps(const RankGraph& target, const RankGraph& golden,
                                                      const std::string& output);

/// Pairs the nodes as tables pair the ops of the two dumps; what has no data, by name. `links` is then by op of the
/// target's dump. Returns what to warn of.
StatusOr<std::vector<Message>> MatchWhole(const Mapping& mapping, const WholeDumps& whole, RankGraph* target,
                                          RankGraph* golden, GraphLinks* links);

}  // namespace msprobe
