#include "graph/merge_suspects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.h"

namespace msprobe {
namespace {

constexpr double kAgrees = 0.5;  // percent, between the statistics of what went in
constexpr double kSame = 1e-5;   // relative, of an extreme that two runs share

StatNumber NumberOf(const Value& v) {
  StatNumber out;
  if (v.is_number()) out.kind = StatNumber::Kind::kDouble, out.d = v.AsDouble();
  return out;
}

bool InputsAgree(const std::vector<Row>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) {
    if (row.npu->is_output()) return true;
    const Difference* all[] = {&row.max, &row.min, &row.norm};  // norms alone do not tell normalized tensors apart
    return row.level == Level::kPass && std::all_of(std::begin(all), std::end(all), [](const Difference* d) {
             return !d->relative.is_number() || d->relative.AsDouble() <= kAgrees;
           });
  });
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

MergeFinding FindSuspect(std::string_view node, const MergeNotes& notes, const std::vector<Row>& rows) {
  MergeFinding out;
  const bool made_here = InputsAgree(rows);
  for (const Row& row : rows) {
    if (row.level == Level::kPass || !row.bench) continue;
    for (const MergedLeaf& leaf : notes.leaves) {
      if (!EndsWith(row.npu->name, leaf.suffix)) continue;
      const TensorStats golden{NumberOf(row.bench->max), NumberOf(row.bench->min), NumberOf(row.bench->mean),
                               NumberOf(row.bench->norm), leaf.Elements()};
      std::vector<int> ranks = MergedData::Suspects(leaf, golden);
      const bool counts = made_here && row.npu->is_output();
      if (ranks.empty() || (!counts && !OthersConfirmed(leaf, golden, ranks[0]))) continue;
      out.kind = "suspect_rank";
      out.node = node;
      out.tensor = leaf.suffix.substr(1);
      out.text = fmt::format("{}: the part of rank {} stands out", out.tensor, fmt::join(ranks, ", "));
      out.ranks = std::move(ranks);
      return out;
    }
  }
  return out;
}

}  // namespace msprobe
