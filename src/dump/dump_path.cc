// What a path on the command line is: a dump file, a rank, a step or a whole dump.
#include <limits.h>
#include <stdlib.h>

#include <algorithm>

#include "base/message.h"
#include "base/text.h"
#include "dump/links.h"
#include "dump/reader.h"

namespace msprobe {
namespace {

constexpr size_t kMaxDigits = 9;  // of a rank or step: fits an int, and no run has more

std::optional<int> Number(std::string_view digits) {
  if (!IsDigits(digits) || digits.size() > kMaxDigits) return std::nullopt;
  return std::stoi(std::string(digits));
}

bool IsProcName(std::string_view name) { return StartsWith(name, "proc") && IsDigits(name.substr(4)); }

/// rank, rank0, rank12; not rank01.
std::optional<int> RankNumber(std::string_view name) {
  if (name == "rank") return 0;
  if (!StartsWith(name, "rank")) return std::nullopt;
  const std::string_view digits = name.substr(4);
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  return Number(digits);
}

std::optional<int> StepNumber(std::string_view name) {
  return StartsWith(name, "step") ? Number(name.substr(4)) : std::nullopt;
}

/// The last part of the path, also for "." and "a/..".
std::string NameOf(const std::string& path) {
  const std::string_view base = BaseName(path);
  if (base != "." && base != "..") return std::string(base);
  char* real = realpath(path.c_str(), nullptr);
  const std::string name(real ? BaseName(real) : base);
  free(real);
  return name;
}

bool HoldsDump(const std::string& dir) {
  return IsRegularFile(JoinPath(dir, "dump.json")) || IsRegularFile(JoinPath(dir, "debug.json"));
}

/// Rank directories among `names`; proc directories count only where there is no rank.
std::vector<RankDir> RanksOf(const std::string& dir, const std::vector<std::string>& names) {
  std::vector<RankDir> ranks, procs;
  for (const std::string& name : names) {
    const std::optional<int> rank = RankNumber(name);
    if (!rank && !IsProcName(name)) continue;
    std::string path = JoinPath(dir, name);
    if (!IsDirectory(path)) continue;
    (rank ? ranks : procs).push_back({std::move(path), name, rank});
  }
  std::stable_sort(ranks.begin(), ranks.end(), [](const RankDir& a, const RankDir& b) { return *a.rank < *b.rank; });
  std::stable_sort(procs.begin(), procs.end(), [](const RankDir& a, const RankDir& b) {
    return a.name.size() != b.name.size() ? a.name.size() < b.name.size() : a.name < b.name;
  });
  return ranks.empty() ? procs : ranks;
}

StatusOr<std::vector<StepDir>> StepsOf(const std::string& dir, const std::vector<std::string>& names) {
  std::vector<StepDir> steps;
  for (const std::string& name : names) {
    const std::optional<int> number = StepNumber(name);
    std::string path = JoinPath(dir, name);
    if (!number || !IsDirectory(path)) continue;
    MSP_ASSIGN_OR_RETURN(const std::vector<std::string> inside, ListDirectory(path));
    std::vector<RankDir> ranks = RanksOf(path, inside);
    if (!ranks.empty()) steps.push_back({std::move(path), name, *number, std::move(ranks)});
  }
  std::stable_sort(steps.begin(), steps.end(), [](const StepDir& a, const StepDir& b) { return a.step < b.step; });
  return steps;
}

/// "rank" beside "rank0", or "step1" beside "step01", would be one and the same in every result.
Status CheckTwins(const DumpPath& path) {
  const auto twins = [](const std::string& dir, const std::string& a, const std::string& b) {
    return BadInput(Msg("{} holds both {} and {}, which have the same number: move one of them away", dir, a, b));
  };
  for (size_t i = 0; i < path.steps.size(); ++i) {
    const StepDir& step = path.steps[i];
    if (i > 0 && step.step == path.steps[i - 1].step) return twins(path.path, path.steps[i - 1].name, step.name);
    for (size_t k = 1; k < step.ranks.size(); ++k) {
      const RankDir &a = step.ranks[k - 1], &b = step.ranks[k];
      if (a.rank && a.rank == b.rank) return twins(step.path, a.name, b.name);
    }
  }
  return OkStatus();
}

Message ShownNames(const std::vector<std::string>& names) {
  if (names.empty()) return Msg("it is empty");
  std::string out;
  for (size_t i = 0; i < names.size() && i < 4; ++i) out += (i ? ", " : "") + names[i];
  if (names.size() > 4) out += ", ... (" + std::to_string(names.size()) + " entries)";
  return Msg("it holds {}", out);
}

}  // namespace

StatusOr<DumpPath> ResolveDumpPath(const std::string& path) {
  DumpPath out;
  out.path = path;
  if (path.empty()) return BadInput(Msg("the path of a dump is empty: give a dump.json or a dump directory"));
  if (!PathExists(path)) return Missing(path, "give a dump.json or a dump directory");
  if (IsRegularFile(path)) return out;
  if (!IsDirectory(path))
    return BadInput(Msg("{} is neither a file nor a directory: give a dump.json or a dump directory", path));
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  if (HoldsDump(path)) {
    const std::string name = NameOf(path);
    const std::string parent = name == BaseName(path) ? std::string(DirName(path)) : JoinPath(path, "..");
    const std::string step = NameOf(parent);
    out.kind = PathKind::kRank;
    out.steps.push_back({parent, step, StepNumber(step).value_or(0), {{path, name, RankNumber(name)}}});
    return out;
  }
  MSP_RETURN_IF_ERROR(CheckDumpLinks(path));
  if (std::vector<RankDir> ranks = RanksOf(path, names); !ranks.empty()) {
    const std::string name = NameOf(path);
    out.kind = PathKind::kStep;
    out.steps.push_back({path, name, StepNumber(name).value_or(0), std::move(ranks)});
    MSP_RETURN_IF_ERROR(CheckTwins(out));
    return out;
  }
  MSP_ASSIGN_OR_RETURN(out.steps, StepsOf(path, names));
  if (out.steps.empty()) {
    return BadInput(Msg(
        "{} is not a dump ({}): expected dump.json, rank*/proc* directories, or step* directories with ranks in them",
        path, ShownNames(names)));
  }
  out.kind = PathKind::kDump;
  MSP_RETURN_IF_ERROR(CheckTwins(out));
  return out;
}

}  // namespace msprobe
