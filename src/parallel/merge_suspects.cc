#include "parallel/merge_suspects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "base/text.h"
#include "compare/round_off/ruler.h"

namespace msprobe {
namespace {

constexpr double kAgrees = 0.5;  // percent, between the statistics of what went in
constexpr double kSame = 1e-5;   // relative, of an extreme that two runs share

StatNumber NumberOf(const StatValue& v) {
  StatNumber out;
  if (v.IsNumber()) out.kind = StatNumber::Kind::kDouble, out.d = v.AsDouble();
  return out;
}

bool InputsAgree(const OpDiff& op) {
  for (size_t i = 0; i < op.rows_used; ++i) {
    const DiffRow& row = op.rows[i];
    if (op.target[i].state == ItemState::kOutput) continue;
    if (row.verdict != Verdict::kPass) return false;
    for (const Stat k : {kMax, kMin, kNorm}) {  // norms alone do not tell normalized tensors apart
      const StatDiff& d = row.diff[k];
      if (d.rel_cell == StatDiff::Cell::kNumber && !(d.rel <= kAgrees)) return false;
    }
  }
  return true;
}

bool Near(const StatNumber& a, const StatNumber& b) {
  return a.given() && b.given() && std::fabs(a.value() - b.value()) <= kSame * std::fabs(b.value());
}

/// Another part than the suspect's, and not the suspect's too, holds the largest or smallest value of the golden
/// tensor.
bool OthersConfirmed(const MergedLeaf& leaf, const TensorStats& golden, int suspect) {
  for (const auto extreme : {&TensorStats::max, &TensorStats::min}) {
    bool other = false, own = false;
    for (size_t i = 0; i < leaf.parts.size(); ++i) {
      if (Near(leaf.parts[i].*extreme, golden.*extreme)) (leaf.ranks[i] == suspect ? own : other) = true;
    }
    if (other && !own) return true;
  }
  return false;
}

}  // namespace

MergeFinding FindSuspect(const MergeNotes& notes, const OpDiff& op) {
  MergeFinding out;
  const bool made_here = InputsAgree(op);
  const double tolerance = OpTolerance(op);
  for (size_t i = 0; i < op.rows_used; ++i) {
    const DiffRow& row = op.rows[i];
    if (row.verdict == Verdict::kPass || row.golden == kNoItem) continue;
    // The old rule also warns of sums in another order.
    if (RowDistance(op, i, CompareMode::kStatistics, tolerance) <= 1) continue;
    const ItemView& item = op.target[i];
    const auto& golden_stats = op.golden[static_cast<size_t>(row.golden)].stats;
    for (const MergedLeaf& leaf : notes.leaves) {
      if (leaf.alone || item.other_part || !EndsWith(item.name, leaf.suffix)) continue;
      const TensorStats golden{NumberOf(golden_stats[kMax]), NumberOf(golden_stats[kMin]),
                               NumberOf(golden_stats[kMean]), NumberOf(golden_stats[kNorm]), leaf.Elements()};
      std::vector<int> ranks = MergedData::Suspects(leaf, golden);
      const bool counts = made_here && item.state == ItemState::kOutput;
      if (ranks.empty() || (!counts && !OthersConfirmed(leaf, golden, ranks[0]))) continue;
      out.kind = FindingKind::kSuspectRank;
      out.node = op.op;
      out.tensor = leaf.suffix.substr(1);
      out.text = Msg("{}: the part of rank {} stands out", out.tensor, fmt::format("{}", fmt::join(ranks, ", ")));
      out.ranks = std::move(ranks);
      return out;
    }
  }
  return out;
}

}  // namespace msprobe
