#include "graph/build/visualize.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/joined_threads.h"
#include "base/parallel.h"
#include "base/text.h"
#include "compare/values/tensor_pairs.h"
#include "graph/build/cut_files.h"
#include "graph/build/graph_checks.h"
#include "graph/build/graph_match.h"
#include "graph/build/graph_part.h"
#include "graph/build/graph_story.h"
#include "graph/build/graph_watch.h"
#include "graph/build/layouts.h"
#include "graph/build/legend.h"
#include "graph/build/merge_calls.h"
#include "graph/build/merge_findings.h"
#include "graph/build/meta_table.h"
#include "graph/build/node_rows.h"
#include "graph/build/row_counts.h"
#include "graph/build/whole_dumps.h"
#include "graph/comm/comm_findings.h"
#include "graph/node/field_text.h"
#include "graph/tree/graph_size.h"
#include "graph/tree/matcher.h"
#include "match/mapping.h"
#include "parallel/merge.h"

namespace msprobe {
namespace {

constexpr size_t kBlockNodes = 64;
constexpr size_t kBlocksInFlight = 32;
constexpr size_t kBlocksBetweenReleases = 256;  // some 10 MB of dump.json

struct LoadedPair {
  std::unique_ptr<RankGraph> target, golden;
  std::unique_ptr<TensorPairs> tensors;  // of a comparison of tensor dumps
  CompareMode mode = CompareMode::kStatistics;
  int micro_steps = 1;
  LayoutDifference layouts;  // of merged ranks
  Kinship kin;
  GraphLinks links;                         // then: items that stand at other places
  std::shared_ptr<const WholeDumps> whole;  // then, of merged graphs: dumps whose ops the links name
};

// The tensors of a rank are parts of those of a merged graph.
std::optional<std::string> DataDir(const RankGraph& rank) { return rank.merged ? std::nullopt : rank.files.data_dir; }

class Visualizer {
 public:
  Visualizer(const GraphSettings& options, const GraphParts& parts) : options_(options), parts_(parts) {}

  StatusOr<GraphSummary> Run() {
    MSP_RETURN_IF_ERROR(CheckMergeOptions(options_));
    MappingSettings mapping;
    mapping.layer = options_.layer_mapping;
    mapping.layer_template = options_.layer_template;
    MSP_ASSIGN_OR_RETURN(mapping_, LoadMapping(mapping));
    if (!options_.thresholds.empty()) {
      MSP_ASSIGN_OR_RETURN(thresholds_, ReadThresholds(options_.thresholds));
    }
    if (options_.target_layout) {
      MSP_ASSIGN_OR_RETURN(MergePlan merge, PlanMerge(options_));
      plan_ = std::move(merge.graph);
      summary_.merged = true;
    } else {
      MSP_ASSIGN_OR_RETURN(plan_, parts_.only ? PlanGraph(options_) : PlanBoundedGraph(options_));
    }
    MSP_RETURN_IF_ERROR(MakeOutputDir(options_.output));
    if (parts_.only) return RunPart();
    for (const Message& w : plan_.warnings) Warn(w);
    if (options_.json_files && summary_.merged) return WriteDumps();
    if (options_.json_files) Warn(Msg("--file_type json is for merged ranks (--rank_size): a database is written"));
    if (parts_.begin) MSP_RETURN_IF_ERROR(parts_.begin(plan_.pairs.size()));
    const std::string name = fmt::format("{}_{}.vis.db", plan_.compare ? "compare" : "build", TimestampNow());
    summary_.file = JoinPath(options_.output, name);
    LoadedPair last;
    for (done_ = 0; done_ < plan_.pairs.size(); ++done_) {
      const GraphPair& pair = plan_.pairs[done_];
      if (parts_.file) {
        MSP_RETURN_IF_ERROR(TakePart(pair));
        if (EndsStep()) MSP_RETURN_IF_ERROR(WriteLinks());
        continue;
      }
      StatusOr<LoadedPair> loaded = Load(pair);
      MSP_RETURN_IF_ERROR(loaded.ok() ? WriteLoaded(pair, *loaded) : LeaveOut(pair, loaded.status()));
      if (EndsStep()) MSP_RETURN_IF_ERROR(WriteLinks());
      if (done_ + 1 == plan_.pairs.size() && loaded.ok()) last = std::move(*loaded);
    }
    if (!db_) return summary_.damaged.front().why;
    WarnOfLeftOut();
    Progress(98);
    MSP_RETURN_IF_ERROR(watch_->AddFindings(summary_.findings));
    MSP_RETURN_IF_ERROR(WriteStory());
    // Freeing a large graph takes as long as building an index.
    JoinedThreads freeing = StartThreads(1, [&] { last = {}; });
    const Status finished = db_->Finish();
    freeing.Join();
    MSP_RETURN_IF_ERROR(finished);
    summary_.file = db_->path();
    struct stat st {};
    if (stat(summary_.file.c_str(), &st) == 0) summary_.bytes = static_cast<uint64_t>(st.st_size);
    Progress(100);
    return summary_;
  }

 private:
  void Warn(const Message& text) const {
    if (options_.warning) options_.warning(text);
  }
  void Progress(int percent) const {
    if (options_.progress) options_.progress(percent);
  }

  /// Whether the pair at hand is the last one of its step.
  bool EndsStep() const {
    return done_ + 1 == plan_.pairs.size() || plan_.pairs[done_ + 1].step != plan_.pairs[done_].step;
  }

  StatusOr<GraphSummary> RunPart() {
    const size_t index = *parts_.only;
    if (index >= plan_.pairs.size()) {
      return UsageError(Msg("--part {}: there are only {} graphs", index, plan_.pairs.size()));
    }
    summary_.file = JoinPath(options_.output, fmt::format("part_{}.vis.db", index));
    done_ = index;
    MSP_ASSIGN_OR_RETURN(LoadedPair loaded, Load(plan_.pairs[index]));
    MSP_RETURN_IF_ERROR(WriteLoaded(plan_.pairs[index], loaded));
    GraphPart part{plan_.pairs[index].step, plan_.pairs[index].rank, first_mode_, summary_,
                   std::move(calls_),       std::move(found_)};
    MSP_RETURN_IF_ERROR(WriteGraphPart(part, db_.get()));
    MSP_RETURN_IF_ERROR(db_->Finish());
    return summary_;
  }

  Status TakePart(const GraphPair& pair) {
    const StatusOr<std::string> file = parts_.file(done_);
    if (!file.ok()) return LeaveOut(pair, file.status());
    MSP_ASSIGN_OR_RETURN(GraphPart part, ReadGraphPart(*file, pair.step, pair.rank));
    MSP_RETURN_IF_ERROR(OpenDb(pair, part.mode));
    ShiftRows(db_->rows(), &part);
    MSP_RETURN_IF_ERROR(db_->Append(*file));
    AddSummary(std::move(part.summary), &summary_);
    if (part.found) MSP_RETURN_IF_ERROR(story_.Add(std::move(*part.found)));
    for (size_t side = 0; side < calls_.size(); ++side) {
      std::move(part.calls[side].begin(), part.calls[side].end(), std::back_inserter(calls_[side]));
    }
    Progress(static_cast<int>(97 * (done_ + 1) / plan_.pairs.size()));
    return OkStatus();
  }

  VisLayout Layout() const {
    if (parts_.only) return VisLayout::kPart;
    return options_.plain ? VisLayout::kPlain : VisLayout::kCompact;
  }

  /// With all tables, when the first pair has proved good.
  Status OpenDb(const GraphPair& pair, CompareMode mode) {
    if (db_ && plan_.compare && mode != first_mode_) {
      return BadInput(
          Msg("{} is a different kind of dump ({}) than the ranks before it ({}): dump all ranks the same way, or give "
              "a single rank",
              pair.target_dir, GraphTaskName(mode), GraphTaskName(first_mode_)));
    }
    if (db_) return OkStatus();
    first_mode_ = mode;
    MSP_ASSIGN_OR_RETURN(db_, VisDb::Create(summary_.file, Layout()));
    // The plain layout drops the table, but what made the first difference is said all the same.
    MSP_RETURN_IF_ERROR(MakeTables());
    watch_.emplace(options_.plain ? nullptr : db_.get(), plan_.compare);
    return watch_->MakeTables();
  }

  Status WriteLoaded(const GraphPair& pair, LoadedPair& loaded) {
    const bool first = db_ == nullptr;
    MSP_RETURN_IF_ERROR(OpenDb(pair, loaded.mode));
    if (first) MSP_RETURN_IF_ERROR(db_->SetConfig(Config(loaded)));
    NoteCutFiles(pair, *loaded.target, loaded.golden.get(), &summary_);
    ++summary_.graphs;
    return Write(pair, loaded);
  }

  /// Our own tables, as docs/en/graph/database.md lists them.
  Status MakeTables() {
    MSP_RETURN_IF_ERROR(WriteMeta(options_.target, options_.golden, db_.get()));
    MSP_ASSIGN_OR_RETURN(verdict_, db_->MakeTable("verdict", "story TEXT"));
    if (!plan_.compare || first_mode_ == CompareMode::kStructure) return OkStatus();
    MSP_ASSIGN_OR_RETURN(precision_, db_->MakeTable("precision", kPrecisionColumns));
    return OkStatus();
  }

  Status WriteStory() {
    std::optional<OverflowSearch> overflow;
    if (options_.overflow_check) overflow = {options_.target, options_.golden, options_.warning};
    MSP_RETURN_IF_ERROR(FinishStory(&story_, precision_ != nullptr, overflow, &summary_));
    for (const Carrier& carrier : story_.divergence().carriers) {
      if (carrier.op.row > 0) MSP_RETURN_IF_ERROR(db_->SetInherited(carrier.op.row));  // 0: the op has no node
    }
    return summary_.story ? verdict_->Text(StoryJson(*summary_.story)).Add() : OkStatus();
  }

  /// A rank that cannot be read does not keep the others from being shown; the only one does.
  Status LeaveOut(const GraphPair& pair, Status why) {
    if (why.code() != Code::kBadInput || plan_.pairs.size() == 1) return why;
    summary_.damaged.push_back({pair.step, pair.rank, true, std::move(why)});
    return OkStatus();
  }

  // Merged ranks as dumps, one directory per graph.
  StatusOr<GraphSummary> WriteDumps() {
    for (done_ = 0; done_ < plan_.pairs.size(); ++done_) {
      const GraphPair& pair = plan_.pairs[done_];
      const StatusOr<LoadedPair> loaded = Load(pair);
      if (loaded.ok()) {
        MSP_RETURN_IF_ERROR(WriteDumpOf(pair, *loaded));
      } else {
        MSP_RETURN_IF_ERROR(LeaveOut(pair, loaded.status()));
      }
      Progress(static_cast<int>(100 * (done_ + 1) / plan_.pairs.size()));
    }
    if (summary_.graphs == 0) return summary_.damaged.front().why;
    WarnOfLeftOut();
    AddGaps(&summary_);
    summary_.file = options_.output;
    return summary_;
  }

  Status WriteDumpOf(const GraphPair& pair, const LoadedPair& loaded) {
    NoteCutFiles(pair, *loaded.target, nullptr, &summary_);
    ++summary_.graphs;
    const std::string dir =
        JoinPath(options_.output, fmt::format("step{}", pair.step)) + fmt::format("/rank{}", pair.rank);
    MSP_RETURN_IF_ERROR(WriteMergedDump(*loaded.target, dir));
    MSP_ASSIGN_OR_RETURN(const std::vector<MergeFinding> findings, CheckMerge(*loaded.target));
    AddMergeFindings({"NPU", pair.step, pair.rank, {}}, findings, &summary_.findings);
    summary_.target_nodes += loaded.target->graph.order.size();
    return OkStatus();
  }

  void WarnOfLeftOut() const {
    for (const DamagedRank& d : summary_.damaged) {
      if (d.left_out) Warn(Msg("rank {} of step {} is left out: {}", d.rank, d.step, d.why.text()));
    }
  }

  StatusOr<LoadedPair> Load(const GraphPair& pair) {
    LoadedPair out;
    MSP_RETURN_IF_ERROR(ParallelFor(plan_.compare ? 2 : 1, [&](size_t i) -> Status {
      const auto& job = i == 0 ? pair.target_merge : pair.golden_merge;
      MergeDecisions decisions;  // the plan prints them, a graph shows them
      MSP_ASSIGN_OR_RETURN(RankGraph rank, job ? BuildMergedGraph(*job, &decisions)
                                               : BuildRankGraph(i == 0 ? pair.target_dir : pair.golden_dir));
      (i == 0 ? out.target : out.golden) = std::make_unique<RankGraph>(std::move(rank));
      return OkStatus();
    }));
    if (InterruptRequested()) return Interrupted();
    for (const RankGraph* rank : {out.target.get(), out.golden.get()}) {
      if (!rank) continue;
      for (const RankFiles* files : FilesOf(*rank)) {
        for (const Message& text :
             {files->dump.truncated(), files->stack.truncated(), files->construct.truncated, files->warning})
          if (!text.empty()) Warn(text);
      }
      if (rank->orphans > 0) {
        Warn(Msg("{}: {} nodes name a parent that was not recorded; they are shown at the top level", rank->files.dir,
                 rank->orphans));
      }
    }
    if (plan_.compare) {
      const DumpFile &a = out.target->files.dump, &b = out.golden->files.dump;
      MSP_ASSIGN_OR_RETURN(out.mode, ModeOf(a, b));
      if (summary_.merged && out.mode == CompareMode::kChecksum) {
        return BadInput(
            Msg("{} holds checksums (md5): those of parts cannot be merged, dump with statistics", a.path()));
      }
      // Parts of tensors are put together by their statistics, which tensor dumps have as well.
      if (summary_.merged && out.mode == CompareMode::kTensor) out.mode = CompareMode::kStatistics;
      if (out.mode == CompareMode::kTensor) {
        out.tensors = std::make_unique<TensorPairs>(std::string(a.path()), std::string(b.path()), nullptr);
      }
      MSP_ASSIGN_OR_RETURN(out.kin, KinshipOf(a, b, mapping_.layer, out.tensors.get()));
      const GraphMatching matching{&mapping_, options_.fuzzy, summary_.merged, out.kin, options_.output};
      MSP_ASSIGN_OR_RETURN(const auto warnings,
                           MatchGraphs(matching, out.target.get(), out.golden.get(), &out.links, &out.whole));
      for (const Message& text : warnings) Warn(text);
      MSP_ASSIGN_OR_RETURN(out.layouts, DifferenceOfLayouts(options_, *out.target, *out.golden));
    }
    out.micro_steps = NumberMicroSteps(out.target->files.construct.megatron_micro_steps, &out.target->graph,
                                       out.golden ? &out.golden->graph : nullptr);
    return out;
  }

  VisConfig Config(const LoadedPair& loaded) {
    VisConfig config;
    config.compare = plan_.compare;
    config.node_colors = "null";
    if (plan_.compare) {
      config.task = summary_.task = GraphTaskName(loaded.mode);
      config.tool_tip = ToolTipJson(loaded.mode);
      config.node_colors = NodeColorsJson(loaded.mode);
    }
    config.micro_steps = loaded.micro_steps;
    config.overflow_check = options_.overflow_check;
    config.ranks = plan_.ranks;
    config.steps = plan_.steps;
    return config;
  }

  Status Write(const GraphPair& pair, LoadedPair& loaded) {
    const NodeGraph* other = plan_.compare ? &loaded.golden->graph : nullptr;
    GraphSide target{
        loaded.target.get(), other, {"NPU", pair.step, pair.rank, DataDir(*loaded.target)}, {}, {}, {}, {}};
    PrepareSide(&target);
    summary_.target_nodes += loaded.target->graph.order.size();
    if (!plan_.compare) return WriteSide(target, nullptr, loaded, nullptr);
    const GraphKey golden_key{"Bench", pair.step, pair.rank, DataDir(*loaded.golden)};
    GraphSide golden{loaded.golden.get(), &loaded.target->graph, golden_key, {}, {}, {}, {}};
    PrepareSide(&golden);
    summary_.golden_nodes += loaded.golden->graph.order.size();
    const size_t size = loaded.golden->graph.nodes.size();
    const size_t before = summary_.findings.size();
    PartnerData partners{std::vector<bool>(size), std::vector<int64_t>(size), std::vector<Overflow>(size), {}};
    MSP_RETURN_IF_ERROR(WriteSide(target, &golden, loaded, &partners));
    golden.done = &partners.done;
    MSP_RETURN_IF_ERROR(WriteSide(golden, nullptr, loaded, &partners));
    if (!precision_) return OkStatus();
    MSP_ASSIGN_OR_RETURN(RankFindings found, WriteRulerOf(pair, loaded, std::move(partners.distances)));
    KeepSuspectsOf(found.begun, before, &summary_.findings);
    if (!parts_.only) return story_.Add(std::move(found));
    found_ = std::move(found);
    return OkStatus();
  }

  StatusOr<RankFindings> WriteRulerOf(const GraphPair& pair, LoadedPair& loaded, std::vector<NodeDistance> distances) {
    RulerPair of{FilesOf(pair),        loaded.mode,   mapping_.layer,    loaded.kin,
                 loaded.tensors.get(), &loaded.links, loaded.whole.get()};
    if (!loaded.target->merged) return WriteRuler(of, distances, loaded.target.get(), loaded.golden.get(), precision_);
    of.layouts = loaded.layouts, of.thresholds = &thresholds_, of.ranks_of_job = options_.target_layout->rank_size;
    return WriteMergedRuler(of, std::move(distances), *loaded.target, *loaded.golden, options_.output, precision_);
  }

  /// Ops are read once, nearly in the order of the file: what is behind need not stay in memory.
  static void ReleasePages(const LoadedPair& loaded) {
    for (const RankGraph* rank : {loaded.target.get(), loaded.golden.get()}) {
      if (!rank) continue;
      for (const RankFiles* files : FilesOf(*rank)) files->dump.file().Release(0, files->dump.file().text().size());
    }
  }

  /// What comparing the first side left about the nodes of the second.
  struct PartnerData {
    std::vector<bool> done;
    std::vector<int64_t> data;  // where their texts are
    std::vector<Overflow> overflow;
    std::vector<NodeDistance> distances;  // of the first side
  };

  Status WriteSide(const GraphSide& side, const GraphSide* golden, const LoadedPair& loaded, PartnerData* partners) {
    const NodeGraph& graph = side.rank->graph;
    RowOptions options{loaded.mode, plan_.compare, options_.overflow_check, loaded.tensors.get(),
                       options_.log != nullptr};
    options.distances = golden && precision_;
    options.merged = summary_.merged;
    if (golden) options.layouts = loaded.layouts;
    options.kin = loaded.kin;
    options.links = &loaded.links;
    options.whole = loaded.whole.get();
    options.thresholds = &thresholds_;
    const size_t blocks = (graph.order.size() + kBlockNodes - 1) / kBlockNodes;
    std::vector<Verdict> verdicts(graph.nodes.size(), Verdict::kNone);
    std::vector<std::string> index(side.rank->merged ? graph.nodes.size() : 0);  // what links show
    RankNodeCalls calls{side.key.rank, side.rank->files.dump.wholeness().LacksOps(), {}};
    const bool second = plan_.compare && !golden;
    const int64_t graph_row = db_->rows() + 1;
    watch_->Begin(side, graph_row);
    const auto make = [&](size_t i) {
      return MakeRows(side, golden, options, i * kBlockNodes, std::min((i + 1) * kBlockNodes, graph.order.size()));
    };
    const auto take = [&](size_t i, NodeBlock&& block) -> Status {
      if (!block.log.empty()) options_.log(block.log);
      const int64_t first_row = db_->rows() + 1;
      db_->Expect(block.rows);
      for (NodeRows::Row& row : block.rows.rows) {
        if (golden && graph.nodes[row.node].type == NodeType::kCollection)
          row.verdict = WorstOf(graph, row.node, verdicts);
        verdicts[row.node] = row.verdict;
        if (second && partners->done[row.node]) row.overflow = partners->overflow[row.node];
        if (!index.empty() && row.distributed)
          index[row.node] = LinkIndex(options_.overflow_check, row.overflow, row.verdict);
        CountRow(side, row, plan_.compare, &summary_);
        MSP_RETURN_IF_ERROR(WriteRow(graph, block.rows, row, second, partners));
      }
      for (NodeDistance& d : block.distances) {
        d.row += first_row;
        partners->distances.push_back(std::move(d));
      }
      MSP_RETURN_IF_ERROR(watch_->Add(block));
      NoteBlock(side, block, &summary_);
      AddMergeFindings(side.key, first_row, block.merge, &summary_.findings);
      for (NodeCall& call : block.calls) {
        call.row_id += first_row;
        calls.calls.push_back(std::move(call));
      }
      if (i % kBlocksBetweenReleases == 0) ReleasePages(loaded);
      ReportProgress(second, i, blocks);
      return OkStatus();
    };
    MSP_RETURN_IF_ERROR(db_->BeginGraph(side.key, graph, side.other));
    MSP_RETURN_IF_ERROR(ParallelOrdered<NodeBlock>(blocks, kBlocksInFlight, make, take));
    MSP_RETURN_IF_ERROR(db_->EndGraph());
    for (size_t i = 0; i < side.stack_ids.size(); ++i) {
      MSP_RETURN_IF_ERROR(
          db_->AddStack(fmt::format("{}_{}", side.key.id(), i), StackJson(*side.rank, side.stack_ids[i])));
    }
    std::vector<RankNodeCalls>& linked = calls_[second ? 1 : 0];
    if (side.rank->merged) {
      MSP_ASSIGN_OR_RETURN(std::vector<RankNodeCalls> merged, ReadMergedCalls(side, graph_row, index));
      std::move(merged.begin(), merged.end(), std::back_inserter(linked));
    } else {
      linked.push_back(std::move(calls));
    }
    return watch_->End(&summary_.findings);
  }

  Status WriteRow(const NodeGraph& graph, const NodeRows& rows, const NodeRows::Row& row, bool second,
                  PartnerData* partners) {
    int64_t data = 0;
    if (second && partners->done[row.node]) {
      data = partners->data[row.node];
    } else {
      MSP_ASSIGN_OR_RETURN(data, db_->AddData(rows, row.input, row.output));
    }
    MSP_RETURN_IF_ERROR(db_->AddNode(rows, row, data));
    if (!row.has_partner) return OkStatus();
    const uint32_t partner = graph.nodes[row.node].match;
    MSP_ASSIGN_OR_RETURN(partners->data[partner], db_->AddData(rows, row.partner_input, row.partner_output));
    partners->done[partner] = true;
    partners->overflow[partner] = row.partner_overflow;
    return OkStatus();
  }

  void ReportProgress(bool second, size_t block, size_t blocks) const {
    const double sides = plan_.compare ? 2 : 1;
    const double part = ((second ? 1 : 0) + static_cast<double>(block + 1) / static_cast<double>(blocks)) / sides;
    Progress(static_cast<int>(97 * (static_cast<double>(done_) + part) / static_cast<double>(plan_.pairs.size())));
  }

  Status WriteLinks() {
    for (size_t side = 0; side < calls_.size(); ++side) {
      std::vector<RankNodeCalls>& ranks = calls_[side];
      SortCalls(&ranks);
      const CommGraph graph = JoinNodeCalls(ranks);
      if (watch_) MSP_RETURN_IF_ERROR(watch_->AddExchanges(ranks, graph));
      for (const auto& [row, json] : LinkCalls(ranks, graph)) {
        MSP_RETURN_IF_ERROR(db_->SetCommunication(row, json));
        ++summary_.links;
      }
      for (GraphFinding& f : CheckCommunication(ranks, graph)) {
        f.step = plan_.pairs[done_].step;
        f.source = side == 0 ? "NPU" : "Bench";
        summary_.findings.push_back(std::move(f));
      }
      ranks.clear();
    }
    return OkStatus();
  }

  const GraphSettings& options_;
  const GraphParts& parts_;
  Mapping mapping_;
  GraphPlan plan_;
  GraphSummary summary_;
  Thresholds thresholds_;
  std::unique_ptr<VisDb> db_;
  SideTable* verdict_ = nullptr;
  SideTable* precision_ = nullptr;  // of the database; null when it has no such table
  std::optional<GraphWatch> watch_;
  CompareMode first_mode_ = CompareMode::kStatistics;
  std::array<std::vector<RankNodeCalls>, 2> calls_;  // of the current step: NPU, Bench
  StoryFinder story_;
  std::optional<RankFindings> found_;  // of a part
  size_t done_ = 0;
};

}  // namespace

StatusOr<GraphSummary> VisualizeGraph(const GraphSettings& options, const GraphParts& parts) {
  return Visualizer(options, parts).Run();
}

}  // namespace msprobe
