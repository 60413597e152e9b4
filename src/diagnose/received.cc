#include "diagnose/received.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "base/page_trim.h"
#include "base/parallel.h"
#include "compare/describe/item_difference.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr size_t kMostLookedAt = 20000;  // ops of a rank that differ

/// Of the item in which the difference came; "" where it could be anything.
StatusOr<std::string> LooksOfItem(const std::string& path, const FirstDifference& d) {
  MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(path));
  ItemViews items(dump, CompareMode::kStatistics);
  MSP_RETURN_IF_ERROR(items.Read(d.op));
  for (const ItemView& item : items.items()) {
    if (item.suffix == d.item) return LooksOf(item);
  }
  return std::string();
}

using Wanted = std::unordered_map<std::string, std::vector<size_t>>;  // positions of the ranks that ask

/// The ranks that ask for what modules of this one gave, behind its own difference.
StatusOr<std::vector<size_t>> TakersOfRank(const RankValues& rank, const Wanted& wanted) {
  std::vector<size_t> out;
  MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(rank.dump));
  ItemViews items(dump, CompareMode::kStatistics);
  size_t seen = 0;
  const size_t end = std::min(rank.marks->size(), dump.ops().size());
  for (size_t i = rank.answer->op; i < end && seen < kMostLookedAt; ++i) {
    if (!((*rank.marks)[i] & rank.ends_apart) || !IsModuleName(dump.ops().NameAt(i))) continue;
    if (++seen % kStepsBetweenTrims == 0) TrimMaps();
    MSP_RETURN_IF_ERROR(items.Read(i));
    for (const ItemView& item : items.items()) {
      const auto found = item.state == ItemState::kOutput ? wanted.find(LooksOf(item)) : wanted.end();
      if (found != wanted.end()) out.insert(out.end(), found->second.begin(), found->second.end());
    }
  }
  return out;
}

}  // namespace

StatusOr<std::vector<size_t>> GiversOfValues(const std::vector<RankValues>& ranks) {
  std::vector<size_t> out(ranks.size(), SIZE_MAX);
  std::vector<std::string> looks(ranks.size());
  MSP_RETURN_IF_ERROR(ParallelFor(ranks.size(), [&](size_t r) -> Status {
    if (!ranks[r].asks || ranks[r].dump.empty()) return OkStatus();  // kernels have no such file
    MSP_ASSIGN_OR_RETURN(looks[r], LooksOfItem(ranks[r].dump, *ranks[r].answer));
    return OkStatus();
  }));
  Wanted wanted;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (!looks[r].empty()) wanted[looks[r]].push_back(r);
  }
  if (wanted.empty()) return out;
  std::vector<std::vector<bool>> gives(ranks.size(), std::vector<bool>(ranks.size()));
  MSP_RETURN_IF_ERROR(ParallelFor(ranks.size(), [&](size_t r) -> Status {
    if (ranks[r].answer->kind == FirstDifference::Kind::kNone || ranks[r].dump.empty()) return OkStatus();
    MSP_ASSIGN_OR_RETURN(const std::vector<size_t> takers, TakersOfRank(ranks[r], wanted));
    for (const size_t taker : takers) gives[r][taker] = true;
    return OkStatus();
  }));
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (size_t r = 0; r < ranks.size() && out[i] == SIZE_MAX; ++r) {
      if (r != i && gives[r][i] && !gives[i][r]) out[i] = r;
    }
  }
  return out;
}

}  // namespace msprobe
