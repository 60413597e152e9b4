#include "graph/merge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr size_t kCheckBlock = 64;

Status CheckRanks(const StepDir& step, const MergeSettings& s, const char* side) {
  if (step.ranks.size() != static_cast<size_t>(s.rank_size)) {
    return BadInput(fmt::format("{} holds {} ranks, but --rank_size of the {} run is {}: give the number of ranks",
                                step.path, step.ranks.size(), side, s.rank_size));
  }
  for (size_t i = 0; i < step.ranks.size(); ++i) {
    if (step.ranks[i].rank.value_or(0) == static_cast<int>(i)) continue;
    return BadInput(
        fmt::format("{} lacks rank{}: merging needs the ranks 0 to {}", step.path, i, step.ranks.size() - 1));
  }
  return OkStatus();
}

StatusOr<MergeGroups> GroupsOf(const StepDir& step, const MergeSettings& s) {
  std::vector<RankHints> hints(step.ranks.size());
  if (s.tp > 1 || s.pp > 1) {
    MSP_RETURN_IF_ERROR(ParallelFor(step.ranks.size(), [&](size_t i) -> Status {
      MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(JoinPath(step.ranks[i].path, "dump.json")));
      hints[i] = ReadHints(static_cast<int>(i), dump);
      return OkStatus();
    }));
  }
  return FindMergeGroups(s, hints);
}

std::vector<std::shared_ptr<const MergeJob>> JobsOf(const StepDir& step, const MergeSettings& s,
                                                    const MergeGroups& groups) {
  std::vector<std::shared_ptr<const MergeJob>> out;
  for (const MergeUnit& unit : groups.units) {
    auto job = std::make_shared<MergeJob>();
    job->settings = s;
    job->unit = unit;
    job->layout_file = s.tensors;
    for (const auto& stage : unit.stages)
      for (int rank : stage) job->dirs.push_back(step.ranks[static_cast<size_t>(rank)].path);
    out.push_back(std::move(job));
  }
  return out;
}

class Planner {
 public:
  explicit Planner(const GraphSettings& settings) : settings_(settings) {}

  StatusOr<MergePlan> Run() {
    plan_.graph.compare = !settings_.golden.empty();
    MSP_RETURN_IF_ERROR(CheckMergeSettings(*settings_.target_layout, "target"));
    if (plan_.graph.compare) MSP_RETURN_IF_ERROR(CheckMergeSettings(*settings_.golden_layout, "golden"));
    MSP_ASSIGN_OR_RETURN(const DumpPath npu, Steps(settings_.target));
    DumpPath bench;
    if (plan_.graph.compare) {
      MSP_ASSIGN_OR_RETURN(bench, Steps(settings_.golden));
      if (npu.kind != bench.kind)
        return BadInput(fmt::format("{} and {} are not of the same kind: give two steps or two whole dumps",
                                    settings_.target, settings_.golden));
    }
    std::string left;
    for (const StepDir& step : npu.steps) {
      const StepDir* partner = Partner(step, npu, bench);
      if (plan_.graph.compare && !partner) {
        left += (left.empty() ? "" : ", ") + step.name;
        continue;
      }
      MSP_RETURN_IF_ERROR(AddStep(step, partner));
    }
    if (plan_.graph.pairs.empty()) {
      return BadInput(fmt::format("{} and {} have no step in common: compare dumps of the same steps", settings_.target,
                                  settings_.golden));
    }
    if (!left.empty()) plan_.graph.warnings.push_back(fmt::format("{} has no {}: left out", settings_.golden, left));
    std::sort(plan_.graph.ranks.begin(), plan_.graph.ranks.end());
    plan_.graph.ranks.erase(std::unique(plan_.graph.ranks.begin(), plan_.graph.ranks.end()), plan_.graph.ranks.end());
    return std::move(plan_);
  }

 private:
  StatusOr<DumpPath> Steps(const std::string& path) {
    MSP_ASSIGN_OR_RETURN(DumpPath out, ResolveDumpPath(path));
    if (out.kind == PathKind::kStep || out.kind == PathKind::kDump) return out;
    return BadInput(path + " is one rank, there is nothing to merge: leave out --rank_size or give the step directory");
  }

  const StepDir* Partner(const StepDir& step, const DumpPath& npu, const DumpPath& bench) const {
    if (npu.kind == PathKind::kStep) return bench.steps.empty() ? nullptr : &bench.steps[0];
    for (const StepDir& b : bench.steps)
      if (b.step == step.step) return &b;
    return nullptr;
  }

  Status AddStep(const StepDir& npu, const StepDir* bench) {
    MSP_ASSIGN_OR_RETURN(const auto jobs, AddSide(npu, *settings_.target_layout, "target", npu.step));
    std::vector<std::shared_ptr<const MergeJob>> partners;
    if (bench) {
      MSP_ASSIGN_OR_RETURN(partners, AddSide(*bench, *settings_.golden_layout, "golden", npu.step));
      if (jobs.size() != partners.size()) {
        return BadInput(fmt::format(
            "merging {} gives {} graphs (data parallelism) and {} gives {}: compare runs with the same number",
            npu.path, jobs.size(), bench->path, partners.size()));
      }
    }
    plan_.graph.steps.push_back(npu.step);
    for (size_t i = 0; i < jobs.size(); ++i) {
      GraphPair pair{npu.step, jobs[i]->rank(), jobs[i]->dirs[0], {}, jobs[i], nullptr};
      if (bench) pair.bench_dir = partners[i]->dirs[0], pair.bench_merge = partners[i];
      plan_.graph.ranks.push_back(pair.rank);
      plan_.graph.pairs.push_back(std::move(pair));
    }
    return OkStatus();
  }

  StatusOr<std::vector<std::shared_ptr<const MergeJob>>> AddSide(const StepDir& dir, const MergeSettings& s,
                                                                 const char* side, int step) {
    MSP_RETURN_IF_ERROR(CheckRanks(dir, s, side));
    MSP_ASSIGN_OR_RETURN(MergeGroups groups, GroupsOf(dir, s));
    for (const std::string& w : groups.warnings) plan_.graph.warnings.push_back(dir.path + ": " + w);
    auto jobs = JobsOf(dir, s, groups);
    plan_.sides.push_back({side, step, s, std::move(groups)});
    return jobs;
  }

  const GraphSettings& settings_;
  MergePlan plan_;
};

void AppendText(std::string& out, const char* key, std::string_view text) {
  out += fmt::format("\"{}\": ", key);
  AppendJsonString(out, text);
}

std::string SideJson(const MergeSide& s) {
  std::string out = fmt::format(
      "{{\"side\": \"{}\", \"step\": {}, \"rank_size\": {}, \"tp\": {}, \"pp\": {}, \"vpp\": {}, \"cp\": {}, \"ep\": "
      "{}, \"order\": \"{}\", \"tp_groups\": {}, \"tp_groups_from\": \"{}\", \"pp_groups\": {}, \"pp_groups_from\": "
      "\"{}\", \"graphs\": [",
      s.side, s.step, s.settings.rank_size, s.settings.tp, s.settings.pp, s.settings.vpp, s.settings.cp, s.settings.ep,
      s.settings.order, s.groups.tp, s.groups.tp_recorded ? "data" : "order", s.groups.pp,
      s.groups.pp_recorded ? "data" : "order");
  for (size_t i = 0; i < s.groups.units.size(); ++i)
    out += fmt::format("{}{{\"stages\": {}}}", i ? ", " : "", s.groups.units[i].stages);
  return out + "]}";
}

std::string DecisionsJson(const MergeDecisions& d) {
  std::string out = "\"moved\": [";
  const char* comma = "";
  for (const MergeMove& m : d.moved) {
    out += fmt::format("{}{{\"rank\": {}, ", comma, m.rank);
    AppendText(out, "from", m.from), out += ", ";
    AppendText(out, "to", m.to), out += ", ";
    AppendText(out, "parent", m.parent), out += '}';
    comma = ", ";
  }
  out += "], \"taken\": [";
  comma = "";
  for (const MergeTake& t : d.taken) {
    out += comma + std::string("{");
    AppendText(out, "node", t.node);
    out += fmt::format(", \"data\": \"{}\", \"rank\": {}, ", t.output ? "output" : "input", t.rank);
    AppendText(out, "from", t.from), out += '}';
    comma = ", ";
  }
  out += "], \"reduced\": [";
  comma = "";
  for (const auto& [call, by] : d.reduced) {
    out += comma + std::string("{");
    AppendText(out, "call", call), out += ", ";
    AppendText(out, "by", by), out += '}';
    comma = ", ";
  }
  return out + "]";
}

std::string FindingsJson(const std::vector<MergeFinding>& findings) {
  std::string out = "[";
  for (const MergeFinding& f : findings) {
    if (out.size() > 1) out += ", ";
    out += '{';
    AppendText(out, "node", f.node), out += ", ";
    AppendText(out, "tensor", f.tensor);
    out += fmt::format(", \"ranks\": {}, ", f.ranks);
    AppendText(out, "text", f.text), out += '}';
  }
  return out + "]";
}

}  // namespace

StatusOr<MergePlan> PlanMerge(const GraphSettings& settings) { return Planner(settings).Run(); }

StatusOr<RankGraph> BuildMergedGraph(const MergeJob& job, MergeDecisions* decisions) {
  MergeLayout layout;
  if (!job.layout_file.empty()) {
    MSP_ASSIGN_OR_RETURN(layout, MergeLayout::Read(job.layout_file));
  }
  std::vector<std::unique_ptr<RankGraph>> graphs(job.dirs.size());
  MSP_RETURN_IF_ERROR(ParallelFor(job.dirs.size(), [&](size_t i) -> Status {
    MSP_ASSIGN_OR_RETURN(RankGraph graph, BuildRankGraph(job.dirs[i]));
    graphs[i] = std::make_unique<RankGraph>(std::move(graph));
    return OkStatus();
  }));
  if (InterruptRequested()) return Interrupted();
  for (size_t i = 0; i < graphs.size(); ++i) {
    const RankFiles& files = graphs[i]->files;
    if (files.dump.task() != graphs[0]->files.dump.task()) {
      return BadInput(fmt::format("{} was dumped with task {}, but {} with task {}: merge ranks of one task",
                                  files.dump.path(), files.dump.task(), graphs[0]->files.dump.path(),
                                  graphs[0]->files.dump.task()));
    }
  }
  return MergeRanks(job.settings, job.unit, std::move(layout), std::move(graphs), decisions);
}

StatusOr<std::vector<MergeFinding>> CheckMerge(const RankGraph& graph) {
  using Found = std::vector<MergeFinding>;
  Found out;
  const std::vector<uint32_t>& order = graph.graph.order;
  const auto make = [&](size_t block) -> StatusOr<Found> {
    Found found;
    JsonDoc doc;
    MergeNotes notes;
    const size_t end = std::min((block + 1) * kCheckBlock, order.size());
    for (size_t i = block * kCheckBlock; i < end; ++i) {
      MSP_RETURN_IF_ERROR(graph.merged->Read(graph, order[i], &doc, &notes));
      std::move(notes.findings.begin(), notes.findings.end(), std::back_inserter(found));
    }
    return found;
  };
  const auto take = [&](size_t, Found&& found) -> Status {
    std::move(found.begin(), found.end(), std::back_inserter(out));
    return OkStatus();
  };
  MSP_RETURN_IF_ERROR(ParallelOrdered<Found>((order.size() + kCheckBlock - 1) / kCheckBlock, 16, make, take));
  return out;
}

StatusOr<std::string> MergePlanJson(const GraphSettings& settings) {
  MSP_ASSIGN_OR_RETURN(const MergePlan plan, PlanMerge(settings));
  for (const std::string& w : plan.graph.warnings)
    if (settings.warning) settings.warning(w);
  std::string out = "{\"sides\": [";
  for (size_t i = 0; i < plan.sides.size(); ++i) out += (i ? ", " : "") + SideJson(plan.sides[i]);
  out += "], \"graphs\": [";
  const char* comma = "";
  std::string layouts;
  for (const GraphPair& pair : plan.graph.pairs) {
    for (const auto& job : {pair.npu_merge, pair.bench_merge}) {
      if (!job) continue;
      MergeDecisions decisions;
      MSP_ASSIGN_OR_RETURN(const RankGraph graph, BuildMergedGraph(*job, &decisions));
      for (const RankFiles* files : FilesOf(graph)) {
        const std::string texts[] = {files->dump.truncated(), files->stack.truncated(), files->construct.truncated};
        for (const std::string& text : texts)
          if (!text.empty() && settings.warning) settings.warning(text);
      }
      MSP_ASSIGN_OR_RETURN(const std::vector<MergeFinding> findings, CheckMerge(graph));
      out += fmt::format("{}{{\"side\": \"{}\", \"step\": {}, \"rank\": {}, \"nodes\": {}, {}, \"findings\": {}}}",
                         comma, job == pair.npu_merge ? "target" : "golden", pair.step, job->rank(),
                         graph.graph.order.size(), DecisionsJson(decisions), FindingsJson(findings));
      comma = ", ";
      if (layouts.empty() && !graph.merged->layout.empty()) layouts = ", \"layout\": " + graph.merged->layout.Json();
    }
  }
  return out + "]" + layouts + "}\n";
}

}  // namespace msprobe
