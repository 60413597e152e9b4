#include "graph/tree/graph_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/file.h"
#include "base/message.h"
#include "dump/reader.h"
#include "json/writer.h"

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

/// Those of `dirs` that `others`, found at `path`, lack.
template <typename Dir>
void WarnOfMissing(const std::vector<Dir>& dirs, const std::vector<Dir>& others, const std::string& path,
                   int (*number)(const Dir&), GraphPlan* plan) {
  std::string left;
  for (const Dir& dir : dirs) {
    const auto same = [&](const Dir& other) { return number(other) == number(dir); };
    if (std::none_of(others.begin(), others.end(), same)) left += (left.empty() ? "" : ", ") + dir.name;
  }
  if (!left.empty()) plan->warnings.push_back(Msg("{} has no {}: left out", path, left));
}

// A device without a rank is recorded under the id of its process; several of them cannot be told apart.
Status CheckProcs(const StepDir& step) {
  if (step.ranks.size() < 2 || step.ranks[0].rank) return OkStatus();
  return BadInput(
      Msg("{} holds {} proc directories and no rank: give the path of one of them", step.path, step.ranks.size()));
}

Status AddStep(const StepDir& target, const StepDir* golden, int step, GraphPlan* plan) {
  MSP_RETURN_IF_ERROR(CheckProcs(target));
  if (golden) MSP_RETURN_IF_ERROR(CheckProcs(*golden));
  std::vector<int> ranks;
  for (const RankDir& n : target.ranks) {
    const RankDir* partner = nullptr;
    if (golden) {
      for (const RankDir& b : golden->ranks)
        if (RankNumber(b) == RankNumber(n)) partner = &b;
      if (!partner) continue;
    }
    plan->pairs.push_back({step,
                           RankNumber(n),
                           n.path,
                           partner ? partner->path : std::string(),
                           {},
                           {},
                           target.step,
                           n.rank.value_or(-1)});
    ranks.push_back(RankNumber(n));
  }
  if (golden && ranks.empty()) {
    return BadInput(
        Msg("{} and {} have no rank in common: compare dumps of the same ranks", target.path, golden->path));
  }
  if (golden) {
    WarnOfMissing(target.ranks, golden->ranks, golden->path, RankNumber, plan);
    WarnOfMissing(golden->ranks, target.ranks, target.path, RankNumber, plan);
  }
  // The page offers these ranks for every step.
  std::vector<int> all;
  std::set_union(plan->ranks.begin(), plan->ranks.end(), ranks.begin(), ranks.end(), std::back_inserter(all));
  plan->ranks = std::move(all);
  return OkStatus();
}

Status AddSteps(const DumpPath& target, const DumpPath* golden, GraphPlan* plan) {
  for (const StepDir& n : target.steps) {
    const StepDir* partner = nullptr;
    if (golden) {
      for (const StepDir& b : golden->steps)
        if (b.step == n.step) partner = &b;
      if (!partner) continue;
    }
    plan->steps.push_back(n.step);
    MSP_RETURN_IF_ERROR(AddStep(n, partner, n.step, plan));
  }
  if (golden && plan->steps.empty()) {
    return BadInput(
        Msg("{} and {} have no step in common: compare dumps of the same steps", target.path, golden->path));
  }
  if (golden) {
    WarnOfMissing(target.steps, golden->steps, golden->path, StepNumber, plan);
    WarnOfMissing(golden->steps, target.steps, target.path, StepNumber, plan);
  }
  return OkStatus();
}

}  // namespace

StatusOr<GraphPlan> PlanGraph(const std::string& target_path, const std::string& golden_path, const RankChoice& ranks) {
  GraphPlan plan;
  plan.compare = !golden_path.empty();
  MSP_ASSIGN_OR_RETURN(DumpPath target, ResolveDumpPath(target_path));
  MSP_RETURN_IF_ERROR(ranks.Apply(&target));
  DumpPath golden;
  if (plan.compare) {
    MSP_ASSIGN_OR_RETURN(golden, ResolveDumpPath(golden_path));
    MSP_RETURN_IF_ERROR(ranks.Apply(&golden));
    if (target.kind != golden.kind && !(IsRank(target.kind) && IsRank(golden.kind))) {
      return BadInput(Msg("{} is {}, but {} is {}: give -tp and -gp directories of the same kind", target_path,
                          KnownText(KindName(target.kind)), golden_path, KnownText(KindName(golden.kind))));
    }
  }
  if (IsRank(target.kind)) {
    plan.steps = plan.ranks = {0};
    const bool named = target.kind == PathKind::kRank;
    plan.pairs.push_back({0,
                          0,
                          RankPath(target),
                          plan.compare ? RankPath(golden) : std::string(),
                          {},
                          {},
                          named ? target.steps[0].step : -1,
                          named ? target.steps[0].ranks[0].rank.value_or(-1) : -1});
  } else if (target.kind == PathKind::kStep) {
    const int step = std::max(target.steps[0].step, 0);
    plan.steps = {step};
    MSP_RETURN_IF_ERROR(AddStep(target.steps[0], plan.compare ? &golden.steps[0] : nullptr, step, &plan));
  } else {
    MSP_RETURN_IF_ERROR(AddSteps(target, plan.compare ? &golden : nullptr, &plan));
  }
  return plan;
}

std::string GraphPlanJson(const GraphPlan& plan) {
  JsonWriter json;
  json.BeginObject();
  json.Member("compare", plan.compare);
  json.Member("steps", plan.steps);
  json.Member("ranks", plan.ranks);
  json.ArrayMember("pairs", plan.pairs, [&](const GraphPair& p) {
    json.BeginObject();
    json.Member("step", p.step);
    json.Member("rank", p.rank);
    json.Member("target", p.target_dir);
    if (plan.compare) json.Member("golden", p.golden_dir);
    json.EndObject();
  });
  json.EndObject();
  return json.Take();
}

}  // namespace msprobe
