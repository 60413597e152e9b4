// The data of the nodes of a merged graph: parts read from the ranks' dumps and put together when a row is written, so
// that no rank's values are held in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/message.h"
#include "graph/tree/builder.h"
#include "graph/tree/finding_kind.h"
#include "parallel/merge_layout.h"
#include "parallel/merge_stats.h"

namespace msprobe {

/// An op in the dump of one of the merged ranks.
struct OpRef {
  uint32_t rank = kNoIndex;  // position among the merged ranks
  uint32_t op = kNoIndex;
};

/// Sizes of the grid of ranks that hold parts of one node; tensor parallel fastest.
struct MergeGrid {
  uint16_t tp = 1, cp = 1, ep = 1;
  size_t cells() const { return size_t{tp} * cp * ep; }
};

/// Where the data of one node comes from.
struct MergeSource {
  MergeGrid grid;
  std::vector<OpRef> cells;  // one per cell of the grid, the first is the node's own
  std::vector<OpRef> input;  // of other nodes, when inputs or outputs are theirs (ends of a pipeline); else empty
  std::vector<OpRef> output;
  std::vector<OpRef> peers;  // of a node that shows its rank alone: the same call of all ranks, those of its grid first
  size_t near_peers = 0;     // that are of its grid
  std::vector<OpRef> reduced;  // call whose output is what this node's partial sums become; else empty
  std::string reduced_name;
  std::vector<OpRef> shares;  // of a call of experts that no module tells: the same call for the experts of other ranks
  bool of_expert = false;     // a call of experts that no module tells
  bool force = false;         // parts even where all their statistics are equal
  bool whole_input = false;   // but for the first input
  bool whole_output = false;  // but for outputs and bias
};

/// Ranks that should hold the same and do not, or a layout that the data contradicts.
struct MergeFinding {
  FindingKind kind = FindingKind::kNone;
  std::string node, tensor;
  Message text;
  std::vector<int> ranks;  // those that stand out; all of the group when none does
};

/// Statistics of the parts of one tensor, by rank.
struct MergedLeaf {
  std::string suffix;
  bool split = false;
  std::vector<int> ranks;
  std::vector<TensorStats> parts;
  size_t cells = 0;         // of the parts: those of the same grid, which come first
  bool alone = false;       // the node shows the first rank's
  size_t group = 1;         // how many parts in a row are of one tensor parallel group
  double Elements() const;  // of the whole
};

struct MergeNotes {
  std::vector<std::string> info;  // column parallel_merge_info
  std::vector<MergeFinding> findings;
  std::vector<MergedLeaf> leaves;
  std::vector<MergedLeaf> shares;  // of calls of experts: the same for the experts of other ranks
  std::vector<int> holders;        // of calls of experts: the ranks that have these
  void Clear() { info.clear(), findings.clear(), leaves.clear(), shares.clear(), holders.clear(); }
  /// That of the item with this suffix; null without one.
  const MergedLeaf* Leaf(std::string_view suffix) const {
    const auto it = std::ranges::find(leaves, suffix, &MergedLeaf::suffix);
    return it == leaves.end() ? nullptr : &*it;
  }
  MergedLeaf* Leaf(std::string_view suffix) { return const_cast<MergedLeaf*>(std::as_const(*this).Leaf(suffix)); }
};

class MergedData {
 public:
  /// The first of the ranks is the RankGraph that this belongs to.
  std::vector<int> ranks;            // numbers of the merged ranks
  std::vector<RankFiles> files;      // of all but the first
  std::vector<MergeSource> sources;  // by node
  /// For each rank: op of its dump -> node that shows it, of communication calls. Ranks that make the same call in the
  /// same place have one node.
  std::vector<std::unordered_map<uint32_t, uint32_t>> calls;
  std::vector<std::vector<std::string>> stacks;  // Node::stack
  MergeLayout layout;

  /// The entry of `node` as one rank would have recorded it. Thread-safe.
  Status Read(const RankGraph& self, uint32_t node, JsonDoc* doc, MergeNotes* notes) const;
  /// Entry of one op as it was recorded.
  Status ReadOp(const RankGraph& self, OpRef ref, JsonDoc* doc) const;
  std::string_view NameOf(const RankGraph& self, OpRef ref) const;
  /// Which rank's part of a tensor that came out wrong stands out against the golden statistics; empty when none does.
  static std::vector<int> Suspects(const MergedLeaf& leaf, const TensorStats& golden);

 private:
  const DumpFile& Dump(const RankGraph& self, uint32_t rank) const;
  Status ReadPeers(const RankGraph& self, OpRef own, const JsonValue& doc, std::span<const OpRef> others, size_t near,
                   std::vector<MergedLeaf>* leaves) const;
  Status Assemble(const RankGraph& self, const MergeSource& source, size_t cell, JsonDoc* doc, JsonDoc* other) const;
};

/// Writes the statistics that are given over those of a leaf of a dump.
void SetStats(const TensorStats& s, JsonValue* leaf);

/// The files of a rank, or of all that were merged.
std::vector<const RankFiles*> FilesOf(const RankGraph& rank);

/// Do inputs or outputs of two ops have other statistics? Tensors of one op alone do not count.
struct OpDifference {
  bool input = false, output = false;
};
OpDifference CompareOps(std::string_view name, const JsonValue& a, const JsonValue& b);

}  // namespace msprobe
