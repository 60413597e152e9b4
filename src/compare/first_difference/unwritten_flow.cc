#include "compare/first_difference/unwritten_flow.h"

#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {

/// Values of both runs: a view or a copy has them, too, whatever its shape is.
std::string UnwrittenFlow::KeyOf(const OpDiff& op, size_t row) const {
  std::string out;
  for (const ItemView* item : {&op.target[row], &op.golden[static_cast<size_t>(op.rows[row].golden)]}) {
    for (const StatValue& stat : item->stats) {
      stat.AppendText(&out);
      out += ' ';
    }
    if (in_.pair.options.mode == CompareMode::kChecksum) out += item->checksum;
  }
  return out;
}

bool UnwrittenFlow::ReadsNothingElse(const OpDiff& op, bool* any, bool* first_is_clean) const {
  bool first = true;
  for (size_t i = 0; i < op.rows_used; ++i) {
    if (IsResult(op.target[i].state) || op.rows[i].golden == kNoItem || op.rows[i].golden_only) continue;
    const bool unwritten = IsUnwrittenInput(op, i);
    bool made = false;
    if (!unwritten && RowError(op, i, in_.pair.options.mode) > 0) {
      if (!made_.contains(KeyOf(op, i))) return false;
      made = true;
    }
    *any = *any || unwritten || made;
    if (first) *first_is_clean = !unwritten && !made;
    first = false;
  }
  return true;
}

void UnwrittenFlow::Note(size_t i, const OpDiff& op, bool first_is_clean) {
  const std::string_view name = in_.pair.target->ops().NameAt(i);
  bool differs = false;
  for (size_t row = 0; row < op.rows_used; ++row) {
    if (!IsResult(op.target[row].state) || op.rows[row].golden == kNoItem || op.rows[row].golden_only) continue;
    if (RowError(op, row, in_.pair.options.mode) == 0) continue;
    made_.insert(KeyOf(op, row));
    differs = true;
  }
  if (!differs) return;
  ops_.Insert(name);
  if (first_ == SIZE_MAX) first_ = i;
  const bool backward = ParseOpName(name).direction != OpDirection::kForward;
  matters_ = matters_ || backward || IsModuleName(name) || (first_is_clean && ChangesArguments(ApiOf(name)));
}

StatusOr<bool> UnwrittenFlow::Explains(size_t i) {
  const OpDistance& d = in_.distances[i];
  if ((!d.unwritten && made_.empty()) || d.argument || d.shapes) return false;
  const NameParts name = ParseOpName(in_.pair.target->ops().NameAt(i));
  if (name.direction == OpDirection::kBackward && ops_.Has(ForwardNameOf(name))) return matters_ = true;
  JsonDoc target, golden;
  OpDiff op;
  MSP_RETURN_IF_ERROR(in_.pair.target->ParseOp(i, &target));
  MSP_RETURN_IF_ERROR(in_.pair.golden->ParseOp(in_.plan.golden_of[i], &golden));
  DiffOps(name.full, target, in_.pair.golden->ops().NameAt(in_.plan.golden_of[i]), &golden, in_.pair.options, &op);
  bool any = false, first_is_clean = false;
  if (!ReadsNothingElse(op, &any, &first_is_clean) || !any) return false;
  Note(i, op, first_is_clean);
  return true;
}

}  // namespace msprobe
