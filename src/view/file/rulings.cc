#include "view/file/rulings.h"

#include "view/file/file_rows.h"

namespace msprobe::view {

RulerVerdict RulerVerdictOf(std::string_view text) {
  for (const RulerVerdict verdict : {RulerVerdict::kInherited, RulerVerdict::kBitEqual, RulerVerdict::kRoundOff,
                                     RulerVerdict::kRewritten, RulerVerdict::kSuspicious, RulerVerdict::kBug}) {
    if (text == RulerVerdictText(verdict)) return verdict;
  }
  return RulerVerdict::kNone;
}

Status LoadRulings(const VisFile& file, Tree* tree) {
  if (!file.config().verdicts || tree->empty()) return OkStatus();
  const int64_t first = (*tree)[0].rowid;
  const RowQuery query{"msprobe_precision", "node", {"verdict"}, first, Tree::Behind(first, tree->size() - 1)};
  return ReadRows(file, query, [tree](const SqlRow& row) {
    const uint32_t node = tree->AtRow(row.id);
    if (node != kNoNode) tree->SetRuling(node, RulerVerdictOf(row.values[0].text));
    return OkStatus();
  });
}

RulerCounts CountRulings(const Tree& tree) {
  RulerCounts counts;
  for (uint32_t i = 0; i < tree.size(); ++i) {
    if (tree.Type(i) != kCollection && tree.IsMatched(i)) counts.Add(tree.RulingOf(i));
  }
  return counts;
}

}  // namespace msprobe::view
