#include "graph/graph_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/file.h"
#include "base/text.h"
#include "dump/reader.h"

namespace msprobe {
namespace {

std::string_view KindName(PathKind kind) {
  switch (kind) {
    case PathKind::kStep: return "a step (holds rank* or proc*)";
    case PathKind::kDump: return "a whole dump (holds step*)";
    default: return "one rank (holds dump.json)";
  }
}

bool IsRank(PathKind kind) { return kind == PathKind::kFile || kind == PathKind::kRank; }

std::string RankPath(const DumpPath& path) {
  return path.kind == PathKind::kFile ? std::string(DirName(path.path)) : path.path;
}

int RankNumber(const RankDir& dir) { return dir.rank.value_or(0); }

int StepNumber(const StepDir& dir) { return dir.step; }

/// Those of `ours` that `theirs`, found at `path`, lack.
template <typename Dir>
void WarnOfMissing(const std::vector<Dir>& ours, const std::vector<Dir>& theirs, const std::string& path,
                   int (*number)(const Dir&), GraphPlan* plan) {
  std::string left;
  for (const Dir& dir : ours) {
    const auto same = [&](const Dir& other) { return number(other) == number(dir); };
    if (std::none_of(theirs.begin(), theirs.end(), same)) left += (left.empty() ? "" : ", ") + dir.name;
  }
  if (!left.empty()) plan->warnings.push_back(fmt::format("{} has no {}: left out", path, left));
}

// A device without a rank is recorded under the id of its process; several of them cannot be told apart.
Status CheckProcs(const StepDir& step) {
  if (step.ranks.size() < 2 || step.ranks[0].rank) return OkStatus();
  return BadInput(fmt::format("{} holds {} proc directories and no rank: give the path of one of them", step.path,
                              step.ranks.size()));
}

Status AddStep(const StepDir& npu, const StepDir* bench, int step, GraphPlan* plan) {
  MSP_RETURN_IF_ERROR(CheckProcs(npu));
  if (bench) MSP_RETURN_IF_ERROR(CheckProcs(*bench));
  std::vector<int> ranks;
  for (const RankDir& n : npu.ranks) {
    const RankDir* partner = nullptr;
    if (bench) {
      for (const RankDir& b : bench->ranks)
        if (RankNumber(b) == RankNumber(n)) partner = &b;
      if (!partner) continue;
    }
    plan->pairs.push_back({step, RankNumber(n), n.path, partner ? partner->path : std::string(), {}, {}});
    ranks.push_back(RankNumber(n));
  }
  if (bench && ranks.empty()) {
    return BadInput(
        fmt::format("{} and {} have no rank in common: compare dumps of the same ranks", npu.path, bench->path));
  }
  if (bench) {
    WarnOfMissing(npu.ranks, bench->ranks, bench->path, RankNumber, plan);
    WarnOfMissing(bench->ranks, npu.ranks, npu.path, RankNumber, plan);
  }
  // The page offers these ranks for every step.
  std::vector<int> all;
  std::set_union(plan->ranks.begin(), plan->ranks.end(), ranks.begin(), ranks.end(), std::back_inserter(all));
  plan->ranks = std::move(all);
  return OkStatus();
}

Status AddSteps(const DumpPath& npu, const DumpPath* bench, GraphPlan* plan) {
  for (const StepDir& n : npu.steps) {
    const StepDir* partner = nullptr;
    if (bench) {
      for (const StepDir& b : bench->steps)
        if (b.step == n.step) partner = &b;
      if (!partner) continue;
    }
    plan->steps.push_back(n.step);
    MSP_RETURN_IF_ERROR(AddStep(n, partner, n.step, plan));
  }
  if (bench && plan->steps.empty()) {
    return BadInput(
        fmt::format("{} and {} have no step in common: compare dumps of the same steps", npu.path, bench->path));
  }
  if (bench) {
    WarnOfMissing(npu.steps, bench->steps, bench->path, StepNumber, plan);
    WarnOfMissing(bench->steps, npu.steps, npu.path, StepNumber, plan);
  }
  return OkStatus();
}

}  // namespace

StatusOr<GraphPlan> PlanGraph(const std::string& target, const std::string& golden) {
  GraphPlan plan;
  plan.compare = !golden.empty();
  MSP_ASSIGN_OR_RETURN(const DumpPath npu, ResolveDumpPath(target));
  DumpPath bench;
  if (plan.compare) {
    MSP_ASSIGN_OR_RETURN(bench, ResolveDumpPath(golden));
    if (npu.kind != bench.kind && !(IsRank(npu.kind) && IsRank(bench.kind))) {
      return BadInput(fmt::format("{} is {}, but {} is {}: give -tp and -gp directories of the same kind", target,
                                  KindName(npu.kind), golden, KindName(bench.kind)));
    }
  }
  if (IsRank(npu.kind)) {
    plan.steps = plan.ranks = {0};
    plan.pairs.push_back({0, 0, RankPath(npu), plan.compare ? RankPath(bench) : std::string(), {}, {}});
  } else if (npu.kind == PathKind::kStep) {
    const int step = std::max(npu.steps[0].step, 0);
    plan.steps = {step};
    MSP_RETURN_IF_ERROR(AddStep(npu.steps[0], plan.compare ? &bench.steps[0] : nullptr, step, &plan));
  } else {
    MSP_RETURN_IF_ERROR(AddSteps(npu, plan.compare ? &bench : nullptr, &plan));
  }
  return plan;
}

std::string GraphPlanJson(const GraphPlan& plan) {
  std::string out = fmt::format("{{\"compare\": {}, \"steps\": [{}], \"ranks\": [{}], \"pairs\": [", plan.compare,
                                fmt::join(plan.steps, ", "), fmt::join(plan.ranks, ", "));
  for (size_t i = 0; i < plan.pairs.size(); ++i) {
    const GraphPair& p = plan.pairs[i];
    out += fmt::format("{}{{\"step\": {}, \"rank\": {}, \"target\": ", i ? ", " : "", p.step, p.rank);
    AppendJsonString(out, p.npu_dir);
    if (plan.compare) {
      out += ", \"golden\": ";
      AppendJsonString(out, p.bench_dir);
    }
    out += '}';
  }
  return out + "]}";
}

}  // namespace msprobe
