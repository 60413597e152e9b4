#include "graph/ruler_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/file.h"
#include "base/parallel.h"
#include "base/temp_directory.h"
#include "compare/op_place.h"
#include "compare/tensor_diff.h"
#include "graph/merge.h"

namespace msprobe {
namespace {

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

DiffOptions OptionsOf(GraphMode mode) {
  DiffOptions out;
  out.mode = mode == GraphMode::kMd5 ? CompareMode::kChecksum : CompareMode::kStatistics;
  return out;
}

void Worse(const MetricCell& cell, bool low, float* worst) {
  if (!cell.IsNumber()) return;
  const float v = static_cast<float>(cell.value);
  if (std::isnan(*worst) || (low ? v < *worst : v > *worst)) *worst = v;
}

/// Values say more than their statistics.
void AddTensors(const std::vector<Row>& rows, NodeDistance* out) {
  for (const Row& row : rows) {
    if (!row.tensor) continue;
    const TensorDiff& diff = *row.tensor;
    const bool result = IsResult(row.npu->state);
    float& error = result ? out->distance.output_error : out->distance.input_error;
    if (diff.error > error) error = static_cast<float>(diff.error);
    if (!result) continue;
    Worse(diff.cells[kCosine], true, &out->cosine);
    Worse(diff.cells[kMaxAbsErr], false, &out->max_abs_err);
    Worse(diff.cells[kMaxRelativeErr], false, &out->max_relative_err);
  }
}

/// The results in units of what explains their difference; the same as that of a row in a table of `compare`.
double UnitsOf(const OpDistance& d, const RulerContext& context) {
  if (d.output_error == 0) return 0;
  if (d.input_error == 0 && !d.argument && context.travelled == 0) return d.expected;
  if (d.tolerance == 0) return d.output;
  const double inherited = std::isfinite(d.input_error) ? 10.0 * d.input_error : 0;
  const double unit = std::max({double{context.travelled}, double{d.tolerance}, inherited});
  return d.conditioned * d.tolerance / unit;
}

StatusOr<FirstDifference> WriteDistances(DumpPair& pair, const std::vector<NodeDistance>& nodes, SideTable* table) {
  CountMatches(pair.golden->ops().size(), &pair.plan);
  OpDistances distances(pair.target->ops().size());
  for (const NodeDistance& node : nodes) distances[node.op] = node.distance;
  MSP_ASSIGN_OR_RETURN(const Differences found, FindDifferences(pair, std::move(distances)));
  for (const NodeDistance& node : nodes) {
    const OpDistance& d = node.distance;
    table->Int(node.row).Text(RulerVerdictText(found.verdicts[node.op]));
    if (d.has_output) {
      table->Real(d.output_error);
    } else {
      table->Null();
    }
    if (d.has_input) {
      table->Real(d.input_error);
    } else {
      table->Null();
    }
    if (d.has_output) {
      table->Real(UnitsOf(d, found.contexts[node.op]));
    } else {
      table->Null();
    }
    table->Real(node.cosine).Real(node.max_abs_err).Real(node.max_relative_err);
    MSP_RETURN_IF_ERROR(table->Add());
  }
  return found.Answer();
}

}  // namespace

NodeDistance DistanceMeter::Measure(const Options& asked, uint32_t op, std::string_view name, const JsonValue& target,
                                    std::string_view golden_name, const JsonValue& golden,
                                    const std::vector<Row>& rows) {
  NodeDistance out;
  out.op = op;
  out.cosine = out.max_abs_err = out.max_relative_err = kUnknown;
  if (IsIgnoredApi(name)) return out;
  DiffOptions options = OptionsOf(asked.mode);
  options.check_shape = asked.shapes;
  DiffOps(name, target, golden_name, &golden, options, &diff_);
  out.distance = DistanceOf(diff_, options.mode);
  AddTensors(rows, &out);
  return out;
}

StatusOr<FirstDifference> WriteRuler(GraphMode mode, bool mapped, const std::vector<NodeDistance>& nodes,
                                     RankGraph* npu, RankGraph* bench, SideTable* table) {
  DumpPair pair;
  pair.target = std::make_unique<DumpFile>(std::move(npu->files.dump));
  pair.golden = std::make_unique<DumpFile>(std::move(bench->files.dump));
  pair.trees = std::make_shared<PairTrees>(*pair.target, *pair.golden);
  pair.options = OptionsOf(mode);
  // Under a mapping any dtypes and names may stand against each other.
  pair.options.check_dtype = !mapped;
  pair.plan.how = mapped ? "layer mapping" : pair.plan.how;
  pair.plan.golden_of.assign(pair.target->ops().size(), kNoOp);
  for (const Node& node : npu->graph.nodes) {
    if (node.op != kNoIndex && node.match != kNoIndex) pair.plan.golden_of[node.op] = bench->graph.nodes[node.match].op;
  }
  // The walk opens construct.json itself, so the hierarchies would be there twice. Freeing takes a while.
  std::vector<std::thread> freeing = StartThreads(1, [npu, bench] {
    for (RankGraph* rank : {npu, bench}) {
      rank->graph = NodeGraph();
      rank->files.construct.entries = {};
    }
  });
  StatusOr<FirstDifference> first = WriteDistances(pair, nodes, table);
  for (std::thread& thread : freeing) thread.join();
  return first;
}

StatusOr<FirstDifference> WriteMergedRuler(bool mapped, std::vector<NodeDistance> nodes, const RankGraph& npu,
                                           const RankGraph& bench, const std::string& output, SideTable* table) {
  MSP_ASSIGN_OR_RETURN(const TempDirectory temp, TempDirectory::Create(output, "merged"));
  DumpPair pair;
  for (const RankGraph* rank : {&npu, &bench}) {
    const std::string dir = JoinPath(temp.path(), rank == &npu ? "target" : "golden");
    MSP_RETURN_IF_ERROR(WriteMatchedDump(*rank, dir));
    MSP_ASSIGN_OR_RETURN(DumpFile dump, DumpFile::Open(JoinPath(dir, "dump.json")));
    (rank == &npu ? pair.target : pair.golden) = std::make_unique<DumpFile>(std::move(dump));
  }
  pair.trees = std::make_shared<PairTrees>(*pair.target, *pair.golden);
  pair.options = OptionsOf(GraphMode::kSummary);
  pair.options.check_shape = false;
  pair.options.check_dtype = false;  // the nodes are paired already, by what they are in the merged model
  pair.plan.how = mapped ? "layer mapping" : pair.plan.how;
  pair.plan.golden_of.assign(pair.target->ops().size(), kNoOp);
  std::vector<size_t> op_of(npu.graph.nodes.size(), SIZE_MAX);
  for (uint32_t id = 0; id < npu.graph.nodes.size(); ++id) {
    const Node& node = npu.graph.nodes[id];
    const auto mine = pair.target->FindOp(node.name);
    if (!mine) continue;
    op_of[id] = *mine;
    if (node.match == kNoIndex) continue;
    const auto theirs = pair.golden->FindOp(bench.graph.nodes[node.match].name);
    if (theirs) pair.plan.golden_of[*mine] = static_cast<uint32_t>(*theirs);
  }
  std::erase_if(nodes, [&](const NodeDistance& d) { return op_of[d.op] == SIZE_MAX; });
  for (NodeDistance& d : nodes) d.op = static_cast<uint32_t>(op_of[d.op]);
  return WriteDistances(pair, nodes, table);
}

}  // namespace msprobe
