#include "parallel/expert_shares.h"

#include <algorithm>
#include <vector>

#include "base/message.h"
#include "parallel/layer_number.h"
#include "parallel/merge_stats.h"

namespace msprobe {
namespace {

constexpr size_t kMostLookedAt = 32;  // modules of experts: in one of them a weight may be wrong

using Weights = std::vector<TensorStats>;

bool IsOfExpert(const MergePool& pool, uint32_t node) {
  LayerNumber number;
  const PoolNode& n = pool[node];
  return n.op != kNoIndex && n.type == NodeType::kModule && IsForward(n.was) && FindExpertNumber(n.was, "", &number);
}

StatusOr<Weights> WeightsOf(const MergePool& pool, uint32_t node) {
  Weights out;
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(pool.ReadOp(node, &doc));
  const JsonValue* parameters = doc.IsObject() ? doc.Find("parameters") : nullptr;
  if (!parameters || !parameters->IsObject()) return out;
  for (const auto& member : parameters->Members()) {
    if (member.value.IsObject()) out.push_back(TensorStats::Of(member.value));
  }
  return out;
}

/// The share of each cell, in the order of the cells that have one first; empty where not all shares have equally many.
std::vector<size_t> Divide(const std::vector<Weights>& cells, size_t shares) {
  std::vector<const Weights*> known;
  std::vector<size_t> out, count;
  for (const Weights& cell : cells) {
    const auto found = std::ranges::find_if(known, [&](const Weights* other) {
      return std::ranges::equal(cell, *other, [](const auto& a, const auto& b) { return SameStats(a, b); });
    });
    const auto share = static_cast<size_t>(found - known.begin());
    if (found == known.end()) {
      known.push_back(&cell);
      count.push_back(0);
    }
    ++count[share];
    out.push_back(share);
  }
  const bool even =
      count.size() == shares && std::ranges::all_of(count, [&](size_t n) { return n == cells.size() / shares; });
  return even ? out : std::vector<size_t>();
}

/// What each rank of a stage has as weights of an expert, for the first modules of experts; `take` returns false to
/// stop.
template <typename Take>
Status ForExperts(const MergePool& pool, const Take& take) {
  size_t looked = 0;
  for (size_t stage = 0; stage < pool.Stages(); ++stage) {
    const uint32_t first = pool.At(stage, 0);
    const size_t nodes = pool.Graph(first).graph.nodes.size();
    for (uint32_t i = 0; i < nodes && looked < kMostLookedAt; ++i) {
      const uint32_t node = pool.Root(first) + i;
      if (!IsOfExpert(pool, node)) continue;
      std::vector<Weights> weights;
      for (size_t cell = 0; cell < pool.Cells(); ++cell) {
        const uint32_t peer = pool.Find(pool.At(stage, cell), pool[node].was);
        if (peer == kNoIndex || pool[peer].op == kNoIndex) break;
        MSP_ASSIGN_OR_RETURN(Weights of_cell, WeightsOf(pool, peer));
        if (of_cell.empty()) break;
        weights.push_back(std::move(of_cell));
      }
      if (weights.size() < pool.Cells()) continue;
      ++looked;
      if (!take(std::move(weights))) return OkStatus();
    }
  }
  return OkStatus();
}

size_t Distinct(const std::vector<Weights>& cells) {
  std::vector<const Weights*> known;
  for (const Weights& cell : cells) {
    const bool is_new = std::ranges::none_of(known, [&](const Weights* other) {
      return std::ranges::equal(cell, *other, [](const auto& a, const auto& b) { return SameStats(a, b); });
    });
    if (is_new) known.push_back(&cell);
  }
  return known.size();
}

}  // namespace

Status CheckExpertParts(const MergePool& pool) {
  const size_t shares = pool.Shares(), cut = shares * static_cast<size_t>(pool.settings().tp);
  if (pool.Cells() < 2) return OkStatus();
  std::vector<size_t> found;
  MSP_RETURN_IF_ERROR(ForExperts(pool, [&](const std::vector<Weights>& weights) {
    found.push_back(Distinct(weights));
    return true;
  }));
  // Of some experts a weight may be wrong on one rank, or may not be set yet.
  const bool known = std::ranges::any_of(found, [&](size_t n) { return n <= shares || n == cut; });
  if (found.empty() || known || !std::ranges::all_of(found, [&](size_t n) { return n == found[0]; })) return OkStatus();
  return BadInput(
      Msg("{}: each expert lies in {} parts, neither 1 nor --tp {}: compare runs whose expert_tensor_parallel_size is "
          "one of them",
          pool.Graph(0).files.dir, found[0] / shares, pool.settings().tp));
}

Status PlaceSharesByWeights(MergePool* pool) {
  const size_t shares = pool->Shares(), cells = pool->Cells();
  if (shares < 2 || cells <= shares || pool->SharesApart()) return OkStatus();
  return ForExperts(*pool, [&](const std::vector<Weights>& weights) {
    std::vector<size_t> found = Divide(weights, shares);
    if (found.empty()) return true;
    pool->PlaceShares(std::move(found));
    return false;
  });
}

}  // namespace msprobe
