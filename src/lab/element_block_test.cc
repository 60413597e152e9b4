#include "lab/element_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "lab/check_process.h"
#include "lab/element_bound.h"

namespace msprobe {
namespace {

struct Numbers {
  std::vector<float> ours, bounds;
  std::vector<double> truth;
};

/// `special`: a few zeros, subnormal and infinite numbers and NaN among them.
Numbers DrawnNumbers(size_t count, bool special, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Numbers out;
  for (size_t i = 0; i < count; ++i) {
    double truth = normal(random) * std::ldexp(1.0, static_cast<int>(random() % 40) - 20);
    auto ours = static_cast<float>(truth * (1 + normal(random) * 1e-7));
    if (special && random() % 200 == 0) truth = random() % 2 ? 0 : 1e-41;
    if (special && random() % 900 == 0) truth = random() % 2 ? INFINITY : NAN;
    if (special && random() % 900 == 0) ours = random() % 2 ? INFINITY : 0;
    out.truth.push_back(truth), out.ours.push_back(ours);
    out.bounds.push_back(static_cast<float>(std::fabs(normal(random)) * 1e-8));
  }
  return out;
}

template <typename T>
std::string_view BytesWithin(const std::vector<T>& values, size_t begin, size_t count) {
  return {reinterpret_cast<const char*>(values.data() + begin), count * sizeof(T)};
}

ElementFigures Judged(const Numbers& numbers, size_t begin, size_t count, double ulps, bool bounded) {
  ResultItem item;
  item.kind = ResultItem::Kind::kTensor;
  item.ours = BytesWithin(numbers.ours, begin, count), item.truth = BytesWithin(numbers.truth, begin, count);
  item.ulps = ulps;
  if (bounded) item.bound = BytesWithin(numbers.bounds, begin, count);
  return JudgeElements(item, DType::kFloat32);
}

/// What pieces say that are too short for a block.
ElementFigures JudgedInPieces(const Numbers& numbers, double ulps, bool bounded) {
  constexpr size_t kPiece = ElementBlock::kSize - 1;
  ElementFigures out;
  ElementExtremes found;
  for (size_t begin = 0; begin < numbers.truth.size(); begin += kPiece) {
    const size_t count = std::min(kPiece, numbers.truth.size() - begin);
    const ElementFigures piece = Judged(numbers, begin, count, ulps, bounded);
    out.bounded = piece.bounded;
    found.TakeError(piece.error, piece.limit);
    out.rtol = std::max(out.rtol, piece.rtol), out.atol = std::max(out.atol, piece.atol);
    out.nan += piece.nan, out.infinite += piece.infinite;
    out.flushed += piece.flushed, out.subnormal += piece.subnormal;
    for (const auto& [power, counts] : piece.histogram) {
      for (size_t i = 0; i < counts.size(); ++i) out.histogram[power][i] += counts[i];
    }
  }
  out.error = found.error, out.limit = found.limit;
  return out;
}

TEST(ElementBlockTest, SaysWhatPiecesSay) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Numbers numbers = DrawnNumbers(300 + 97 * seed, seed % 2 == 1, seed);
    const double ulps = seed % 5 == 0 ? -1 : seed % 4;
    const bool bounded = seed % 3 == 0;
    const ElementFigures whole = Judged(numbers, 0, numbers.truth.size(), ulps, bounded);
    const ElementFigures pieces = JudgedInPieces(numbers, ulps, bounded);
    EXPECT_EQ(HistogramText(whole), HistogramText(pieces)) << seed;
    EXPECT_EQ(ClassesText(whole), ClassesText(pieces)) << seed;
    EXPECT_EQ(whole.rtol, pieces.rtol) << seed;
    EXPECT_EQ(whole.atol, pieces.atol) << seed;
    EXPECT_EQ(whole.error, pieces.error) << seed;
    EXPECT_EQ(whole.limit, pieces.limit) << seed;
  }
}

TEST(ElementBlockTest, IsTheSameWithoutWideRegisters) {
  const Numbers numbers = DrawnNumbers(ElementBlock::kSize, false, 7);
  const std::vector<double> ours(numbers.ours.begin(), numbers.ours.end());
  const ElementRuler ruler{24, 0x1p-126, 3e38, 0x1p-23, 2};
  ElementExtremes found, plain_found;
  ElementBlock block, plain;
  ASSERT_TRUE(MeasureBlock(ruler, ours.data(), numbers.truth.data(), numbers.bounds.data(), &found, &block));
  ASSERT_TRUE(
      MeasureBlockPlainly(ruler, ours.data(), numbers.truth.data(), numbers.bounds.data(), &plain_found, &plain));
  EXPECT_EQ(block.errors, plain.errors);
  EXPECT_EQ(block.limits, plain.limits);
  EXPECT_EQ(block.places, plain.places);
  EXPECT_EQ(block.further, plain.further);
  EXPECT_EQ(found.rtol, plain_found.rtol);
  EXPECT_EQ(found.atol, plain_found.atol);
}

TEST(ElementBlockTest, PartsOfInfiniteComplexNumbersAreNoZeros) {
  ResultItem item;
  item.kind = ResultItem::Kind::kTensor;
  const std::vector<float> ours = {1, INFINITY};
  const std::vector<double> truth = {1, INFINITY};
  item.ours = BytesWithin(ours, 0, 2), item.truth = BytesWithin(truth, 0, 2);
  EXPECT_EQ(HistogramText(JudgeElements(item, DType::kComplex64)), "2^1024:1/0/0/0/0/0/0");
}

}  // namespace
}  // namespace msprobe
