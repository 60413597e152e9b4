// From the three files of a rank to its graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/message.h"
#include "dump/construct_lines.h"
#include "dump/reader.h"
#include "graph/tree/node_graph.h"

namespace msprobe {

/// The files of one rank directory. Nodes of its graph point into them.
struct RankFiles {
  std::string dir;
  DumpFile dump;
  StackFile stack;
  ConstructLines construct;
  /// Where the tensors of the dump are; nothing when the dump says null.
  std::optional<std::string> data_dir;
  Message warning;  // what the graph lacks because a file is absent
};

class MergedData;

struct RankGraph {
  RankFiles files;
  NodeGraph graph;
  /// Of each node its entry in construct.json, which lists nodes as they start; nodes behind its end have none.
  std::vector<uint32_t> line;
  size_t orphans = 0;  // nodes whose parent has no line in construct.json; they hang under the root
  std::shared_ptr<const MergedData> merged;  // of the graph of several ranks: where the data of its nodes is
};

/// What becomes of a dump without modules (level L1).
enum class WithoutModules : uint8_t {
  kRefused,
  kOneModule,  // all calls are those of one module: flat_structure.h
};

/// Opens dump.json, construct.json and, when it is there, stack.json of a rank directory. kBadInput when one of the
/// first two is missing or no model structure was recorded.
StatusOr<RankFiles> OpenRank(const std::string& dir, WithoutModules how = WithoutModules::kRefused);

/// Hierarchy: parents (with the repairs for backward nodes, in-place operators and recomputation), collections of the
/// calls between modules, gradients of parameters. `micro_step` is set only where construct.json has it.
StatusOr<RankGraph> BuildRankGraph(const std::string& dir, WithoutModules how = WithoutModules::kRefused);

/// Steps of BuildRankGraph, for tests.
/// `line` receives, for each node, the construct.json entry at which it got its parent or, without one, first appeared.
Status AddConstructNodes(const RankFiles& files, NodeGraph* graph, std::vector<uint32_t>* line);
size_t AttachOrphans(const std::vector<uint32_t>& line, NodeGraph* graph);
void RepairRecompute(const RankFiles& files, NodeGraph* graph);
void CollectRootApis(NodeGraph* graph);
/// The k-th gradient of a module's parameters goes to the call of the module that completed it.
void AddParameterGrads(const RankFiles& files, NodeGraph* graph);

/// True when the frames of a stack show that activation recomputation made the call.
bool StackShowsRecompute(const std::vector<std::string>& frames);

}  // namespace msprobe
