#include "weights/fingerprint/moved_rows.h"

#include <algorithm>

namespace msprobe {
namespace {

constexpr size_t kMostMoved = 8;

/// Vectors are looked for as a whole: their elements alone are everywhere.
bool IsVector(const WholePrint& w) { return w.size.columns == 1; }

uint64_t HashOfAll(const std::vector<uint64_t>& hashes) {
  uint64_t out = hashes.size();
  for (const uint64_t hash : hashes) out = (out ^ hash) * 0x9fb21c651e98df25u + (out >> 29);
  return out;
}

bool IsConstant(const WholePrint& w) {
  return std::all_of(w.hashes.begin(), w.hashes.end(), [&](uint64_t hash) { return hash == w.hashes[0]; });
}

}  // namespace

RowIndex::RowIndex(const WholeModel& model) : model_(model) {
  for (size_t i = 0; i < model.weights.size(); ++i) {
    const WholePrint& w = model.weights[i];
    const auto weight = static_cast<uint32_t>(i);
    if (IsVector(w)) {
      if (w.complete() && !w.hashes.empty() && !IsConstant(w)) vectors_.emplace(HashOfAll(w.hashes), weight);
      continue;
    }
    for (size_t r = 0; r < w.hashes.size(); ++r) {
      if (w.seen[r]) rows_.emplace(w.hashes[r], Place{weight, static_cast<uint32_t>(r)});
    }
  }
}

std::vector<MovedRows> RowIndex::FindVector(const WholePrint& b, const WholePrint* own) const {
  if (!b.complete()) return {};
  const auto found = vectors_.find(HashOfAll(b.hashes));
  if (found == vectors_.end() || &model_.weights[found->second] == own) return {};
  return {{{0, b.size.rows}, model_.weights[found->second].head.label(), 0}};
}

std::vector<MovedRows> RowIndex::Find(const WholePrint& b, const WholePrint* own,
                                      const std::vector<int64_t>& differ) const {
  if (b.hashes.empty()) return {};
  if (IsVector(b)) return FindVector(b, own);
  std::unordered_map<uint64_t, int64_t> in_own;
  if (own) {
    for (size_t r = 0; r < own->hashes.size(); ++r) {
      if (own->seen[r]) in_own.emplace(own->hashes[r], static_cast<int64_t>(r));
    }
  }
  struct Target {
    int64_t row;
    const WholePrint* weight;
    int64_t from;
  };
  std::vector<Target> targets;
  for (const int64_t row : differ) {
    const uint64_t hash = b.hashes[static_cast<size_t>(row)];
    const auto here = in_own.find(hash);
    const auto elsewhere = rows_.find(hash);
    if (own && here != in_own.end()) {
      targets.push_back({row, own, here->second});
    } else if (elsewhere != rows_.end()) {
      targets.push_back({row, &model_.weights[elsewhere->second.weight], elsewhere->second.row});
    } else {
      continue;
    }
  }
  if (2 * targets.size() < differ.size()) return {};
  std::vector<MovedRows> out;
  const WholePrint* last = nullptr;
  for (const Target& t : targets) {
    if (t.weight == nullptr) continue;
    MovedRows* run = out.empty() ? nullptr : &out.back();
    const bool goes_on = run && last == t.weight && run->rows.end == t.row &&
                         run->from_row + (run->rows.end - run->rows.begin) == t.from;
    if (goes_on) {
      ++run->rows.end;
      continue;
    }
    if (out.size() == kMostMoved) break;
    out.push_back({{t.row, t.row + 1}, t.weight->head.label(), t.from});
    last = t.weight;
  }
  return out;
}

}  // namespace msprobe
