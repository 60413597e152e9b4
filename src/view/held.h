// What the queries share: the graph that one is about, and the files and graphs kept for the next.
#pragma once

#include <fmt/core.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "view/graph_cache.h"
#include "view/label.h"
#include "view/match_store.h"
#include "view/trend_cache.h"
#include "view/viewer.h"

namespace msprobe::view {

// The graph a question is about, held while it is answered.
struct Held {
  std::shared_ptr<const VisFile> file;
  std::shared_ptr<const RankGraph> graph;
  TensorMeter* meter = nullptr;
  const Tree& tree(Side side) const { return side == Side::kNpu ? graph->npu : graph->bench; }
  const Tree& other(Side side) const { return side == Side::kNpu ? graph->bench : graph->npu; }

  NodeSummary Summary(Side side, uint32_t i) const {
    const Tree& t = tree(side);
    const TreeNode& n = t[i];
    NodeSummary s;
    s.name = t.Name(i);
    s.label = ShortLabel(t.Name(i), n.type == 0, n.parent == t.root());
    s.type = n.type;
    s.children = n.children;
    s.order = n.order;
    s.micro_step = n.micro_step;
    s.level = n.level;
    s.overflow = n.overflow;
    s.counts = n.counts;
    if (n.partner != kNoNode) s.matched = other(side).Name(n.partner);
    return s;
  }

  StatusOr<uint32_t> Find(const GraphKey& key, Side side, std::string_view name) const {
    const Tree& t = tree(side);
    const char* side_name = side == Side::kNpu ? "NPU" : "Bench";
    if (t.empty()) {
      return BadInput(fmt::format("{} has no {} side at step {} rank {}: it is a single graph", key.file, side_name,
                                  key.step, key.rank));
    }
    const uint32_t i = name.empty() ? t.root() : t.Find(name);
    if (i == kNoNode) {
      return BadInput(fmt::format("{} has no {} node {} at step {} rank {}: use a name that it lists", key.file,
                                  side_name, name, key.step, key.rank));
    }
    return i;
  }
};

struct Viewer::Cache {
  Cache(const GraphDirectory& d, size_t bytes, std::string tensors)
      : directory(d), meter(std::move(tensors)), graphs(bytes, &meter) {}
  const GraphDirectory& directory;
  TensorMeter meter;
  GraphCache graphs;
  TrendCache trends;
  MatchStore matches;

  StatusOr<std::shared_ptr<const VisFile>> File(std::string_view name) {
    MSP_ASSIGN_OR_RETURN(auto found, directory.Resolve(name));
    return graphs.File(found.first, found.second, name);
  }
  /// As the file and the matches by hand beside it have it.
  StatusOr<Held> Hold(const GraphKey& key) {
    MSP_ASSIGN_OR_RETURN(auto found, directory.Resolve(key.file));
    const MatchStore::Loaded loaded = matches.Load(found.first);
    const auto at = loaded.edits->find({key.step, key.rank});
    std::shared_ptr<const MatchEdits> edits;
    // Shares the ownership of the whole.
    if (at != loaded.edits->end()) edits = std::shared_ptr<const MatchEdits>(loaded.edits, &at->second);
    Held held;
    held.meter = &meter;
    MSP_ASSIGN_OR_RETURN(held.file, graphs.File(found.first, found.second, key.file));
    MSP_ASSIGN_OR_RETURN(held.graph, graphs.Graph(held.file, key.step, key.rank, edits));
    return held;
  }
};

}  // namespace msprobe::view
