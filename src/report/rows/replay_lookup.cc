#include "report/rows/replay_lookup.h"

#include <fmt/core.h>

#include <cmath>

#include "sheet/cell.h"

namespace msprobe {

namespace {
std::string ErrorText(double error) { return std::isfinite(error) ? fmt::format("{:.3g}", error) : " inf"; }
}  // namespace

ReplayLookup::ReplayLookup(const std::vector<ReplayedOp>* replays, const std::string& target_dump) {
  if (!replays) return;
  for (const ReplayedOp& op : *replays) {
    if (op.target_dump == target_dump) ops_.emplace(op.name, &op);
  }
}

ReplayCells ReplayLookup::Cells(const OpDiff& op, size_t row) const {
  ReplayCells out;
  out.fill(std::string(kNotAvailableCell));
  const auto it = ops_.find(op.op);
  const ItemView& item = op.target[row];
  if (it == ops_.end() || op.rows[row].golden_only || item.state != ItemState::kOutput) return out;
  if (it->second->items.empty()) out[0] = ReplayVerdictText(it->second->verdict);
  for (const ReplayedItem& replayed : it->second->items) {
    if (item.suffix != "." + replayed.item) continue;
    out[0] = ReplayVerdictText(replayed.verdict);
    out[1] = ErrorText(replayed.target.error);
    out[2] = ErrorText(replayed.golden.error);
  }
  return out;
}

}  // namespace msprobe
