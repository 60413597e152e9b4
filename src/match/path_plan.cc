#include "match/path_plan.h"

#include <algorithm>
#include <map>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "dump/reader.h"
#include "json/writer.h"

namespace msprobe {
namespace {

std::string_view KindName(PathKind kind) {
  switch (kind) {
    case PathKind::kFile: return "a file";
    case PathKind::kRank: return "a rank directory";
    case PathKind::kStep: return "a step directory";
    case PathKind::kDump: return "a dump directory (several steps)";
  }
  return "";
}

bool IsDebugName(std::string_view path) { return EndsWith(path, "debug.json"); }

/// The dump.json of a rank, else its debug.json, else "".
std::string FileOf(const std::string& dir, bool debug) {
  std::string path = JoinPath(dir, debug ? "debug.json" : "dump.json");
  return IsRegularFile(path) ? path : std::string();
}

Status CheckFileName(const std::string& path) {
  if (EndsWith(path, "dump.json") || IsDebugName(path)) return OkStatus();
  return BadInput(
      Msg("{} is neither a dump.json nor a debug.json: give one of these, or a directory that holds them", path));
}

/// Pairs the ranks of one step on both sides: by id, or the only one with the only one.
void PairRanks(const StepDir& target, const StepDir& golden, bool many_steps, PathPlan* plan) {
  const auto add = [&](const RankDir& t, const RankDir& g) {
    FilePair pair;
    pair.target = FileOf(t.path, plan->debug);
    pair.golden = FileOf(g.path, plan->debug);
    if (pair.target.empty() || pair.golden.empty()) {
      if (!pair.target.empty()) plan->target_only.push_back(t.path);
      if (!pair.golden.empty()) plan->golden_only.push_back(g.path);
      return;
    }
    pair.label = many_steps ? target.name + " " + t.name : t.name;
    pair.suffix = many_steps ? "_" + target.name + "_" + t.name : "_" + t.name;
    pair.step = target.step;
    pair.rank = t.rank.value_or(-1);
    plan->pairs.push_back(std::move(pair));
  };
  if (target.ranks.size() == 1 && golden.ranks.size() == 1) return add(target.ranks[0], golden.ranks[0]);
  std::map<int, const RankDir*> by_id;
  for (const RankDir& g : golden.ranks) {
    if (g.rank) by_id.emplace(*g.rank, &g);
  }
  for (const RankDir& t : target.ranks) {
    const auto it = t.rank ? by_id.find(*t.rank) : by_id.end();
    if (it == by_id.end()) {
      plan->target_only.push_back(t.path);
    } else {
      add(t, *it->second);
      by_id.erase(it);
    }
  }
  for (const RankDir& g : golden.ranks) {
    if (!g.rank || by_id.count(*g.rank)) plan->golden_only.push_back(g.path);
  }
}

void PairSteps(const DumpPath& target, const DumpPath& golden, PathPlan* plan) {
  if (target.kind != PathKind::kDump) return PairRanks(target.steps[0], golden.steps[0], false, plan);
  std::map<int, const StepDir*> by_step;
  for (const StepDir& g : golden.steps) by_step.emplace(g.step, &g);
  for (const StepDir& t : target.steps) {
    const auto it = by_step.find(t.step);
    if (it == by_step.end()) {
      plan->target_only.push_back(t.path);
    } else {
      PairRanks(t, *it->second, true, plan);
      by_step.erase(it);
    }
  }
  for (const auto& [step, g] : by_step) plan->golden_only.push_back(g->path);
}

/// Debug dumps hold debug.json only.
bool HasDump(const DumpPath& path) {
  for (const StepDir& step : path.steps) {
    for (const RankDir& rank : step.ranks) {
      if (!FileOf(rank.path, false).empty()) return true;
    }
  }
  return false;
}

}  // namespace

namespace {

/// Directories of a dump that holds both of MindSpore's modes; of the others there is nothing in the name.
constexpr std::string_view kModes[] = {"graph", "pynative"};

bool HasModes(const std::string& path) {
  return std::any_of(std::begin(kModes), std::end(kModes),
                     [&](std::string_view mode) { return IsDirectory(JoinPath(path, mode)); });
}

StatusOr<PathPlan> PlanModes(const std::string& target, const std::string& golden) {
  PathPlan plan;
  for (const std::string_view mode : kModes) {
    const std::string t = JoinPath(target, mode), g = JoinPath(golden, mode);
    if (IsDirectory(t) && IsDirectory(g)) {
      MSP_ASSIGN_OR_RETURN(PathPlan part, PlanPaths(t, g));
      if (!plan.pairs.empty() && part.debug != plan.debug) {
        return BadInput(Msg("{} and the dumps beside it differ in kind: compare the two directories one by one", t));
      }
      plan.debug = part.debug;
      for (FilePair& pair : part.pairs) {
        pair.label = std::string(mode) + (pair.label.empty() ? "" : " ") + pair.label;
        pair.folder = mode;
        // The older tool has a directory for each step here, and no step in the names.
        if (const std::string step = "_step" + std::to_string(pair.step); StartsWith(pair.suffix, step)) {
          pair.folder += "/" + step.substr(1);
          pair.suffix.erase(0, step.size());
        }
        plan.pairs.push_back(std::move(pair));
      }
      plan.target_only.insert(plan.target_only.end(), part.target_only.begin(), part.target_only.end());
      plan.golden_only.insert(plan.golden_only.end(), part.golden_only.begin(), part.golden_only.end());
    } else if (IsDirectory(t)) {
      plan.target_only.push_back(t);
    } else if (IsDirectory(g)) {
      plan.golden_only.push_back(g);
    }
  }
  if (!plan.pairs.empty()) return plan;
  return BadInput(
      Msg("{} and {} have no mode in common: compare a directory below them with one below", target, golden));
}

}  // namespace

StatusOr<PathPlan> PlanPaths(const std::string& target, const std::string& golden) {
  if (HasModes(target) && HasModes(golden)) return PlanModes(target, golden);
  MSP_ASSIGN_OR_RETURN(const DumpPath t, ResolveDumpPath(target));
  MSP_ASSIGN_OR_RETURN(const DumpPath g, ResolveDumpPath(golden));
  if (t.kind != g.kind) {
    return BadInput(Msg("{} is {} but {} is {}: give two paths of the same kind", target, KnownText(KindName(t.kind)),
                        golden, KnownText(KindName(g.kind))));
  }
  PathPlan plan;
  if (t.kind == PathKind::kFile) {
    MSP_RETURN_IF_ERROR(CheckFileName(target));
    MSP_RETURN_IF_ERROR(CheckFileName(golden));
    plan.debug = IsDebugName(target);
    if (plan.debug != IsDebugName(golden)) {
      return BadInput(Msg("{} and {} differ in kind: compare dump.json with dump.json, debug.json with debug.json",
                          target, golden));
    }
    FilePair pair;
    pair.target = target;
    pair.golden = golden;
    plan.pairs.push_back(std::move(pair));
    return plan;
  }
  plan.debug = !HasDump(t);
  if (plan.debug == HasDump(g)) {
    return BadInput(
        Msg("{} holds no dump.json but {} does: compare dump.json with dump.json, debug.json with debug.json",
            (plan.debug ? target : golden), (plan.debug ? golden : target)));
  }
  PairSteps(t, g, &plan);
  if (plan.pairs.empty()) {
    return BadInput(
        Msg("no rank of {} has a partner in {}: ranks pair by id and steps by number; give two dump.json files to pair "
            "them yourself",
            target, golden));
  }
  return plan;
}

StatusOr<PathPlan> PlanPaths(const std::string& target, const std::string& golden, const RankChoice& ranks) {
  MSP_ASSIGN_OR_RETURN(PathPlan plan, PlanPaths(target, golden));
  if (ranks.all()) return plan;
  std::erase_if(plan.pairs, [&](const FilePair& pair) { return !ranks.Holds(pair.rank); });
  if (plan.pairs.empty()) return ranks.NoneOf(target);
  return plan;
}

void WritePathPlan(JsonWriter* json, const PathPlan& plan) {
  json->BeginObject();
  json->ArrayMember("pairs", plan.pairs, [&](const FilePair& pair) {
    json->BeginObject();
    json->Member("target", pair.target);
    json->Member("golden", pair.golden);
    json->Member("label", pair.label);
    json->EndObject();
  });
  json->Member("target_only", plan.target_only);
  json->Member("golden_only", plan.golden_only);
  json->EndObject();
}

}  // namespace msprobe
