#include "graph/build/ruler_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/file.h"
#include "base/joined_threads.h"
#include "base/parallel.h"
#include "base/temp_directory.h"
#include "compare/pair/module_tree.h"
#include "compare/pair/unseen.h"
#include "compare/values/tensor_diff.h"
#include "graph/build/cut_files.h"
#include "graph/build/whole_dumps.h"
#include "ops/op_traits.h"
#include "parallel/merge.h"

namespace msprobe {
namespace {

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

DiffOptions OptionsOf(CompareMode mode, const TensorSource* tensors) {
  DiffOptions out;
  out.mode = mode;
  out.tensors = tensors;
  return out;
}

void Worse(const MetricCell& cell, bool low, float* worst) {
  if (!cell.IsNumber()) return;
  const float v = static_cast<float>(cell.value);
  if (std::isnan(*worst) || (low ? v < *worst : v > *worst)) *worst = v;
}

/// The worst metrics of the results.
void NoteMetrics(const OpDiff& op, NodeDistance* out) {
  for (size_t i = 0; i < op.rows_used; ++i) {
    if (!IsResult(op.target[i].state)) continue;
    const TensorDiff& diff = op.tensors[i];
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

/// A node whose parent was not recorded stands elsewhere than its partner: of a run that was cut the ops say it.
Status PairSameNames(DumpPair* pair, OpDistances* distances) {
  std::vector<bool> taken(pair->golden->ops().size(), false);
  for (const uint32_t golden : pair->plan.golden_of) {
    if (golden != kNoOp) taken[golden] = true;
  }
  JsonDoc a, b;
  OpDiff diff;
  for (size_t i = 0; i < pair->plan.golden_of.size(); ++i) {
    const std::string_view name = pair->target->ops().NameAt(i);
    const auto same = pair->plan.golden_of[i] == kNoOp ? pair->golden->FindOp(name) : std::nullopt;
    if (!same || taken[*same]) continue;
    pair->plan.golden_of[i] = static_cast<uint32_t>(*same);
    if (HasArbitraryValues(name)) continue;
    MSP_RETURN_IF_ERROR(DiffOpAt(*pair, i, &a, &b, &diff));
    (*distances)[i] = DistanceOf(diff, pair->options.mode);
  }
  return OkStatus();
}

/// Whose parts make the difference that begins at this node.
void NameRanks(const NodeDistance& node, Differences* found) {
  if (node.wrong.empty()) return;
  const auto name = [&](FirstDifference* d) {
    if (d->kind == FirstDifference::Kind::kNone || d->op != node.op) return;
    for (const WrongPart& part : node.wrong) {
      if (d->item == part.item) d->ranks = part.ranks;
    }
  };
  name(&found->first);
  name(&found->source);
  for (FirstDifference& other : found->others) name(&other);
}

/// Of what no rank is known to have made.
void NameAllRanks(const std::vector<int>& ranks, Differences* found) {
  const auto name = [&](FirstDifference* d) {
    if (d->kind != FirstDifference::Kind::kNone && d->ranks.empty()) d->ranks = ranks;
  };
  name(&found->first);
  name(&found->source);
  for (FirstDifference& other : found->others) name(&other);
}

/// The code that made the call, of those ranks whose stacks were merged.
void NamePlaces(const RankGraph& target, Differences* found) {
  const auto name = [&](FirstDifference* d) {
    const uint32_t node = d->name.empty() ? kNoIndex : target.graph.Find(d->name);
    if (node == kNoIndex || !d->frame.empty()) return;
    const uint32_t stack = target.graph.nodes[node].stack;
    if (stack < target.merged->stacks.size()) UserFrame(target.merged->stacks[stack], &d->frame, &d->function);
  };
  name(&found->first);
  name(&found->source);
  for (FirstDifference& other : found->others) name(&other);
}

StatusOr<RankFindings> WriteDistances(const FilePair& files, DumpPair& pair, const std::vector<NodeDistance>& nodes,
                                      SideTable* table) {
  OpDistances distances(pair.target->ops().size());
  for (const NodeDistance& node : nodes) distances[node.op] = node.distance;
  if (!pair.gaps.empty() && !pair.options.cross) MSP_RETURN_IF_ERROR(PairSameNames(&pair, &distances));
  CountMatches(pair.golden->ops().size(), &pair.plan);
  LeaveOutUnseen(pair.gaps, *pair.target, *pair.golden, &pair.plan);
  Differences found;
  MSP_ASSIGN_OR_RETURN(RankFindings rank, FindOnRank(pair, files, std::move(distances), nullptr, &found));
  for (const NodeDistance& node : nodes) NameRanks(node, &rank.differences);
  for (const NodeDistance& node : nodes) {
    const OpDistance& d = node.distance;
    table->Int(node.row).Text(RulerVerdictText(found.verdicts[node.op]));
    for (BegunOp& begun : rank.begun) {
      if (begun.op == node.op) begun.row = node.row;
    }
    if (d.has_output) {
      table->Real(node.shown.output);
    } else {
      table->Null();
    }
    if (d.has_input) {
      table->Real(node.shown.input);
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
  return rank;
}

/// The links of ops of whole dumps as links of the ops of a pair, which lacks some of them.
GraphLinks LinksOf(const WholeDumps& whole, const GraphLinks& links, const DumpPair& pair) {
  const auto at = [](const DumpFile& from, uint32_t op, const DumpFile& to) {
    const auto found = op == kNoOp ? std::nullopt : to.FindOp(from.ops().NameAt(op));
    return found ? static_cast<uint32_t>(*found) : kNoOp;
  };
  GraphLinks out;
  for (const auto& [target, link] : links) {
    const uint32_t op = at(*whole.target, target, *pair.target);
    if (op == kNoOp) continue;
    OpLinks moved = link;
    bool complete = true;
    for (ItemLink& item : moved.links) {
      const uint32_t golden = at(*whole.golden, item.golden_op, *pair.golden);
      complete = complete && (golden == kNoOp) == (item.golden_op == kNoOp);
      item.golden_op = golden;
    }
    moved.others = at(*whole.golden, link.others, *pair.golden);
    complete = complete && (moved.others == kNoOp) == (link.others == kNoOp);
    for (uint32_t& joined : moved.joined) {
      joined = link.joins_targets ? at(*whole.target, joined, *pair.target) : at(*whole.golden, joined, *pair.golden);
      complete = complete && joined != kNoOp;
    }
    out.emplace(op, complete ? std::move(moved) : OpLinks());
  }
  return out;
}

/// What paired the nodes, if it was not their names: no other order of them is looked for then.
void NoteHow(const RulerPair& of, MatchPlan* plan) {
  if (of.mapped) {
    plan->how = "layer mapping";
  } else if (of.kin.cross) {
    plan->how = "structure of both models";
  }
}

}  // namespace

NodeDistance MeasureDistance(const DistanceOptions& asked, uint32_t op, OpDiff* diff) {
  NodeDistance out;
  out.op = op;
  out.cosine = out.max_abs_err = out.max_relative_err = kUnknown;
  if (HasArbitraryValues(diff->op)) return out;
  DiffOptions options = OptionsOf(asked.mode, asked.tensors);
  options.check_shape = asked.shapes;
  options.resplit = asked.resplit;
  options.cross = asked.kin.cross;
  options.implementations = asked.kin.implementations;
  DiffItems(options, diff);
  out.distance = DistanceOf(*diff, options.mode);
  const bool differs = out.distance.input_error > 0 || out.distance.output_error > 0;
  out.shown = differs ? ShownErrorsOf(*diff, options.mode) : ShownErrors{0, 0};
  if (asked.tensors && !IsIgnoredApi(diff->op)) NoteMetrics(*diff, &out);
  return out;
}

StatusOr<RankFindings> WriteRuler(const RulerPair& of, const std::vector<NodeDistance>& nodes, RankGraph* target,
                                  RankGraph* golden, SideTable* table) {
  DumpPair pair;
  pair.target = std::make_unique<DumpFile>(std::move(target->files.dump));
  pair.golden = std::make_unique<DumpFile>(std::move(golden->files.dump));
  NoteGaps(&pair);
  pair.stacks = std::move(target->files.stack);
  pair.trees = std::make_shared<PairTrees>(*pair.target, *pair.golden);
  pair.options = OptionsOf(of.mode, of.tensors);
  // Under a mapping any dtypes and names may stand against each other.
  pair.options.check_dtype = !of.mapped;
  pair.options.cross = pair.plan.cross = of.kin.cross;
  pair.options.implementations = pair.plan.implementations = of.kin.implementations;
  NoteHow(of, &pair.plan);
  pair.plan.golden_of.assign(pair.target->ops().size(), kNoOp);
  for (const Node& node : target->graph.nodes) {
    if (node.op != kNoIndex && node.match != kNoIndex)
      pair.plan.golden_of[node.op] = golden->graph.nodes[node.match].op;
  }
  if (of.links) pair.plan.links = *of.links;
  // The walk opens construct.json itself, so the hierarchies would be there twice. Freeing takes a while.
  const JoinedThreads freeing = StartThreads(1, [target, golden] {
    for (RankGraph* rank : {target, golden}) {
      rank->graph = NodeGraph();
      rank->files.construct.entries = {};
    }
  });
  return WriteDistances(of.files, pair, nodes, table);
}

StatusOr<RankFindings> WriteMergedRuler(const RulerPair& of, std::vector<NodeDistance> nodes, const RankGraph& target,
                                        const RankGraph& golden, const std::string& output, SideTable* table) {
  MSP_ASSIGN_OR_RETURN(const TempDirectory temp, TempDirectory::Create(output, "merged"));
  DumpPair pair;
  MSP_RETURN_IF_ERROR(WriteFittedDumps({target, golden, of.layouts, of.thresholds}, temp.path()));
  for (const RankGraph* rank : {&target, &golden}) {
    const std::string dir = JoinPath(temp.path(), rank == &target ? "target" : "golden");
    MSP_ASSIGN_OR_RETURN(DumpFile dump, DumpFile::Open(JoinPath(dir, "dump.json")));
    (rank == &target ? pair.target : pair.golden) = std::make_unique<DumpFile>(std::move(dump));
    NoteMergedGaps(rank == &target ? DumpSide::kTarget : DumpSide::kGolden, *rank, &pair.gaps);
  }
  pair.trees = std::make_shared<PairTrees>(*pair.target, *pair.golden);
  pair.options = OptionsOf(CompareMode::kStatistics, nullptr);
  pair.options.check_shape = false;
  pair.options.layouts = true;
  pair.options.resplit = of.layouts.divided;
  pair.options.check_dtype = false;  // the nodes are paired already, by what they are in the merged model
  pair.options.cross = pair.plan.cross = of.kin.cross;
  pair.options.implementations = pair.plan.implementations = of.kin.implementations;
  if (of.whole) pair.plan.links = LinksOf(*of.whole, *of.links, pair);
  NoteHow(of, &pair.plan);
  pair.plan.golden_of.assign(pair.target->ops().size(), kNoOp);
  std::vector<size_t> op_of(target.graph.nodes.size(), SIZE_MAX);
  for (uint32_t id = 0; id < target.graph.nodes.size(); ++id) {
    const Node& node = target.graph.nodes[id];
    const auto target_op = pair.target->FindOp(node.name);
    if (!target_op) continue;
    op_of[id] = *target_op;
    if (node.match == kNoIndex) continue;
    const auto golden_op = pair.golden->FindOp(golden.graph.nodes[node.match].name);
    if (golden_op) pair.plan.golden_of[*target_op] = static_cast<uint32_t>(*golden_op);
  }
  std::erase_if(nodes, [&](const NodeDistance& d) { return op_of[d.op] == SIZE_MAX; });
  for (NodeDistance& d : nodes) d.op = static_cast<uint32_t>(op_of[d.op]);
  MSP_ASSIGN_OR_RETURN(RankFindings found, WriteDistances(of.files, pair, nodes, table));
  // One of several merged graphs is told by its ranks.
  if (static_cast<int>(target.merged->ranks.size()) < of.ranks_of_job)
    NameAllRanks(target.merged->ranks, &found.differences);
  NamePlaces(target, &found.differences);
  return found;
}

}  // namespace msprobe
