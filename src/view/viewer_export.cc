// Graphs as one text, for a page without a server.
#include <algorithm>
#include <utility>
#include <vector>

#include "view/held.h"
#include "view/json_parts.h"
#include "view/recompare.h"
#include "view/view_json.h"
#include "view/viewer.h"

namespace msprobe::view {
namespace {

constexpr size_t kMostEdges = 400'000;    // of a graph; a graph with more goes without
constexpr uint64_t kMostNodes = 600'000;  // of all graphs: what a browser takes

void Int(std::string& out, uint32_t value) {
  // kNoNode is -1 there.
  out += ',';
  AppendInt(out, static_cast<int32_t>(value));
}

// [[name, length of the label, type, parent, level, overflow, partner, micro step, order], ...]
void Nodes(std::string& out, const Tree& tree) {
  out += '[';
  for (uint32_t i = 0; i < tree.size(); ++i) {
    const TreeNode& n = tree[i];
    if (i != 0) out += ',';
    out += '[';
    Text(out, tree.Name(i));
    Int(out, static_cast<uint32_t>(ShortLabel(tree.Name(i), n.type == 0, n.parent == tree.root()).size()));
    Int(out, n.type);
    Int(out, i == tree.root() ? kNoNode : n.parent);
    out += ',';
    out += LevelNumber(n.level);
    Int(out, static_cast<uint32_t>(n.overflow));
    Int(out, n.partner);
    out += ',';
    AppendInt(out, n.micro_step);
    out += ',';
    AppendInt(out, n.order);
    out += ']';
  }
  out += ']';
}

int Weight(const RankGraph& graph, const TreeNode& n) {
  if (n.level == Level::kError || n.overflow == Overflow::kCritical) return 3;
  if (n.level == Level::kWarning || n.overflow != Overflow::kNone) return 2;
  return graph.compared && n.partner == kNoNode ? 1 : 0;
}

// What is worst is taken first.
std::vector<uint32_t> ByWeight(const RankGraph& graph, const Tree& tree) {
  std::vector<uint32_t> order(tree.size());
  for (uint32_t i = 0; i < tree.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return Weight(graph, tree[a]) > Weight(graph, tree[b]); });
  return order;
}

class Writer {
 public:
  Writer(const GraphKey& key, const Held& held, uint64_t budget, uint64_t tensor_budget)
      : key_(key), held_(held), budget_(budget), tensors_(key, held, tensor_budget) {}

  Status Write(std::string& out) {
    Key(out, "npu");
    Nodes(out, held_.graph->npu);
    Key(out, "bench");
    Nodes(out, held_.graph->bench);
    MSP_RETURN_IF_ERROR(WriteOrder(out, "npu_order", Side::kNpu, "NPU"));
    MSP_RETURN_IF_ERROR(WriteOrder(out, "bench_order", Side::kBench, "Bench"));
    MSP_RETURN_IF_ERROR(WriteFlow(out));
    MSP_RETURN_IF_ERROR(WriteDetails(out));
    return WriteTensors(out);
  }
  const TensorExport& tensors() const { return tensors_; }
  uint64_t used() const { return used_; }
  uint64_t details() const { return details_; }

 private:
  Status WriteOrder(std::string& out, std::string_view name, Side side, std::string_view source) {
    MSP_ASSIGN_OR_RETURN(const Execution order,
                         Execution::Load(*held_.file, held_.tree(side), key_.step, key_.rank, source));
    Key(out, name);
    Array(out, order.runs(), [&](const Execution::Run& run) {
      out += '[';
      AppendInt(out, run.first);
      Int(out, run.count);
      out += ']';
    });
    return OkStatus();
  }

  Status WriteFlow(std::string& out) {
    std::vector<FlowEdge> edges;
    const auto take = [&](const FlowEdge& e) {
      if (edges.size() <= kMostEdges) edges.push_back(e);
    };
    MSP_ASSIGN_OR_RETURN(const bool known, ReadFlow(*held_.file, held_.graph->npu, 0, take));
    Key(out, "flow");
    if (!known || edges.size() > kMostEdges) {
      out += "null";
      return OkStatus();
    }
    Array(out, edges, [&](const FlowEdge& e) {
      out += '[';
      AppendInt(out, e.node);
      Int(out, e.input);
      Int(out, e.from);
      Int(out, e.output);
      Int(out, static_cast<uint32_t>(TrustPercent(e.trust)));
      out += ']';
    });
    return OkStatus();
  }

  // Of both sides; the partner of a node goes with it.
  Status WriteDetails(std::string& out) {
    const RankGraph& graph = *held_.graph;
    std::string npu = "{", bench = "{";
    for (const uint32_t i : ByWeight(graph, graph.npu)) {
      if (used_ >= budget_) break;
      MSP_RETURN_IF_ERROR(WriteDetail(graph.npu, i, &npu));
      const uint32_t partner = graph.npu[i].partner;
      if (partner != kNoNode) MSP_RETURN_IF_ERROR(WriteDetail(graph.bench, partner, &bench));
    }
    for (uint32_t i = 0; i < graph.bench.size() && used_ < budget_; ++i) {
      const uint32_t partner = graph.bench[i].partner;
      if (partner == kNoNode || graph.npu[partner].partner != i) {
        MSP_RETURN_IF_ERROR(WriteDetail(graph.bench, i, &bench));
      }
    }
    Key(out, "details");
    out += "{\"NPU\":" + npu + "},\"Bench\":" + bench + "}}";
    return OkStatus();
  }

  // Of nodes whose figures are in the page: without them nobody could ask for these.
  Status WriteTensors(std::string& out) {
    const RankGraph& graph = *held_.graph;
    for (const auto& [tree, node] : saved_) {
      const bool npu = tree == &graph.npu;
      const uint32_t partner = (*tree)[node].partner;
      if (!npu && partner != kNoNode && graph.npu[partner].partner == node) continue;  // goes with its partner
      MSP_RETURN_IF_ERROR(tensors_.Add(npu, node));
    }
    Key(out, "tensors");
    out += tensors_.Json();
    return OkStatus();
  }

  Status WriteDetail(const Tree& tree, uint32_t i, std::string* out) {
    MSP_ASSIGN_OR_RETURN(const NodeRecord record,
                         LoadEditedRecord(*held_.file, *held_.graph, &tree == &held_.graph->npu, i, held_.meter));
    NodeLinks links;
    MSP_RETURN_IF_ERROR(LoadMeasured(*held_.file, tree[i].rowid, &links));
    if (&tree == &held_.graph->npu && IsEdited(*held_.graph, tree.Name(i))) links.precision.reset();
    if (HasTensor(record)) saved_.emplace_back(&tree, i);
    const size_t before = out->size();
    Key(*out, std::to_string(i));
    *out += '{';
    AppendRecord(*out, record);
    AppendMeasured(*out, links.partners, links.precision);
    *out += '}';
    used_ += out->size() - before;
    ++details_;
    return OkStatus();
  }

  const GraphKey& key_;
  const Held& held_;
  const uint64_t budget_;
  uint64_t used_ = 0, details_ = 0;
  std::vector<std::pair<const Tree*, uint32_t>> saved_;
  TensorExport tensors_;
};

bool Wanted(const std::vector<int64_t>& list, int64_t value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

StatusOr<ExportedGraphs> Viewer::Export(std::string_view file, const ExportChoice& choice) {
  MSP_ASSIGN_OR_RETURN(const VisConfig config, Config(file));
  MSP_ASSIGN_OR_RETURN(std::vector<OverviewCell> cells, Matrix(file));
  std::erase_if(cells,
                [&](const OverviewCell& c) { return !Wanted(choice.steps, c.step) || !Wanted(choice.ranks, c.rank); });
  if (cells.empty()) return BadInput(fmt::format("{} has no graph of the chosen steps and ranks", file));
  ExportedGraphs out;
  MSP_ASSIGN_OR_RETURN(const auto found, directory_.Resolve(file));
  out.json = "{\"format\":1,\"file\":";
  Text(out.json, file);
  out.json += fmt::format(",\"size\":{},\"mtime\":{}", found.second.size, found.second.mtime_s);
  out.json += ",\"config\":" + ToJson(config) + ",\"matrix\":" + ToJson(cells) + ",\"graphs\":[";
  uint64_t left = choice.details_bytes, tensors_left = choice.tensor_bytes;
  for (size_t i = 0; i < cells.size(); ++i) {
    const GraphKey key{std::string(file), cells[i].step, cells[i].rank};
    MSP_ASSIGN_OR_RETURN(const Held held, cache_->Hold(key));
    out.nodes += held.graph->npu.size() + held.graph->bench.size();
    if (out.nodes > kMostNodes) {
      return BadInput(
          fmt::format("{} has more than {} nodes in the chosen graphs, too many for a page without a "
                      "server: choose fewer with --step and --rank, or use msprobe serve",
                      file, kMostNodes));
    }
    MSP_ASSIGN_OR_RETURN(const auto summary, Summary(key));
    MSP_ASSIGN_OR_RETURN(const auto findings, FindingsOf(key));
    MSP_ASSIGN_OR_RETURN(const auto layers, Layers(key));
    if (i != 0) out.json += ',';
    out.json += fmt::format("{{\"step\":{},\"rank\":{},\"summary\":", key.step, key.rank) + ToJson(summary) +
                ",\"findings\":" + ToJson(findings) + ",\"layers\":" + ToJson(layers);
    Writer writer(key, held, left / (cells.size() - i), tensors_left / (cells.size() - i));
    MSP_RETURN_IF_ERROR(writer.Write(out.json));
    out.json += '}';
    left -= std::min(left, writer.used());
    tensors_left -= std::min(tensors_left, writer.tensors().used());
    const ExportedTensors& tensors = writer.tensors().count();
    out.tensors.saved += tensors.saved;
    out.tensors.held += tensors.held;
    out.tensors.unread += tensors.unread;
    if (out.tensors.problem.empty()) out.tensors.problem = tensors.problem;
    out.details += writer.details();
    ++out.graphs;
  }
  out.json += fmt::format("],\"nodes\":{},\"details\":{},\"tensors\":{{\"saved\":{},\"held\":{}}}}}", out.nodes,
                          out.details, out.tensors.saved, out.tensors.held);
  return out;
}

}  // namespace msprobe::view
