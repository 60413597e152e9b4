#include "doctor/graft/graft_calls.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "match/match_dumps.h"

namespace msprobe {
namespace {

constexpr std::string_view kFirstForward = ".forward.0";
constexpr int kDeepestParent = 200;

bool IsModule(std::string_view op) { return StartsWith(op, "Module.") || StartsWith(op, "Cell."); }

}  // namespace

bool IsBackwardOp(std::string_view op) { return Contains(op, ".backward") || Contains(op, ".parameters_grad"); }

std::map<std::string, std::string> RankDumps(const std::string& step) {
  std::map<std::string, std::string> out;
  if (IsRegularFile(JoinPath(step, "dump.json"))) out[""] = JoinPath(step, "dump.json");
  const auto names = ListDirectory(step);
  if (!names.ok()) return out;
  for (const std::string& name : *names) {
    std::string file = JoinPath(JoinPath(step, name), "dump.json");
    if (IsRegularFile(file)) out[name] = std::move(file);
  }
  return out;
}

StatusOr<CallPairs> PairCalls(const DumpFile& a, const DumpFile& b, const std::set<std::string>& calls) {
  MSP_ASSIGN_OR_RETURN(const MatchPlan plan, MatchDumps(b, a, Mapping()));
  CallPairs out;
  for (const std::string& call : calls) {
    const auto at = b.FindOp(call);
    if (!at || plan.golden_of[*at] == kNoOp) continue;
    const std::string_view partner = a.ops().NameAt(plan.golden_of[*at]);
    if (IsModule(partner) && !IsBackwardOp(partner)) out.emplace(call, partner);
  }
  return out;
}

std::set<std::string> SeparateCalls(const DumpFile& dump, size_t most) {
  const auto parents = dump.Parents();
  if (!parents.ok() || *parents == nullptr) return {};
  std::vector<std::string_view> calls;
  for (size_t i = 0; i < dump.ops().size(); ++i) {
    const std::string_view name = dump.ops().NameAt(i);
    if (IsModule(name) && EndsWith(name, kFirstForward)) calls.push_back(name);
  }
  std::set<std::string_view> containers, of_containers;  // that contain modules; that contain such
  for (const std::string_view call : calls) {
    if (const std::string_view parent = (*parents)->ParentOf(call); !parent.empty()) containers.insert(parent);
  }
  for (const std::string_view call : containers) {
    std::string_view parent = (*parents)->ParentOf(call);
    for (int up = 0; up < kDeepestParent && !parent.empty(); ++up, parent = (*parents)->ParentOf(parent)) {
      of_containers.insert(parent);
    }
  }
  std::set<std::string> out;
  for (const std::string_view call : calls) {
    if (out.size() == most) break;
    const std::string_view parent = (*parents)->ParentOf(call);
    const bool innermost = containers.contains(call) && !of_containers.contains(call);
    const bool alone = !containers.contains(call) && (parent.empty() || of_containers.contains(parent));
    if (innermost || alone) out.emplace(call);
  }
  return out;
}

std::string PathOfCall(std::string_view call) {
  // "Module.layers.1.mlp.MLP.forward.0": behind the path stand the class, the direction and the number.
  std::vector<std::string_view> parts = Split(call, '.');
  if (parts.size() < 5 || !IsModule(call)) return std::string(call);
  std::string out;
  for (size_t i = 1; i + 3 < parts.size(); ++i) out += (i > 1 ? "." : "") + std::string(parts[i]);
  return out;
}

std::string CallOfModule(const DumpFile& dump, std::string_view module) {
  for (size_t i = 0; i < dump.ops().size() && !module.empty(); ++i) {
    const std::string_view name = dump.ops().NameAt(i);
    if (!IsModule(name) || IsBackwardOp(name)) continue;
    if (name == module || (EndsWith(name, kFirstForward) && PathOfCall(name) == module)) return std::string(name);
  }
  return {};
}

std::string_view RootOf(const ParentIndex& parents, const std::set<std::string>& roots, std::string_view op) {
  for (int up = 0; up < kDeepestParent && !op.empty(); ++up, op = parents.ParentOf(op)) {
    if (const auto found = roots.find(std::string(op)); found != roots.end()) return *found;
  }
  return {};
}

}  // namespace msprobe
