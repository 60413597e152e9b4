// Graphs as one text, for a page without a server.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "json/writer.h"
#include "tensor/kernels/dtype.h"
#include "view/query/execution.h"
#include "view/query/graph_memo.h"
#include "view/query/json_parts.h"
#include "view/query/node_errors.h"
#include "view/query/node_links.h"
#include "view/query/query_caches.h"
#include "view/query/recompare.h"
#include "view/query/tensor_export.h"
#include "view/query/view_json.h"
#include "view/query/viewer.h"

namespace msprobe::view {
namespace {

constexpr size_t kMostEdges = 400'000;    // of a graph; a graph with more goes without
constexpr uint64_t kMostNodes = 600'000;  // of all graphs: what a browser takes

/// kNoNode is -1 there.
void WriteIndex(JsonWriter* json, uint32_t value) { json->Int(static_cast<int32_t>(value)); }

// [[name, length of the label, type, parent, level, overflow, partner, micro step, order, ruling, error], ...];
// the error only where it is known.
void WriteNodes(JsonWriter* json, std::string_view key, const Tree& tree, const NodeErrors& errors) {
  json->Key(key);
  json->BeginArray();
  for (uint32_t i = 0; i < tree.size(); ++i) {
    const TreeNode& n = tree[i];
    json->BeginArray();
    json->Value(tree.Name(i));
    json->Value(ShortLabel(tree.Name(i), n.type == 0, n.parent == tree.root()).size());
    json->Value(n.type);
    WriteIndex(json, i == tree.root() ? kNoNode : n.parent);
    WriteLevel(json, n.level);
    json->Value(static_cast<uint32_t>(n.overflow));
    WriteIndex(json, n.partner);
    json->Value(n.micro_step);
    json->Value(n.order);
    json->Value(static_cast<uint32_t>(n.ruling));
    if (i < errors.size() && !std::isnan(errors[i])) {
      if (std::isinf(errors[i])) {
        json->Value("inf");
      } else {
        json->Value(errors[i]);
      }
    }
    json->EndArray();
  }
  json->EndArray();
}

int Weight(const GraphSides& graph, const TreeNode& n) {
  if (Begins(n.ruling)) return 4;
  if (n.level == Verdict::kError || n.overflow == Overflow::kCritical) return 3;
  if (n.level == Verdict::kWarning || n.overflow != Overflow::kNone) return 2;
  return graph.compared && n.partner == kNoNode ? 1 : 0;
}

// What is worst is taken first.
std::vector<uint32_t> ByWeight(const GraphSides& graph, const Tree& tree) {
  std::vector<uint32_t> order(tree.size());
  for (uint32_t i = 0; i < tree.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return Weight(graph, tree[a]) > Weight(graph, tree[b]); });
  return order;
}

class Writer {
 public:
  Writer(const GraphAddress& key, const QueryContext& held, uint64_t budget, uint64_t tensor_budget)
      : key_(key), held_(held), budget_(budget), tensors_(key, held, tensor_budget) {}

  Status Write(JsonWriter* json) {
    MSP_ASSIGN_OR_RETURN(const auto errors, ErrorsOf(*held_.file, *held_.graph, Side::kTarget));
    WriteNodes(json, "npu", held_.graph->target, *errors);
    WriteNodes(json, "bench", held_.graph->golden, {});  // as their partners'
    MSP_RETURN_IF_ERROR(WriteDTypes(json));
    MSP_RETURN_IF_ERROR(WriteOrder(json, "npu_order", Side::kTarget, "NPU"));
    MSP_RETURN_IF_ERROR(WriteOrder(json, "bench_order", Side::kGolden, "Bench"));
    MSP_RETURN_IF_ERROR(WriteFlow(json));
    MSP_RETURN_IF_ERROR(WriteDetails(json));
    return WriteTensors(json);
  }
  const TensorExport& tensors() const { return tensors_; }
  uint64_t used() const { return used_; }
  uint64_t details() const { return details_; }

 private:
  // A number a node: a bit for each of the names.
  Status WriteDTypes(JsonWriter* json) {
    MSP_ASSIGN_OR_RETURN(const auto target, held_.graph->memo->dtypes[0].Of(*held_.file, held_.graph->target));
    MSP_ASSIGN_OR_RETURN(const auto golden, held_.graph->memo->dtypes[1].Of(*held_.file, held_.graph->golden));
    std::vector<std::string_view> names;
    for (unsigned i = 0; i < static_cast<unsigned>(DType::kUnknown); ++i)
      names.push_back(DTypeName(static_cast<DType>(i)));
    json->ObjectMember("dtypes", [&] {
      json->Member("names", names);
      json->Member("NPU", *target);
      json->Member("Bench", *golden);
    });
    return OkStatus();
  }

  Status WriteOrder(JsonWriter* json, std::string_view name, Side side, std::string_view source) {
    MSP_ASSIGN_OR_RETURN(const Execution order,
                         Execution::Load(*held_.file, held_.tree(side), key_.step, key_.rank, source));
    json->ArrayMember(name, order.runs(), [&](const Execution::Run& run) {
      json->BeginArray();
      json->Value(run.first);
      json->Value(run.count);
      json->EndArray();
    });
    return OkStatus();
  }

  Status WriteFlow(JsonWriter* json) {
    std::vector<FlowEdge> edges;
    const auto take = [&](const FlowEdge& e) {
      if (edges.size() <= kMostEdges) edges.push_back(e);
    };
    MSP_ASSIGN_OR_RETURN(const bool known, ReadFlow(*held_.file, held_.graph->target, 0, take));
    if (!known || edges.size() > kMostEdges) {
      json->Member("flow", nullptr);
      return OkStatus();
    }
    json->ArrayMember("flow", edges, [&](const FlowEdge& e) {
      json->BeginArray();
      json->Value(e.node);
      WriteIndex(json, e.input);
      WriteIndex(json, e.from);
      WriteIndex(json, e.output);
      json->Value(TrustPercent(e.trust));
      json->EndArray();
    });
    return OkStatus();
  }

  // Of both sides; the partner of a node goes with it.
  Status WriteDetails(JsonWriter* json) {
    const GraphSides& graph = *held_.graph;
    JsonWriter target(kJsonPage), golden(kJsonPage);
    target.BeginObject();
    golden.BeginObject();
    for (const uint32_t i : ByWeight(graph, graph.target)) {
      if (used_ >= budget_) break;
      MSP_RETURN_IF_ERROR(WriteDetail(graph.target, i, &target));
      const uint32_t partner = graph.target[i].partner;
      if (partner != kNoNode) MSP_RETURN_IF_ERROR(WriteDetail(graph.golden, partner, &golden));
    }
    for (uint32_t i = 0; i < graph.golden.size() && used_ < budget_; ++i) {
      const uint32_t partner = graph.golden[i].partner;
      if (partner == kNoNode || graph.target[partner].partner != i) {
        MSP_RETURN_IF_ERROR(WriteDetail(graph.golden, i, &golden));
      }
    }
    target.EndObject();
    golden.EndObject();
    json->ObjectMember("details", [&] {
      json->RawMember("NPU", target.Take());
      json->RawMember("Bench", golden.Take());
    });
    return OkStatus();
  }

  // Of nodes whose figures are in the page: without them nobody could ask for these.
  Status WriteTensors(JsonWriter* json) {
    const GraphSides& graph = *held_.graph;
    for (const auto& [tree, node] : saved_) {
      const bool target = tree == &graph.target;
      const uint32_t partner = (*tree)[node].partner;
      if (!target && partner != kNoNode && graph.target[partner].partner == node) continue;  // goes with its partner
      MSP_RETURN_IF_ERROR(tensors_.Add(target, node));
    }
    json->Key("tensors");
    tensors_.Write(json);
    return OkStatus();
  }

  Status WriteDetail(const Tree& tree, uint32_t i, JsonWriter* out) {
    MSP_ASSIGN_OR_RETURN(const NodeRecord record,
                         LoadEditedRecord(*held_.file, *held_.graph, &tree == &held_.graph->target, i, held_.meter));
    NodeLinks links;
    MSP_RETURN_IF_ERROR(LoadMeasured(*held_.file, tree, i, &links));
    if (&tree == &held_.graph->target && IsEdited(*held_.graph, tree.Name(i))) links.precision.reset();
    if (HasTensor(record)) saved_.emplace_back(&tree, i);
    const size_t before = out->size();
    out->ObjectMember(std::to_string(i), [&] {
      WriteRecord(out, record);
      WriteMeasured(out, links.partners, links.precision);
    });
    used_ += out->size() - before;
    ++details_;
    return OkStatus();
  }

  const GraphAddress& key_;
  const QueryContext& held_;
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
  MSP_ASSIGN_OR_RETURN(const VisSettings config, Config(file));
  MSP_ASSIGN_OR_RETURN(std::vector<OverviewCell> cells, Matrix(file));
  std::erase_if(cells,
                [&](const OverviewCell& c) { return !Wanted(choice.steps, c.step) || !Wanted(choice.ranks, c.rank); });
  if (cells.empty()) return BadInput(fmt::format("{} has no graph of the chosen steps and ranks", file));
  ExportedGraphs out;
  MSP_ASSIGN_OR_RETURN(const auto found, directory_.Resolve(file));
  MSP_ASSIGN_OR_RETURN(const std::string verdict, Verdict(file));
  JsonWriter json(&out.json, kJsonPage);
  json.BeginObject();
  json.Member("format", 1);
  json.Member("file", file);
  json.Member("size", found.second.size);
  json.Member("mtime", found.second.mtime_s);
  json.RawMember("config", ToJson(config));
  json.RawMember("verdict", verdict);
  json.RawMember("matrix", ToJson(cells));
  json.Key("graphs");
  json.BeginArray();
  uint64_t left = choice.details_bytes, tensors_left = choice.tensor_bytes;
  for (size_t i = 0; i < cells.size(); ++i) {
    const GraphAddress key{std::string(file), cells[i].step, cells[i].rank};
    MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
    out.nodes += held.graph->target.size() + held.graph->golden.size();
    if (out.nodes > kMostNodes) {
      return BadInput(
          fmt::format("{} has more than {} nodes in the chosen graphs, too many for a page without a "
                      "server: choose fewer with --step and --rank, or use msprobe serve",
                      file, kMostNodes));
    }
    MSP_ASSIGN_OR_RETURN(const auto summary, Summary(key));
    MSP_ASSIGN_OR_RETURN(const auto findings, FindingsOf(key));
    MSP_ASSIGN_OR_RETURN(const auto layers, Layers(key));
    json.BeginObject();
    json.Member("step", key.step);
    json.Member("rank", key.rank);
    json.RawMember("summary", ToJson(summary));
    json.RawMember("findings", ToJson(findings));
    json.RawMember("layers", ToJson(layers));
    if (!held.graph->compared) {
      MSP_ASSIGN_OR_RETURN(const std::string activations, ActivationsOf(key));
      json.RawMember("activations", activations);
    }
    Writer writer(key, held, left / (cells.size() - i), tensors_left / (cells.size() - i));
    MSP_RETURN_IF_ERROR(writer.Write(&json));
    json.EndObject();
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
  json.EndArray();
  json.Member("nodes", out.nodes);
  json.Member("details", out.details);
  json.ObjectMember("tensors", [&] {
    json.Member("saved", out.tensors.saved);
    json.Member("held", out.tensors.held);
  });
  json.EndObject();
  return out;
}

}  // namespace msprobe::view
