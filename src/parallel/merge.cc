#include "parallel/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/message.h"
#include "base/parallel.h"
#include "graph/tree/flat_structure.h"
#include "json/writer.h"

namespace msprobe {
namespace {

constexpr size_t kCheckBlock = 64;

Status CheckRanks(const StepDir& step, const ParallelLayout& s, const char* side) {
  if (step.ranks.size() != static_cast<size_t>(s.rank_size)) {
    return BadInput(Msg("{} holds {} ranks, but --rank_size of the {} run is {}: give the number of ranks", step.path,
                        step.ranks.size(), side, s.rank_size));
  }
  for (size_t i = 0; i < step.ranks.size(); ++i) {
    if (step.ranks[i].rank.value_or(0) == static_cast<int>(i)) continue;
    return BadInput(Msg("{} lacks rank{}: merging needs the ranks 0 to {}", step.path, i, step.ranks.size() - 1));
  }
  return OkStatus();
}

StatusOr<MergeGroups> GroupsOf(const StepDir& step, const ParallelLayout& s) {
  std::vector<RankHints> hints(step.ranks.size());
  if (s.tp > 1 || s.pp > 1 || s.ep > 1) {
    MSP_RETURN_IF_ERROR(ParallelFor(step.ranks.size(), [&](size_t i) -> Status {
      MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(JoinPath(step.ranks[i].path, "dump.json")));
      hints[i] = ReadHints(static_cast<int>(i), dump);
      return OkStatus();
    }));
  }
  return FindMergeGroups(s, hints);
}

std::vector<std::shared_ptr<const MergeJob>> JobsOf(const StepDir& step, const ParallelLayout& s,
                                                    const MergeGroups& groups) {
  std::vector<std::shared_ptr<const MergeJob>> out;
  for (const MergeUnit& unit : groups.units) {
    auto job = std::make_shared<MergeJob>();
    job->settings = GridOf(s);
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
    MSP_ASSIGN_OR_RETURN(const DumpPath target, Steps(settings_.target));
    DumpPath golden;
    if (plan_.graph.compare) {
      MSP_ASSIGN_OR_RETURN(golden, Steps(settings_.golden));
      if (target.kind != golden.kind)
        return BadInput(Msg("{} and {} are not of the same kind: give two steps or two whole dumps", settings_.target,
                            settings_.golden));
    }
    std::string left;
    for (const StepDir& step : target.steps) {
      const StepDir* partner = Partner(step, target, golden);
      if (plan_.graph.compare && !partner) {
        left += (left.empty() ? "" : ", ") + step.name;
        continue;
      }
      MSP_RETURN_IF_ERROR(AddStep(step, partner));
    }
    if (plan_.graph.pairs.empty()) {
      return BadInput(
          Msg("{} and {} have no step in common: compare dumps of the same steps", settings_.target, settings_.golden));
    }
    if (!left.empty()) plan_.graph.warnings.push_back(Msg("{} has no {}: left out", settings_.golden, left));
    std::sort(plan_.graph.ranks.begin(), plan_.graph.ranks.end());
    plan_.graph.ranks.erase(std::unique(plan_.graph.ranks.begin(), plan_.graph.ranks.end()), plan_.graph.ranks.end());
    return std::move(plan_);
  }

 private:
  StatusOr<DumpPath> Steps(const std::string& path) {
    MSP_ASSIGN_OR_RETURN(DumpPath out, ResolveDumpPath(path));
    if (out.kind == PathKind::kStep || out.kind == PathKind::kDump) return out;
    return BadInput(
        Msg("{} is one rank, there is nothing to merge: leave out --rank_size or give the step directory", path));
  }

  const StepDir* Partner(const StepDir& step, const DumpPath& target, const DumpPath& golden) const {
    if (target.kind == PathKind::kStep) return golden.steps.empty() ? nullptr : &golden.steps[0];
    for (const StepDir& b : golden.steps)
      if (b.step == step.step) return &b;
    return nullptr;
  }

  Status AddStep(const StepDir& target, const StepDir* golden) {
    MSP_ASSIGN_OR_RETURN(const auto jobs, AddSide(target, *settings_.target_layout, "target", target.step));
    std::vector<std::shared_ptr<const MergeJob>> partners;
    if (golden) {
      MSP_ASSIGN_OR_RETURN(partners, AddSide(*golden, *settings_.golden_layout, "golden", target.step));
      if (jobs.size() != partners.size()) {
        return BadInput(
            Msg("merging {} gives {} graphs (data parallelism) and {} gives {}: compare runs with the same number",
                target.path, jobs.size(), golden->path, partners.size()));
      }
    }
    plan_.graph.steps.push_back(target.step);
    for (size_t i = 0; i < jobs.size(); ++i) {
      GraphPair pair{target.step, jobs[i]->rank(), jobs[i]->dirs[0], {}, jobs[i], nullptr, target.step};
      if (golden) pair.golden_dir = partners[i]->dirs[0], pair.golden_merge = partners[i];
      plan_.graph.ranks.push_back(pair.rank);
      plan_.graph.pairs.push_back(std::move(pair));
    }
    return OkStatus();
  }

  StatusOr<std::vector<std::shared_ptr<const MergeJob>>> AddSide(const StepDir& dir, const ParallelLayout& s,
                                                                 const char* side, int step) {
    MSP_RETURN_IF_ERROR(CheckRanks(dir, s, side));
    MSP_ASSIGN_OR_RETURN(MergeGroups groups, GroupsOf(dir, s));
    for (const Message& w : groups.warnings) plan_.graph.warnings.push_back(Msg("{}: {}", dir.path, w));
    auto jobs = JobsOf(dir, s, groups);
    plan_.sides.push_back({side, step, s, std::move(groups)});
    return jobs;
  }

  const GraphSettings& settings_;
  MergePlan plan_;
};

void WriteSide(JsonWriter* json, const MergeSide& s) {
  json->BeginObject();
  json->Member("side", s.side);
  json->Member("step", s.step);
  json->Member("rank_size", s.settings.rank_size);
  json->Member("tp", s.settings.tp);
  json->Member("pp", s.settings.pp);
  json->Member("vpp", s.settings.vpp);
  json->Member("cp", s.settings.cp);
  json->Member("ep", s.settings.ep);
  json->Member("order", s.settings.order);
  json->Member("tp_groups", s.groups.tp);
  json->Member("tp_groups_from", s.groups.tp_recorded ? "data" : "order");
  json->Member("pp_groups", s.groups.pp);
  json->Member("pp_groups_from", s.groups.pp_recorded ? "data" : "order");
  if (!s.groups.ep.empty()) json->Member("ep_groups", s.groups.ep);
  json->ArrayMember("graphs", s.groups.units,
                    [&](const MergeUnit& unit) { json->Object([&] { json->Member("stages", unit.stages); }); });
  json->EndObject();
}

/// As members of an open object.
void WriteDecisions(JsonWriter* json, const MergeDecisions& d) {
  json->ArrayMember("moved", d.moved, [&](const MergeMove& m) {
    json->BeginObject();
    json->Member("rank", m.rank);
    json->Member("from", m.from);
    json->Member("to", m.to);
    json->Member("parent", m.parent);
    json->EndObject();
  });
  json->ArrayMember("taken", d.taken, [&](const MergeTake& t) {
    json->BeginObject();
    json->Member("node", t.node);
    json->Member("data", t.output ? "output" : "input");
    json->Member("rank", t.rank);
    json->Member("from", t.from);
    json->EndObject();
  });
  json->ArrayMember("reduced", d.reduced, [&](const auto& reduced) {
    json->BeginObject();
    json->Member("call", reduced.first);
    json->Member("by", reduced.second);
    json->EndObject();
  });
}

void WriteFindings(JsonWriter* json, const std::vector<MergeFinding>& findings) {
  json->Array(findings, [&](const MergeFinding& f) {
    json->BeginObject();
    json->Member("node", f.node);
    json->Member("tensor", f.tensor);
    json->Member("ranks", f.ranks);
    json->Member("text", f.text);
    json->EndObject();
  });
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
    MSP_ASSIGN_OR_RETURN(RankGraph graph, BuildRankGraph(job.dirs[i], WithoutModules::kOneModule));
    graphs[i] = std::make_unique<RankGraph>(std::move(graph));
    return OkStatus();
  }));
  if (InterruptRequested()) return Interrupted();
  for (size_t i = 0; i < graphs.size(); ++i) {
    const RankFiles& files = graphs[i]->files;
    if (files.dump.task() != graphs[0]->files.dump.task()) {
      return BadInput(Msg("{} was dumped with task {}, but {} with task {}: merge ranks of one task", files.dump.path(),
                          files.dump.task(), graphs[0]->files.dump.path(), graphs[0]->files.dump.task()));
    }
    if (IsOneModuleOfCalls(files.construct) != IsOneModuleOfCalls(graphs[0]->files.construct)) {
      return BadInput(Msg("{} and {} were dumped at different levels: dump both at L0 or mix", files.dump.path(),
                          graphs[0]->files.dump.path()));
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
  for (const Message& w : plan.graph.warnings)
    if (settings.warning) settings.warning(w);
  JsonWriter json;
  json.BeginObject();
  json.ArrayMember("sides", plan.sides, [&](const MergeSide& side) { WriteSide(&json, side); });
  json.Key("graphs");
  json.BeginArray();
  JsonWriter layout;
  bool has_layout = false;
  for (const GraphPair& pair : plan.graph.pairs) {
    for (const auto& job : {pair.target_merge, pair.golden_merge}) {
      if (!job) continue;
      MergeDecisions decisions;
      MSP_ASSIGN_OR_RETURN(const RankGraph graph, BuildMergedGraph(*job, &decisions));
      for (const RankFiles* files : FilesOf(graph)) {
        const Message texts[] = {files->dump.truncated(), files->stack.truncated(), files->construct.truncated};
        for (const Message& text : texts)
          if (!text.empty() && settings.warning) settings.warning(text);
      }
      MSP_ASSIGN_OR_RETURN(const std::vector<MergeFinding> findings, CheckMerge(graph));
      json.BeginObject();
      json.Member("side", job == pair.target_merge ? "target" : "golden");
      json.Member("step", pair.step);
      json.Member("rank", job->rank());
      json.Member("nodes", graph.graph.order.size());
      WriteDecisions(&json, decisions);
      json.Key("findings"), WriteFindings(&json, findings);
      json.EndObject();
      if (!has_layout && !graph.merged->layout.empty()) {
        graph.merged->layout.Write(&layout);
        has_layout = true;
      }
    }
  }
  json.EndArray();
  if (has_layout) json.RawMember("layout", layout.Take());
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace msprobe
