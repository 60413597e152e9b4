#include "compare/pair/assigned_values.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compare/pair/op_at.h"
#include "compare/round_off/ruler.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr size_t kNear = 64;  // ops

bool IsInput(const ItemView& item) { return item.state == ItemState::kInput || item.state == ItemState::kKwarg; }

bool Differs(const OpDiff& diff, size_t row, CompareMode mode) {
  return diff.target[row].tensor && diff.rows[row].golden != kNoItem &&
         RowDistance(diff, row, mode, OpTolerance(diff)) > 1;
}

/// Of the tensors that differ as they come in.
StatusOr<std::vector<std::string>> ShapesOf(const DumpPair& pair, const MatchPlan& plan, size_t op) {
  std::vector<std::string> out;
  JsonDoc target, golden;
  OpDiff diff;
  MSP_RETURN_IF_ERROR(DiffOpWith(pair, op, plan.golden_of[op], &target, &golden, &diff));
  for (size_t i = 0; i < diff.rows_used; ++i) {
    if (IsInput(diff.target[i]) && Differs(diff, i, pair.options.mode)) out.push_back(diff.target[i].shape);
  }
  return out;
}

}  // namespace

StatusOr<std::optional<Assignment>> AssignedBefore(const DumpPair& pair, const MatchPlan& plan, size_t op) {
  constexpr std::string_view kInto = ".input.0", kValue = ".input.2";
  std::optional<Assignment> out;
  if (plan.cross || plan.golden_of[op] == kNoOp) return out;
  std::vector<std::string> shapes;
  JsonDoc target, golden;
  OpDiff diff;
  for (size_t i = op; i-- > 0 && op - i <= kNear;) {
    if (ApiOf(pair.target->ops().NameAt(i)) != "__setitem__" || plan.golden_of[i] == kNoOp) continue;
    if (shapes.empty()) {
      MSP_ASSIGN_OR_RETURN(shapes, ShapesOf(pair, plan, op));
      if (shapes.empty()) return out;
    }
    MSP_RETURN_IF_ERROR(DiffOpWith(pair, i, plan.golden_of[i], &target, &golden, &diff));
    bool into = false, value = false;
    for (size_t row = 0; row < diff.rows_used; ++row) {
      const ItemView& item = diff.target[row];
      const bool differs = Differs(diff, row, pair.options.mode);
      if (item.suffix == kInto) into = !differs && std::ranges::find(shapes, item.shape) != shapes.end();
      if (item.suffix == kValue) value = differs;
    }
    if (into && value) out = Assignment{i, std::string(kValue)};
  }
  return out;
}

}  // namespace msprobe
