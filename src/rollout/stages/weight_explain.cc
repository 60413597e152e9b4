#include "rollout/stages/weight_explain.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "rollout/stages/qkv_order.h"

namespace msprobe {
namespace {

constexpr int64_t kMostValues = int64_t{1} << 24;

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

/// What a part of a weight is called, and whether it is one thing.
struct RowsText {
  Message text;
  bool one = false;
};

RowsText TextOf(const HeadsText& heads, const std::optional<RowRange>& range, size_t differ, int64_t rows) {
  if (!heads.text.empty()) return {heads.text, heads.one};
  if (!range) return {Msg("{} of its {} rows", differ, rows)};
  if (differ == 1) return {Msg("row {} of {}", range->begin, rows), true};
  return {Msg("rows {} to {} of {}", range->begin, range->end - 1, rows)};
}

}  // namespace

WeightCause ExplainAlone(const WeightPair& pair, const WeightDiff& diff, int64_t head_dim) {
  if (!pair.same_shape) {
    return {"shape", Msg("its shape is {} for the trainer and {} for the engine", ShapeText(pair.a.shape),
                         ShapeText(pair.b.shape))};
  }
  if (diff.verdict == WeightVerdict::kNotNumbers)
    return {"not_numbers", Msg("it is NaN or infinite where the other side is not")};
  if (IsAllZero(pair.b)) return {"zeros", Msg("it is all zeros: nothing was written there")};
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

WeightCause ExplainPart(const WeightPair& pair, const ModelFacts& facts, const WeightTensor* earlier,
                        const Message& step) {
  if (!pair.same_shape) return {};
  const DType type = CoarserType(pair.a.dtype, pair.b.dtype);
  const WeightRows a = RowsOfWeight(pair.a, type), b = RowsOfWeight(pair.b, type);
  if (a.rows < 2 || a.rows != b.rows) return {};
  size_t equal = 0, old = 0;
  std::vector<int64_t> apart;
  const WeightRows before = earlier && earlier->shape == pair.a.shape ? RowsOfWeight(*earlier, type) : WeightRows{};
  for (size_t i = 0; i < a.hashes.size(); ++i) {
    equal += a.hashes[i] == b.hashes[i];
    if (a.hashes[i] != b.hashes[i]) apart.push_back(static_cast<int64_t>(i));
    old += a.hashes[i] != b.hashes[i] && before.rows == a.rows && before.hashes[i] == b.hashes[i];
  }
  if (equal == 0) return {};
  const size_t differ = a.hashes.size() - equal;
  const auto range = OnlyRange(a, b);
  const RowsText rows = TextOf(HeadsOfRows(facts, pair.a, apart), range, differ, a.rows);
  if (old == differ)
    return {"part_stale",
            rows.one ? Msg("{} is that of {}", rows.text, step) : Msg("{} are those of {}", rows.text, step)};
  const Message others = pair.a.dtype == pair.b.dtype ? Msg("bit-equal") : Msg("equal in {}", DTypeName(type));
  return {"part", rows.one ? Msg("{} differs, the others are {}", rows.text, others)
                           : Msg("{} differ, the others are {}", rows.text, others)};
}

Message EvidenceOf(const std::string& label, const WeightPair& pair, const WeightDiff& diff, const WeightCause& cause) {
  const Message says = cause.kind.empty() ? Msg("differs") : cause.sentence;
  if (pair.a.dtype == pair.b.dtype || !pair.same_shape)
    return Msg("{}: {}, {} of {} values equal", label, says, diff.equal, diff.count);
  // Between two types no value need be equal as it is stored.
  const DType type = CoarserType(pair.a.dtype, pair.b.dtype);
  const WeightRows a = RowsOfWeight(pair.a, type), b = RowsOfWeight(pair.b, type);
  size_t equal = 0;
  for (size_t i = 0; i < std::min(a.hashes.size(), b.hashes.size()); ++i) equal += a.hashes[i] == b.hashes[i];
  return Msg("{}: {}, {} of {} rows equal in {}", label, says, equal, a.rows, DTypeName(type));
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
