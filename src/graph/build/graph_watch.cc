#include "graph/build/graph_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/message.h"

namespace msprobe {
namespace {

constexpr uint32_t kEdgeNodes = 256;   // in one row of msprobe_flow
constexpr size_t kMostFindings = 200;  // of a kind, in one graph
constexpr uint32_t kNotExecuted = UINT32_MAX;

std::string_view WithoutCall(std::string_view name) {
  name = name.substr(0, name.rfind('.'));
  return name.substr(0, name.rfind('.'));
}

}  // namespace

void GraphWatch::Subtree::Take(const Subtree& child) {
  nodes += child.nodes;
  error += child.error;
  warning += child.warning;
  unmatched += child.unmatched;
  no_data += child.no_data;
  medium += child.medium;
  high += child.high;
  critical += child.critical;
  first_error = std::min(first_error, child.first_error);
  has_calls |= child.is_call || child.has_calls;
  if (!child.is_call) return;
  ++calls;
  if (!child.is_error) return;
  ++bad_calls;
  first_bad = std::min(first_bad, child.node);
}

Status GraphWatch::MakeTables() {
  if (!db_) return OkStatus();
  MSP_ASSIGN_OR_RETURN(
      subtrees_, db_->MakeTable("subtrees",
                                "node INTEGER PRIMARY KEY, nodes INTEGER, error INTEGER, warning INTEGER, unmatched "
                                "INTEGER, no_data INTEGER, medium INTEGER, high INTEGER, critical INTEGER, first_error "
                                "INTEGER"));
  MSP_ASSIGN_OR_RETURN(execution_,
                       db_->MakeTable("execution", "graph INTEGER, position INTEGER, node INTEGER, nodes INTEGER",
                                      "execution_graph (graph, position)"));
  MSP_ASSIGN_OR_RETURN(
      names_, db_->MakeTable("names", "graph INTEGER, pattern TEXT, count INTEGER, nodes BLOB", "names_graph (graph)"));
  MSP_ASSIGN_OR_RETURN(flow_, db_->MakeTable("flow", "node INTEGER PRIMARY KEY, count INTEGER, edges BLOB"));
  MSP_ASSIGN_OR_RETURN(exchanges_,
                       db_->MakeTable("exchanges", "exchange INTEGER, node INTEGER, gives INTEGER, takes INTEGER",
                                      "exchanges_node (node)"));
  MSP_ASSIGN_OR_RETURN(findings_, db_->MakeTable("findings",
                                                 "kind TEXT, source TEXT, step INTEGER, rank INTEGER, node INTEGER, "
                                                 "name TEXT, text TEXT"));
  return OkStatus();
}

void GraphWatch::Begin(const GraphSide& side, int64_t first_row) {
  side_ = &side;
  ++graph_;
  first_row_ = first_row;
  time_ = 0;
  open_.clear();
  times_.clear();
  edges_.clear();
  edges_from_ = 0;
  index_ = PatternIndex();
  error_ = bad_ = critical_ = gradient_ = Seen();
  bad_gradients_ = bad_modules_ = 0;
  found_.clear();
  bad_parameters_.clear();
  if (side.key.source == "NPU") alike_.clear();
  std::ranges::sort(alike_);
  if (!db_) return;
  times_.reserve(side.rank->graph.order.size());
  finder_.emplace(side.rank->graph.order.size());
}

const Node& GraphWatch::NodeAt(uint32_t place) const {
  const NodeGraph& graph = side_->rank->graph;
  return graph.nodes[graph.order[place]];
}

GraphWatch::Subtree GraphWatch::Count(const NodeRows::Row& row) {
  const Node& node = side_->rank->graph.nodes[row.node];
  Subtree tree;
  tree.nodes = 1;
  tree.node = row.order;
  tree.is_call = node.type == NodeType::kApi;
  tree.is_error = row.verdict == Verdict::kError;
  if (node.type != NodeType::kCollection) {
    tree.error = tree.is_error ? 1 : 0;
    tree.warning = row.verdict == Verdict::kWarning ? 1 : 0;
    tree.unmatched = compare_ && node.match == kNoIndex ? 1 : 0;
    const bool judged = compare_ && side_->key.source == "NPU";  // the golden side has no verdicts
    tree.no_data = judged && node.match != kNoIndex && row.verdict == Verdict::kNone ? 1 : 0;
    tree.medium = row.overflow == Overflow::kMedium ? 1 : 0;
    tree.high = row.overflow == Overflow::kHigh ? 1 : 0;
    tree.critical = row.overflow == Overflow::kCritical ? 1 : 0;
    if (tree.is_error) tree.first_error = row.order;
  }
  const size_t children = std::min(node.children.size(), open_.size());
  for (size_t i = open_.size() - children; i < open_.size(); ++i) tree.Take(open_[i]);
  open_.resize(open_.size() - children);
  open_.push_back(tree);
  return tree;
}

GraphFinding GraphWatch::Make(FindingKind kind, uint32_t node, Message text) const {
  GraphFinding f;
  f.kind = kind;
  f.source = side_->key.source;
  f.step = side_->key.step;
  f.rank = side_->key.rank;
  f.row_id = first_row_ + node;
  f.node = NodeAt(node).name;
  f.text = std::move(text);
  return f;
}

/// ", in Module.x": the module around a node; "" at the top.
std::string GraphWatch::In(uint32_t node) const {
  const uint32_t up = NodeAt(node).parent;
  const bool top = up == kNoIndex || up == 0 || side_->rank->graph.nodes[up].type == NodeType::kCollection;
  return top ? "" : fmt::format(", in {}", side_->rank->graph.nodes[up].name);
}

/// Both runs have it, as the infinities of a mask.
bool GraphWatch::OverflowsAlike(const NodeRows::Row& row) {
  if (side_->key.source != "NPU") return std::ranges::binary_search(alike_, row.node);
  const bool alike = row.has_partner && row.partner_overflow == row.overflow;
  if (alike) alike_.push_back(side_->rank->graph.nodes[row.node].match);
  return alike;
}

void GraphWatch::Note(const NodeRows::Row& row, const Subtree& tree, uint32_t time) {
  const auto first = [&](Seen* seen) {
    if (time < seen->time) *seen = {time, row.order};
  };
  const NodeType type = NodeAt(row.order).type;
  if (type == NodeType::kCollection) return;
  if (tree.is_error) first(&error_);
  if (row.overflow != Overflow::kNone && !OverflowsAlike(row)) {
    first(&bad_);
    if (row.overflow == Overflow::kCritical) first(&critical_);
  }
  if (type != NodeType::kModule || row.node == 0 || (!tree.is_error && tree.bad_calls == 0)) return;
  if (bad_modules_++ >= kMostFindings) return;
  const std::string_view name = NodeAt(row.order).name;
  if (tree.bad_calls == 0) {
    found_.push_back(Make(FindingKind::kBadModule, row.order,
                          Msg("{} is off: its own inputs, weights or outputs are an error, no call in it is", name)));
    return;
  }
  const std::string_view first_bad = NodeAt(tree.first_bad).name;
  found_.push_back(Make(FindingKind::kBadModule, row.order,
                        tree.bad_calls == 1 ? Msg("{} is off: {} of the {} calls in it is an error, first {}", name,
                                                  tree.bad_calls, tree.calls, first_bad)
                                            : Msg("{} is off: {} of the {} calls in it are errors, first {}", name,
                                                  tree.bad_calls, tree.calls, first_bad)));
}

void GraphWatch::NoteBadParameter(const BadParameter& bad, const NodeRows::Row& row) {
  const std::string_view name = NodeAt(row.order).name;
  if (bad.gradient) {
    ++bad_gradients_;
    if (time_ >= gradient_.time) return;
    gradient_ = {time_, row.order};
    gradient_text_ = Msg("the gradient {} is {}", bad.name, bad.value);
    return;
  }
  if (bad_parameters_.size() >= kMostFindings || !bad_parameters_.emplace(WithoutCall(name)).second) return;
  found_.push_back(
      Make(FindingKind::kBadParameter, row.order,
           Msg("{} of {} holds bad values before it is used: {}", bad.name, WithoutCall(name), bad.value)));
}

Status GraphWatch::Add(const NodeBlock& block) {
  size_t item = 0, bad = 0;
  if (db_) finder_->Expect(block.items);
  for (size_t i = 0; i < block.rows.rows.size(); ++i) {
    const NodeRows::Row& row = block.rows.rows[i];
    const Node& node = side_->rank->graph.nodes[row.node];
    // What has no entry in the dump happened about when the node before it did. Entries of several ranks have no order.
    if (node.op != kNoIndex) time_ = side_->rank->merged ? row.order : node.op;
    const Subtree tree = Count(row);
    Note(row, tree, time_);
    for (; bad < block.bad.size() && block.bad[bad].row == i; ++bad) NoteBadParameter(block.bad[bad], row);
    if (!db_) continue;
    const bool executed = node.type != NodeType::kCollection && row.node != 0;
    times_.push_back(executed ? time_ : kNotExecuted);
    if (!node.children.empty()) MSP_RETURN_IF_ERROR(WriteSubtree(row, tree));
    if (row.order - edges_from_ >= kEdgeNodes) MSP_RETURN_IF_ERROR(FlushEdges(row.order));
    const bool container = node.type != NodeType::kApi && tree.has_calls;
    finder_->Add(row.order, block.items.data() + item, block.item_end[i] - item, container, &edges_);
    item = block.item_end[i];
    index_.Add(row.order, node.name, block.patterns[i]);
  }
  return OkStatus();
}

Status GraphWatch::WriteSubtree(const NodeRows::Row& row, const Subtree& t) {
  subtrees_->Int(first_row_ + row.order).Int(t.nodes).Int(t.error).Int(t.warning).Int(t.unmatched).Int(t.no_data);
  subtrees_->Int(t.medium).Int(t.high).Int(t.critical);
  if (t.first_error != kNoIndex) subtrees_->Int(first_row_ + t.first_error);
  return subtrees_->Add();
}

Status GraphWatch::FlushEdges(uint32_t next) {
  if (!edges_.empty()) {
    const std::string packed = PackEdges(edges_from_, edges_);
    MSP_RETURN_IF_ERROR(
        flow_->Int(first_row_ + edges_from_).Int(static_cast<int64_t>(edges_.size())).Blob(packed).Add());
    edges_.clear();
  }
  edges_from_ = next;
  return OkStatus();
}

Status GraphWatch::WriteExecution() {
  std::vector<uint32_t> order;
  order.reserve(times_.size());
  for (uint32_t i = 0; i < times_.size(); ++i)
    if (times_[i] != kNotExecuted) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return times_[a] < times_[b]; });
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && order[end] == order[end - 1] + 1) ++end;
    execution_->Int(graph_).Int(static_cast<int64_t>(begin)).Int(first_row_ + order[begin]);
    MSP_RETURN_IF_ERROR(execution_->Int(static_cast<int64_t>(end - begin)).Add());
    begin = end;
  }
  return OkStatus();
}

Status GraphWatch::WriteNames() {
  for (const PatternIndex::Pattern& p : index_.patterns()) {
    MSP_RETURN_IF_ERROR(names_->Int(graph_).Text(p.text).Int(p.nodes).Blob(p.packed).Add());
  }
  return OkStatus();
}

Status GraphWatch::End(std::vector<GraphFinding>* findings) {
  if (error_.node != kNoIndex) {
    findings->push_back(Make(FindingKind::kFirstError, error_.node,
                             Message(fmt::format("the first error in the order of execution is {}{}",
                                                 NodeAt(error_.node).name, In(error_.node)))));
  }
  const Seen& bad = critical_.node != kNoIndex ? critical_ : bad_;
  if (bad.node != kNoIndex) {
    findings->push_back(Make(FindingKind::kFirstOverflow, bad.node,
                             bad.node == critical_.node
                                 ? Msg("the first node that makes infinite or NaN values of clean inputs is {}",
                                       std::string(NodeAt(bad.node).name) + In(bad.node))
                                 : Msg("the first node with infinite, NaN or exploding values is {}",
                                       std::string(NodeAt(bad.node).name) + In(bad.node))));
  }
  if (gradient_.node != kNoIndex) {
    findings->push_back(
        Make(FindingKind::kBadGradient, gradient_.node,
             Msg("{}; it is the first of {} modules with bad gradients", gradient_text_, bad_gradients_)));
  }
  findings->insert(findings->end(), std::make_move_iterator(found_.begin()), std::make_move_iterator(found_.end()));
  found_.clear();
  if (!db_) return OkStatus();
  MSP_RETURN_IF_ERROR(FlushEdges(0));
  MSP_RETURN_IF_ERROR(WriteExecution());
  MSP_RETURN_IF_ERROR(WriteNames());
  finder_.reset();
  return OkStatus();
}

Status GraphWatch::AddExchanges(const std::vector<RankNodeCalls>& ranks, const CommGraph& graph) {
  if (!db_) return OkStatus();
  for (const CommEvent& event : graph.events) {
    ++exchange_;
    std::map<int64_t, std::pair<bool, bool>> nodes;  // of merged ranks one node may show several calls
    for (const CommMember& m : event.members) {
      auto& [gives, takes] = nodes[ranks[m.rank].calls[m.call].row_id];
      gives |= m.gives;
      takes |= m.takes;
    }
    for (const auto& [row, part] : nodes) {
      if (row == 0) continue;
      exchanges_->Int(exchange_).Int(row);
      MSP_RETURN_IF_ERROR(exchanges_->Int(part.first ? 1 : 0).Int(part.second ? 1 : 0).Add());
    }
  }
  return OkStatus();
}

Status GraphWatch::AddFindings(const std::vector<GraphFinding>& findings) {
  if (!db_) return OkStatus();
  for (const GraphFinding& f : findings) {
    findings_->Text(FindingKindText(f.kind)).Text(f.source).Int(f.step).Int(f.rank);
    if (f.row_id > 0) {
      findings_->Int(f.row_id);
    } else {
      findings_->Null();
    }
    MSP_RETURN_IF_ERROR(findings_->Text(f.node).Text(f.text).Add());
  }
  return OkStatus();
}

}  // namespace msprobe
