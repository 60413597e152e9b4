// The nodes that construct.json lists, each under its parent. What a line alone says is read on all threads; then the
// nodes are added line by line.
#include <algorithm>

#include "base/parallel.h"
#include "base/text.h"
#include "graph/tree/builder.h"

namespace msprobe {
namespace {

constexpr size_t kLinesPerTask = 2048;
constexpr uint32_t kNoLine = SlotTable::kNone;
constexpr size_t kOpsTried = 4;  // before an op is looked up by its name

/// construct.json by name, with the questions that the parent repairs ask.
class Construct {
 public:
  explicit Construct(const ConstructLines& file) : file_(file) {}
  const std::vector<ConstructLine>& lines() const { return file_.entries; }
  /// kNoLine when it has none.
  uint32_t LineOf(std::string_view name) const { return file_.Find(name); }
  /// Parent as written; empty when there is none or no such entry.
  std::string_view ParentOf(std::string_view name) const {
    const uint32_t i = file_.Find(name);
    return i == kNoLine ? std::string_view() : file_.entries[i].parent;
  }
  /// The name as construct.json stores it (a stable string), or empty.
  std::string_view Stored(std::string_view name) const {
    const uint32_t i = file_.Find(name);
    return i == kNoLine ? std::string_view() : file_.entries[i].name;
  }

 private:
  const ConstructLines& file_;
};

std::string TurnCall(std::string_view name, std::string_view from, std::string_view to) {
  std::string_view prefix, number;
  if (!SplitCall(name, from, &prefix, &number)) return std::string(name);
  std::string out(prefix);
  out += '.';
  out += to;
  out += '.';
  out += number;
  return out;
}

// A backward node without parent goes where its forward twin is, on the backward side.
std::string_view ParentOfLostBackward(const Construct& construct, std::string_view name) {
  std::string_view prefix, number;
  if (SplitCall(name, "backward", &prefix, &number)) {
    const std::string_view up = construct.ParentOf(TurnCall(name, "backward", "forward"));
    return up.empty() ? up : construct.Stored(TurnCall(up, "forward", "backward"));
  }
  if (EndsWith(name, ".backward")) {
    const std::string_view up = construct.ParentOf(ReplaceAll(name, "backward", "forward"));
    return up.empty() ? up : construct.Stored(ReplaceAll(up, "forward", "backward"));
  }
  return {};
}

std::string_view DropSegments(std::string_view name, int n) {
  for (; n > 0; --n) name = name.substr(0, name.rfind('.'));
  return name;
}

// In-place operators swallow the backward hook of the layer around them, so what follows is recorded under the wrong
// parent.
std::string_view ParentAfterInplace(const Construct& construct, std::string_view name, std::string_view parent) {
  std::string_view prefix, number;
  if (!SplitCall(name, "backward", &prefix, &number)) return parent;
  if (std::count(name.begin(), name.end(), '.') < 4 || std::count(parent.begin(), parent.end(), '.') < 3) return parent;
  if (DropSegments(name, 4) == DropSegments(parent, 3)) return parent;
  const std::string twin = TurnCall(name, "backward", "forward");
  const uint32_t line = construct.LineOf(twin);
  if (line == kNoLine) return parent;
  const std::string_view up = construct.lines()[line].parent;
  if (up.empty()) return {};
  const std::string_view moved = construct.Stored(TurnCall(up, "forward", "backward"));
  return moved.empty() ? parent : moved;
}

/// The name of the node whose stack a backward node shows when it has none; false for other nodes.
bool StackTwin(std::string_view name, std::string* twin) {
  std::string_view prefix, number;
  if (SplitCall(name, "backward", &prefix, &number)) {
    twin->assign(prefix);
    *twin += ".forward.0";
    return true;
  }
  if (!EndsWith(name, ".backward")) return false;
  *twin = ReplaceAll(name, "backward", "forward");
  return true;
}

/// What the files say of a node.
struct NodeFacts {
  std::string_view parent;  // after the repairs
  uint32_t parent_line = kNoLine;
  uint32_t op = kNoIndex;
  uint32_t stack = kNoIndex;     // its own
  uint32_t twin_line = kNoLine;  // of StackTwin()
  NodeType type = NodeType::kModule;
  bool has_twin = false;
};

/// Reads lines that follow each other.
class FactReader {
 public:
  FactReader(const RankFiles& files, const Construct& construct) : files_(files), construct_(construct) {}

  NodeFacts Read(const ConstructLine& line) {
    NodeFacts out = ReadName(line.name);
    out.parent = line.parent.empty() ? ParentOfLostBackward(construct_, line.name)
                                     : ParentAfterInplace(construct_, line.name, line.parent);
    if (out.parent.empty()) return out;
    if (out.parent != last_parent_) {
      last_parent_ = out.parent;
      last_parent_line_ = construct_.LineOf(out.parent);
    }
    out.parent_line = last_parent_line_;
    return out;
  }

  /// Of a node without a line.
  NodeFacts ReadName(std::string_view name) {
    NodeFacts out;
    out.type = TypeOfName(name);
    out.op = OpOf(name, out.type);
    const auto stack = files_.stack.StackOf(name);
    if (stack && !files_.stack.Frames(*stack).empty()) {
      out.stack = *stack;
    } else if (StackTwin(name, &twin_)) {
      out.has_twin = true;
      out.twin_line = construct_.LineOf(twin_);
    }
    return out;
  }

 private:
  // dump.json lists nodes as they end, so calls without others inside stand there in the order of construct.json.
  uint32_t OpOf(std::string_view name, NodeType type) {
    const auto& ops = files_.dump.ops();
    for (size_t i = next_op_; i < std::min(next_op_ + kOpsTried, ops.size()); ++i) {
      if (ops[i].name != name) continue;
      next_op_ = i + 1;
      return static_cast<uint32_t>(i);
    }
    const auto op = files_.dump.FindOp(name);
    if (!op) return kNoIndex;
    if (type == NodeType::kApi) next_op_ = *op + 1;
    return static_cast<uint32_t>(*op);
  }

  const RankFiles& files_;
  const Construct& construct_;
  std::string_view last_parent_;
  uint32_t last_parent_line_ = kNoLine;
  size_t next_op_ = 0;
  std::string twin_;
};

class NodeAdder {
 public:
  NodeAdder(const RankFiles& files, const Construct& construct, const std::vector<NodeFacts>& facts, NodeGraph* graph,
            std::vector<uint32_t>* line)
      : construct_(construct), facts_(facts), reader_(files, construct), graph_(*graph), line_(*line) {
    const size_t size = construct.lines().size();
    graph_.nodes.reserve(size + size / 8 + 16);
    graph_.index.Reserve(graph_.nodes.capacity());
    has_steps_ = files.construct.megatron_micro_steps.has_value();
    node_of_.assign(size, kNoIndex);
    const uint32_t root = construct.LineOf(kRootName);
    if (root != kNoLine) node_of_[root] = 0;
    line_.assign(1, 0);
  }

  void Add(uint32_t i) {
    const NodeFacts& facts = facts_[i];
    const uint32_t up = facts.parent.empty() ? 0 : NodeOf(facts.parent, facts.parent_line, i);
    const uint32_t id = NodeOf(construct_.lines()[i].name, i, i);
    if (id == 0 || id == up || graph_.nodes[id].parent != kNoIndex) return;
    graph_.SetParent(id, up);
    line_[id] = i;
  }

 private:
  uint32_t NodeOf(std::string_view name, uint32_t its_line, uint32_t at) {
    if (its_line != kNoLine) {
      if (node_of_[its_line] == kNoIndex) {
        const uint32_t id = Make(name, facts_[its_line], at);
        if (has_steps_) graph_.nodes[id].micro_step = construct_.lines()[its_line].micro_step;
        node_of_[its_line] = id;
      }
      return node_of_[its_line];
    }
    if (const uint32_t known = graph_.Find(name); known != kNoIndex) return known;
    const uint32_t id = Make(name, reader_.ReadName(name), at);
    if (has_steps_) graph_.nodes[id].micro_step = 0;
    without_line_ = true;
    return id;
  }

  uint32_t Make(std::string_view name, const NodeFacts& facts, uint32_t at) {
    const uint32_t stack = facts.has_twin ? StackOfTwin(name, facts) : facts.stack;
    const uint32_t id = graph_.Add(name, facts.type);
    graph_.nodes[id].stack = stack;
    graph_.nodes[id].op = facts.op;
    line_.push_back(at);
    return id;
  }

  // A backward node shows the stack of its forward node, as far as that one is known already.
  uint32_t StackOfTwin(std::string_view name, const NodeFacts& facts) {
    uint32_t forward = kNoIndex;
    if (facts.twin_line != kNoLine) {
      forward = node_of_[facts.twin_line];
    } else if (without_line_ && StackTwin(name, &twin_)) {
      forward = graph_.Find(twin_);
    }
    return forward == kNoIndex ? kLostStack : graph_.nodes[forward].stack;
  }

  const Construct& construct_;
  const std::vector<NodeFacts>& facts_;
  FactReader reader_;
  NodeGraph& graph_;
  std::vector<uint32_t>& line_;
  std::vector<uint32_t> node_of_;  // of each line
  bool has_steps_ = false;
  bool without_line_ = false;  // some node has none
  std::string twin_;
};

}  // namespace

Status AddConstructNodes(const RankFiles& files, NodeGraph* graph, std::vector<uint32_t>* line) {
  const auto& lines = files.construct.entries;
  const Construct construct(files.construct);
  std::vector<NodeFacts> facts(lines.size());
  MSP_RETURN_IF_ERROR(ParallelFor((lines.size() + kLinesPerTask - 1) / kLinesPerTask, [&](size_t task) -> Status {
    FactReader reader(files, construct);
    for (size_t i = task * kLinesPerTask; i < std::min(lines.size(), (task + 1) * kLinesPerTask); ++i) {
      facts[i] = reader.Read(lines[i]);
    }
    return OkStatus();
  }));
  NodeAdder adder(files, construct, facts, graph, line);
  for (uint32_t i = 0; i < lines.size(); ++i) adder.Add(i);
  return OkStatus();
}

}  // namespace msprobe
