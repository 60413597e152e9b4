#include "compare/first_difference/other_form.h"

#include <algorithm>

#include "compare/pair/op_at.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

bool IsParameter(const ItemView& item) { return item.state == ItemState::kParameter; }

/// Whether one side has a parameter that the other lacks, or that is of another shape there.
bool HoldOthers(const OpDiff& diff) {
  for (size_t i = 0; i < diff.rows_used; ++i) {
    if (!IsParameter(diff.target[i])) continue;
    const int g = diff.rows[i].golden;
    if (g == kNoItem || diff.target[i].shape != diff.golden[static_cast<size_t>(g)].shape) return true;
  }
  for (size_t g = 0; g < diff.golden_used; ++g) {
    if (IsParameter(diff.golden[g]) && !diff.golden_taken[g]) return true;
  }
  return false;
}

/// "Module.a.b." of "Module.a.b.Linear".
std::string_view WithoutClass(std::string_view base) {
  const size_t dot = base.rfind('.');
  return dot == std::string_view::npos ? base : base.substr(0, dot + 1);
}

/// The coarsest of the dtypes of the parameters that the module holds, itself or in what it calls, as what rounding
/// explains in it; 0: none, or some are no floats.
StatusOr<double> PrecisionOf(const DumpFile& dump, size_t module, const Thresholds& thresholds) {
  constexpr size_t kMostInside = 64;  // ops of such a module, which come in front of it
  const std::string_view path = WithoutClass(ParseOpName(dump.ops().NameAt(module)).base);
  ItemViews items(dump, CompareMode::kStructure);
  double out = 0;
  for (size_t i = module + 1, seen = 0; i-- > 0 && seen < kMostInside; ++seen) {
    const std::string_view name = dump.ops().NameAt(i);
    if (!IsModuleName(name)) continue;
    if (!name.starts_with(path)) break;
    MSP_RETURN_IF_ERROR(items.Read(i));
    for (const ItemView& item : items.items()) {
      if (!IsParameter(item)) continue;
      const double tolerance = DTypeTolerance(thresholds, item.dtype);
      if (tolerance == 0) return 0.0;
      out = std::max(out, tolerance);
    }
  }
  return out;
}

/// Whether both hold floats of one dtype: only then the form makes no other precision.
StatusOr<bool> IsOfOnePrecision(const DumpPair& pair, size_t op, uint32_t partner) {
  MSP_ASSIGN_OR_RETURN(const double ours, PrecisionOf(*pair.target, op, *pair.options.thresholds));
  MSP_ASSIGN_OR_RETURN(const double theirs, PrecisionOf(*pair.golden, partner, *pair.options.thresholds));
  return ours > 0 && ours == theirs;
}

}  // namespace

StatusOr<OtherForms> LeaveOutOtherForms(const DumpPair& pair, const MatchPlan& plan, OpDistances* distances) {
  OtherForms out;
  if (plan.cross || plan.fused) return out;
  TextIds paths;  // of such modules
  const OpList &ops = pair.target->ops(), &golden_ops = pair.golden->ops();
  JsonDoc target, golden;
  OpDiff diff;
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string_view name = ops.NameAt(i);
    const uint32_t g = plan.golden_of[i];
    if (g == kNoOp || !IsModuleName(name) || ApiOrClassOf(name) == ApiOrClassOf(golden_ops.NameAt(g))) continue;
    const NameParts parts = ParseOpName(name);
    if (parts.direction == OpDirection::kForward) {
      MSP_RETURN_IF_ERROR(DiffOpWith(pair, i, g, &target, &golden, &diff));
      if (!HoldOthers(diff)) continue;
      if (out.modules == 0) out.first = name;
      out.modules += paths.Insert(parts.base);
      MSP_ASSIGN_OR_RETURN(const bool one_precision, IsOfOnePrecision(pair, i, g));
      if (one_precision) diff.golden_op = {};  // nothing allows more than rounding
      const auto counts = [&](size_t row) { return !IsParameter(diff.target[row]); };
      if ((*distances)[i].matched) (*distances)[i] = DistanceOf(diff, pair.options.mode, counts);
    }
    if (!paths.Has(parts.base)) continue;
    out.calls.Insert(name);
    out.calls.Insert(golden_ops.NameAt(g));
  }
  return out;
}

void AddOtherCalls(const DumpPair& pair, const MatchPlan& plan, const OpDistances& distances, const ModuleTree& target,
                   TextIds* calls) {
  if (std::ranges::none_of(distances, &OpDistance::other_call)) return;
  const OpList &ops = pair.target->ops(), &golden_ops = pair.golden->ops();
  TextIds around;  // modules that have a partner
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string_view name = ops.NameAt(i);
    if (plan.golden_of[i] == kNoOp || !IsModuleName(name)) continue;
    target.ForEachAround(name, [&](std::string_view module) { return around.Insert(module); });
  }
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string_view name = ops.NameAt(i);
    if (plan.golden_of[i] == kNoOp || !distances[i].other_call || around.Has(name)) continue;
    calls->Insert(name);
    calls->Insert(golden_ops.NameAt(plan.golden_of[i]));
  }
}

}  // namespace msprobe
