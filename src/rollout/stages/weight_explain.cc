#include "rollout/stages/weight_explain.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

namespace msprobe {
namespace {

constexpr int64_t kMostValues = int64_t{1} << 24;

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

bool AllZero(const WeightTensor& tensor) {
  const std::vector<double> values = ValuesOfWeight(tensor, kMostValues);
  return !values.empty() && std::all_of(values.begin(), values.end(), [](double v) { return v == 0; });
}

/// A run of rows.
struct RowRange {
  int64_t begin = 0, end = 0;
};

/// The only run of rows that differ; nothing where there are several.
std::optional<RowRange> OnlyRange(const WeightRows& a, const WeightRows& b) {
  RowRange out{a.rows, 0};
  int64_t differ = 0;
  for (int64_t i = 0; i < a.rows; ++i) {
    if (a.hashes[static_cast<size_t>(i)] == b.hashes[static_cast<size_t>(i)]) continue;
    out.begin = std::min(out.begin, i);
    out.end = i + 1;
    ++differ;
  }
  if (differ == 0 || differ != out.end - out.begin) return std::nullopt;
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

WeightCause ExplainAlone(const WeightPair& pair, const WeightDiff& diff, int64_t head_dim) {
  if (!pair.same_shape) {
    return {"shape", Msg("its shape is {} for the trainer and {} for the engine", ShapeText(pair.a.shape),
                         ShapeText(pair.b.shape))};
  }
  if (diff.verdict == WeightVerdict::kNotNumbers)
    return {"not_numbers", Msg("it is NaN or infinite where the other side is not")};
  if (AllZero(pair.b)) return {"zeros", Msg("it is all zeros: nothing was written there")};
  const DType type = CoarserType(pair.a.dtype, pair.b.dtype);
  if (const Message order = OrderOf(RowsOfWeight(pair.a, type), RowsOfWeight(pair.b, type), head_dim); !order.empty())
    return {"exchanged_rows", order};
  if (pair.a.shape.size() >= 2) {
    const WeightRows a = ColumnsOfWeight(pair.a, type), b = ColumnsOfWeight(pair.b, type);
    if (const Message order = a.rows > 0 ? OrderOf(a, b, head_dim) : Message(); !order.empty())
      return {"exchanged_columns", Msg("of its columns: {}", order)};
  }
  constexpr double kSameDirection = 1e-6, kOtherLength = 0.01;
  if (diff.cosine && diff.norm_a > 0 && std::fabs(std::fabs(*diff.cosine) - 1) < kSameDirection &&
      (std::fabs(diff.norm_b / diff.norm_a - 1) > kOtherLength || *diff.cosine < 0)) {
    return {"scaled", Msg("it is {:.6g} times the trainer's", std::copysign(diff.norm_b / diff.norm_a, *diff.cosine))};
  }
  return {};
}

WeightCause ExplainPart(const WeightPair& pair, const WeightTensor* earlier, const Message& step) {
  if (!pair.same_shape) return {};
  const DType type = CoarserType(pair.a.dtype, pair.b.dtype);
  const WeightRows a = RowsOfWeight(pair.a, type), b = RowsOfWeight(pair.b, type);
  if (a.rows < 2 || a.rows != b.rows) return {};
  size_t equal = 0, old = 0;
  const WeightRows before = earlier && earlier->shape == pair.a.shape ? RowsOfWeight(*earlier, type) : WeightRows{};
  for (size_t i = 0; i < a.hashes.size(); ++i) {
    equal += a.hashes[i] == b.hashes[i];
    old += a.hashes[i] != b.hashes[i] && before.rows == a.rows && before.hashes[i] == b.hashes[i];
  }
  if (equal == 0) return {};
  const size_t differ = a.hashes.size() - equal;
  const auto range = OnlyRange(a, b);
  const Message rows = range ? Msg("rows {} to {} of {}", range->begin, range->end - 1, a.rows)
                             : Msg("{} of its {} rows", differ, a.rows);
  if (old == differ) return {"part_stale", Msg("{} are those of {}", rows, step)};
  return {"part", Msg("{} differ, the others are bit-equal", rows)};
}

bool LooksQuantised(const WeightTensor& tensor) {
  constexpr int64_t kFewestValues = 256;
  constexpr size_t kMostLevels = 256;
  constexpr double kOffGrid = 0.02;
  if (tensor.shape.size() < 2) return false;
  const std::vector<double> values = ValuesOfWeight(tensor, kMostValues);
  if (static_cast<int64_t>(values.size()) < kFewestValues) return false;
  std::set<double> levels;
  for (size_t i = 0; i < values.size() && levels.size() <= kMostLevels; ++i) levels.insert(values[i]);
  if (levels.size() <= kMostLevels && static_cast<int64_t>(values.size()) >= 16 * kFewestValues) return true;
  const auto columns = static_cast<size_t>(tensor.shape.back());
  for (const double steps : {7.0, 127.0}) {
    bool on_grid = true;
    for (size_t row = 0; row < values.size() && on_grid; row += columns) {
      double most = 0;
      for (size_t i = row; i < row + columns; ++i) most = std::max(most, std::fabs(values[i]));
      for (size_t i = row; i < row + columns && on_grid && most > 0; ++i) {
        const double level = values[i] / most * steps;
        // The level itself was rounded to the type of the tensor.
        on_grid = std::fabs(level - std::round(level)) <= kOffGrid + std::fabs(level) / 480;
      }
    }
    if (on_grid && columns >= 16) return true;
  }
  return false;
}

bool IsMerged(const WeightPair& pair, const WeightTensor& lora_a, const WeightTensor& lora_b) {
  constexpr double kOther = 0.05, kRounding = 1.0 / 256;
  if (!pair.same_shape || pair.a.shape.size() != 2 || lora_a.shape.size() != 2 || lora_b.shape.size() != 2)
    return false;
  const int64_t out = pair.a.shape[0], in = pair.a.shape[1], rank = lora_a.shape[0];
  if (lora_a.shape[1] != in || lora_b.shape[0] != out || lora_b.shape[1] != rank) return false;
  const std::vector<double> before = ValuesOfWeight(pair.a, kMostValues), after = ValuesOfWeight(pair.b, kMostValues);
  const std::vector<double> down = ValuesOfWeight(lora_a, kMostValues), up = ValuesOfWeight(lora_b, kMostValues);
  if (before.empty() || after.empty() || down.empty() || up.empty()) return false;
  double dp = 0, pp = 0, dd = 0, squares = 0;
  for (int64_t r = 0; r < out; ++r) {
    std::vector<double> product(static_cast<size_t>(in));
    for (int64_t k = 0; k < rank; ++k) {
      const double factor = up[static_cast<size_t>(r * rank + k)];
      for (int64_t c = 0; c < in; ++c)
        product[static_cast<size_t>(c)] += factor * down[static_cast<size_t>(k * in + c)];
    }
    for (int64_t c = 0; c < in; ++c) {
      const auto at = static_cast<size_t>(r * in + c);
      const double d = after[at] - before[at], p = product[static_cast<size_t>(c)];
      dp += d * p;
      pp += p * p;
      dd += d * d;
      squares += after[at] * after[at];
    }
  }
  if (pp == 0 || dp <= 0) return false;
  const double left = std::max(0.0, dd - dp * dp / pp);
  return left <= kOther * kOther * dd || (left <= kRounding * kRounding * squares && left <= dd / 4);
}

}  // namespace msprobe
