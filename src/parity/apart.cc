#include "parity/apart.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "parity/parts.h"

namespace msprobe {
namespace {

/// "embed.weight" of "embed.weight exp_avg".
std::string TensorOf(const std::string& name) { return name.substr(0, name.find(' ')); }

bool IsOneOf(const std::string& phase, std::initializer_list<std::string_view> phases) {
  return std::find(phases.begin(), phases.end(), phase) != phases.end();
}

/// Ranks were brought together that should not be, or were not.
bool IsReach(CauseKind kind) {
  return kind == CauseKind::kPartialSum || kind == CauseKind::kWrongGroup || kind == CauseKind::kMissing;
}

bool IsFactor(CauseKind kind) { return kind == CauseKind::kMeanForSum || kind == CauseKind::kSumForMean; }

bool NoCause(CauseKind kind) {
  return kind == CauseKind::kUnexplained || kind == CauseKind::kOneRank || kind == CauseKind::kScaled ||
         kind == CauseKind::kZero;
}

/// One fault that several tensors have.
bool SameFault(const ParityFinding& a, const ParityFinding& b) {
  if (IsReach(a.cause.kind) && IsReach(b.cause.kind)) return a.cause.axis == b.cause.axis;
  const bool factors = !a.cause.factor || !b.cause.factor ||
                       std::abs(*a.cause.factor - *b.cause.factor) <= 1e-2 * std::abs(*a.cause.factor);
  return a.cause.kind == b.cause.kind && factors;
}

/// Whether the module of this parameter computed what the reference did, and got the same gradient of it.
bool IsUntouched(const ParityResult& result, const ParityFinding& finding) {
  const std::string module = finding.name.substr(0, finding.name.rfind('.'));
  bool backward = false;
  for (const ParityRow& row : result.rows) {
    if (row.step != finding.step || !IsOneOf(row.phase, {"forward", "backward"})) continue;
    if (row.name.substr(0, row.name.find_first_of("# ")) != module) continue;
    if (row.kind == PartsKind::kDiffers || row.kind == PartsKind::kNotCompared) return false;
    if (row.phase == "backward" && row.kind == PartsKind::kSum) return false;
    backward = backward || row.phase == "backward";
  }
  return backward;
}

/// Whether the gradient of a parameter can be wrong because of what `root` says.
bool GradientFollows(const ParityResult& result, const ParityFinding& root, const ParityFinding& one) {
  const bool reach = IsReach(one.cause.kind);
  // Ranks with other rows get one reduced gradient, whatever each of them brings.
  if (one.law) return root.phase != "parameter" || one.cause.axis.empty() || !IsDataAxis(one.cause.axis);
  if (!reach && !IsFactor(one.cause.kind)) return true;
  if (IsOneOf(root.phase, {"norm", "clipped"})) return !reach;
  if (IsUntouched(result, one)) return false;
  if (root.phase == "gradient") return NoCause(root.cause.kind);
  // A parameter that is wrong changes values, and a reduction is seen by what it adds up.
  return root.phase != "parameter" || !reach;
}

/// Faults behind which replicas stay alike, so that the norm of what they hold is what it should be.
bool KeepsReplicas(CauseKind kind) {
  return IsFactor(kind) || kind == CauseKind::kReducedTwice || kind == CauseKind::kLocalTokens ||
         kind == CauseKind::kShardExchanged;
}

bool CanCause(const ParityResult& result, const ParityFinding& root, const ParityFinding& one) {
  if (SameFault(root, one)) return true;
  if (one.phase == "parameter") return NoCause(one.cause.kind);
  if (one.phase == "gradient") return GradientFollows(result, root, one);
  // The norm is held to the gradients that the ranks have, and clipping to that norm.
  if (one.phase == "norm") return !KeepsReplicas(root.cause.kind);
  if (one.phase == "clipped") return root.phase == "clipped";
  if (IsOneOf(one.phase, {"updated", "state"})) return !one.law || root.phase != "parameter";
  return true;
}

}  // namespace

void MarkApart(ParityResult* result) {
  std::vector<const ParityFinding*> roots;
  std::set<std::string> wrong;  // tensors
  for (ParityFinding& one : result->findings) {
    const bool known = !one.name.empty() && !wrong.insert(TensorOf(one.name)).second;
    const auto causes = [&](const ParityFinding* root) { return CanCause(*result, *root, one); };
    const auto is_same = [&](const ParityFinding* root) { return SameFault(*root, one); };
    if (roots.empty()) {
      one.apart = false;
    } else if (one.apart) {  // who found it knows that it is not of the first one
      one.apart = std::none_of(roots.begin() + 1, roots.end(), is_same);
    } else {
      one.apart = !known && std::none_of(roots.begin(), roots.end(), causes);
    }
    if (roots.empty() || one.apart) roots.push_back(&one);
  }
}

}  // namespace msprobe
