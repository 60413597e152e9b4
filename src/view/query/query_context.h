// The graph that a question is about.
#pragma once

#include <fmt/core.h>

#include <memory>
#include <string>
#include <string_view>

#include "view/file/graph_sides.h"
#include "view/file/vis_file.h"
#include "view/query/answers.h"
#include "view/query/label.h"
#include "view/query/manual_pair_metrics.h"

namespace msprobe::view {

/// QueryContext while the question is answered.
struct QueryContext {
  std::shared_ptr<const VisFile> file;
  std::shared_ptr<const GraphSides> graph;
  ManualPairMetrics* meter = nullptr;
  const Tree& tree(Side side) const { return side == Side::kTarget ? graph->target : graph->golden; }
  const Tree& other(Side side) const { return side == Side::kTarget ? graph->golden : graph->target; }

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
    s.ruling = n.ruling;
    s.counts = n.counts;
    if (n.partner != kNoNode) s.matched = other(side).Name(n.partner);
    return s;
  }

  StatusOr<uint32_t> Find(const GraphAddress& key, Side side, std::string_view name) const {
    const Tree& t = tree(side);
    const char* side_name = side == Side::kTarget ? "target" : "golden";
    if (t.empty()) {
      return BadInput(fmt::format("{} has no {} side at step {} rank {}: it is a single graph", key.file, side_name,
                                  key.step, key.rank));
    }
    const uint32_t i = name.empty() ? t.root() : t.Find(name);
    if (i == kNoNode) {
      return BadInput(fmt::format("{} has no {} node {} at step {} rank {}: check its name, or search for it", key.file,
                                  side_name, name, key.step, key.rank));
    }
    return i;
  }
};

}  // namespace msprobe::view
