#include "weights/causes/row_order.h"

#include <set>
#include <unordered_map>

namespace msprobe {
namespace {

bool IsShift(const std::vector<int64_t>& order, int64_t by) {
  const auto n = static_cast<int64_t>(order.size());
  for (int64_t i = 0; i < n; ++i) {
    if (order[static_cast<size_t>(i)] != (i + by) % n) return false;
  }
  return true;
}

/// Whether blocks of so many rows are moved as wholes.
bool MovesBlocks(const std::vector<int64_t>& order, int64_t block) {
  const auto n = static_cast<int64_t>(order.size());
  if (block <= 1 || block >= n || n % block != 0) return false;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t first = order[static_cast<size_t>(i - i % block)];
    if (first % block != 0 || order[static_cast<size_t>(i)] != first + i % block) return false;
  }
  return true;
}

/// Rows of each head in pairs (0, 1, 2, ...) against halves (0, n/2, 1, ...), as two ways of rotary positions have
/// them.
bool IsInterleaved(const std::vector<int64_t>& order, int64_t head) {
  const auto n = static_cast<int64_t>(order.size());
  if (head < 4 || head % 2 != 0 || n % head != 0) return false;
  bool there = true, back = true;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t base = i - i % head, within = i % head;
    const int64_t paired = base + (within % 2) * (head / 2) + within / 2;
    there &= order[static_cast<size_t>(i)] == paired;
    back &= order[static_cast<size_t>(paired)] == i;
  }
  return there || back;
}

/// The row of `from` that each row of `to` is; empty where one is none of them.
std::vector<int64_t> PlacesIn(const WeightRows& from, const WeightRows& to) {
  if (from.rows != to.rows || from.rows < 2) return {};
  std::unordered_map<uint64_t, std::vector<int64_t>> places;
  for (size_t i = from.hashes.size(); i-- > 0;) places[from.hashes[i]].push_back(static_cast<int64_t>(i));
  std::vector<int64_t> out;
  for (const uint64_t hash : to.hashes) {
    const auto found = places.find(hash);
    if (found == places.end() || found->second.empty()) return {};
    out.push_back(found->second.back());
    found->second.pop_back();
  }
  return out;
}

}  // namespace

Message OrderOf(const WeightRows& from, const WeightRows& to, int64_t head_dim) {
  const std::vector<int64_t> order = PlacesIn(from, to);
  if (order.empty()) return {};
  const int64_t n = from.rows;
  if (n % 2 == 0 && IsShift(order, n / 2)) return Msg("its halves are exchanged");
  std::set<int64_t> heads{head_dim};
  for (const int64_t dim : {256, 192, 128, 96, 80, 64, 32, 16, 8, 4}) heads.insert(dim);
  for (auto head = heads.rbegin(); head != heads.rend(); ++head) {
    if (IsInterleaved(order, *head))
      return Msg("its rows are paired within heads of {} where halves are meant, or the other way round", *head);
  }
  if (head_dim > 1 && MovesBlocks(order, head_dim))
    return Msg("its heads are in another order (of {} rows each)", head_dim);
  for (int64_t block = n / 2; block > 1; --block) {
    if (MovesBlocks(order, block)) return Msg("its blocks of {} rows are in another order", block);
  }
  size_t moved = 0;
  for (size_t i = 0; i < order.size(); ++i) moved += order[i] != static_cast<int64_t>(i);
  return Msg("{} of its {} rows are in another order", moved, n);
}

}  // namespace msprobe
