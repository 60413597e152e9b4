#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "weights/fingerprint/fingerprint_file.h"
#include "weights/fingerprint/fingerprint_maker.h"
#include "weights/fingerprint/print_compare.h"
#include "weights/fingerprint/row_hash.h"

namespace msprobe {
namespace {

using Sizes = std::vector<int64_t>;

Sizes StridesOf(const Sizes& shape) {
  Sizes out(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) out[d - 1] = out[d] * shape[d];
  return out;
}

std::vector<float> Numbers(int64_t count, float first = 0) {
  std::vector<float> out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), first);
  return out;
}

Fingerprint Head(int64_t rank = 0, int64_t world = 1) {
  Fingerprint head;
  head.kind = "model";
  head.rank = rank;
  head.world = world;
  return head;
}

WeightShard ShardOf(const std::string& name, const Sizes& shape) {
  WeightShard shard;
  shard.name = name;
  shard.dtype = DType::kFloat32;
  shard.shape = shape;
  return shard;
}

/// One weight, whole.
Fingerprint PrintOfWhole(const std::string& name, const Sizes& shape, const std::vector<float>& values) {
  FingerprintMaker maker(Head());
  EXPECT_TRUE(maker.Hash(maker.Add(ShardOf(name, shape)), {values.data(), 0, shape, StridesOf(shape)}));
  return maker.Take();
}

PrintComparison Compare(std::vector<Fingerprint> a, std::vector<Fingerprint> b) {
  WholeModel whole_a = WholeOf("A", std::move(a)), whole_b = WholeOf("B", std::move(b));
  return ComparePrints(&whole_a, &whole_b, {});
}

PrintVerdict OnlyVerdict(const PrintComparison& c) {
  EXPECT_EQ(c.weights.size(), 1u);
  return c.weights.at(0).verdict;
}

TEST(Fingerprint, RowsOfShapes) {
  const auto rows = [](const Sizes& shape) { return std::pair(RowsOf(shape).rows, RowsOf(shape).columns); };
  EXPECT_EQ(rows({}), std::pair(int64_t{1}, int64_t{1}));
  EXPECT_EQ(rows({64}), std::pair(int64_t{64}, int64_t{1}));
  EXPECT_EQ(rows({8, 4}), std::pair(int64_t{8}, int64_t{4}));
  EXPECT_EQ(rows({4, 8, 256}), std::pair(int64_t{32}, int64_t{256}));
  EXPECT_EQ(rows({16, 3, 3, 3}), std::pair(int64_t{16}, int64_t{27}));
  EXPECT_EQ(rows({int64_t{1} << 30}).first, 1);  // flat memory
}

TEST(Fingerprint, ChunksOfAnyShapeGiveTheWhole) {
  const std::vector<float> values = Numbers(16 * 12);
  const Fingerprint whole = PrintOfWhole("x.weight", {16, 12}, values);
  FingerprintMaker maker(Head());
  const size_t index = maker.Add(ShardOf("x.weight", {16, 12}));
  for (int64_t row = 0; row < 16; row += 5) {
    const int64_t rows = std::min<int64_t>(5, 16 - row);
    EXPECT_TRUE(maker.Hash(index, {values.data() + row * 12, row, {rows, 12}, {12, 1}}));
  }
  EXPECT_FALSE(maker.Hash(index, {values.data(), 12, {5, 12}, {12, 1}}));
  EXPECT_EQ(FingerprintText(maker.Take()), FingerprintText(whole));
}

TEST(Fingerprint, StridedMemoryIsItsContiguousCopy) {
  std::vector<float> turned(64 * 48);
  const std::vector<float> values = Numbers(64 * 48);
  for (size_t r = 0; r < 64; ++r) {
    for (size_t c = 0; c < 48; ++c) turned[c * 64 + r] = values[r * 48 + c];
  }
  FingerprintMaker maker(Head());
  EXPECT_TRUE(maker.Hash(maker.Add(ShardOf("x.weight", {64, 48})), {turned.data(), 0, {64, 48}, {1, 64}}));
  EXPECT_EQ(FingerprintText(maker.Take()), FingerprintText(PrintOfWhole("x.weight", {64, 48}, values)));
}

TEST(Fingerprint, BoxesAndFlatShards) {
  const Sizes shape{6, 2, 130};
  const std::vector<float> values = Numbers(6 * 2 * 130);
  const Fingerprint whole = PrintOfWhole("x.weight", shape, values);
  for (const size_t dim : {0u, 1u, 2u}) {
    std::vector<Fingerprint> ranks;
    for (const int64_t rank : {0, 1}) {
      FingerprintMaker maker(Head(rank, 2));
      WeightShard shard = ShardOf("x.weight", shape);
      shard.whole = shape;
      shard.shape[dim] = shape[dim] == 130 ? (rank == 0 ? 64 : 66) : shape[dim] / 2;
      shard.begin = {0, 0, 0};
      shard.begin[dim] = rank == 0 ? 0 : shape[dim] - shard.shape[dim];
      const Sizes strides = StridesOf(shape), own = shard.shape;
      const float* data = values.data() + shard.begin[dim] * strides[dim];
      EXPECT_TRUE(maker.Hash(maker.Add(std::move(shard)), {data, 0, own, strides}));
      ranks.push_back(maker.Take());
    }
    EXPECT_EQ(OnlyVerdict(Compare({ranks[0]}, {whole})), PrintVerdict::kNotSeen) << dim;
    EXPECT_EQ(OnlyVerdict(Compare(std::move(ranks), {whole})), PrintVerdict::kEqual) << dim;
  }
  for (const int64_t cut : {2, 130, 400, 1302}) {  // elements; those of a word stay together
    std::vector<Fingerprint> ranks;
    for (const int64_t rank : {0, 1}) {
      FingerprintMaker maker(Head(rank, 2));
      const int64_t begin = rank == 0 ? 0 : cut, count = rank == 0 ? cut : 6 * 2 * 130 - cut;
      WeightShard shard = ShardOf("x.weight", {count});
      shard.whole = shape;
      shard.flat_begin = begin;
      EXPECT_TRUE(maker.Hash(maker.Add(std::move(shard)), {values.data() + begin, 0, {count}, {1}}));
      ranks.push_back(maker.Take());
    }
    EXPECT_EQ(OnlyVerdict(Compare(std::move(ranks), {whole})), PrintVerdict::kEqual) << cut;
  }
}

TEST(Fingerprint, CutsInsideOfAWordAreNotJudged) {
  const std::vector<float> values = Numbers(8 * 8);
  FingerprintMaker maker(Head(0, 2));
  WeightShard shard = ShardOf("x.weight", {8, 3});
  shard.whole = {8, 8};
  shard.begin = {0, 0};
  EXPECT_TRUE(maker.Hash(maker.Add(std::move(shard)), {values.data(), 0, {8, 3}, {8, 1}}));
  const PrintComparison c = Compare({maker.Take()}, {PrintOfWhole("x.weight", {8, 8}, values)});
  EXPECT_EQ(OnlyVerdict(c), PrintVerdict::kCannot);
  EXPECT_EQ(c.weights[0].none, NoPrint::kCutInWord);
}

TEST(Fingerprint, AFileReadsAsItWasWritten) {
  Fingerprint print = PrintOfWhole("layers.0.self_attn.q_proj.weight", {16, 12}, Numbers(16 * 12));
  print.name = "before";
  print.step = 7;
  print.facts.heads = 4;
  print.facts.tied = true;
  print.weights[0].stored = DType::kFloat64;
  const std::string text = FingerprintText(print);
  const auto read = ParseFingerprint(text, "x.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(FingerprintText(*read), text);
  EXPECT_EQ(read->weights[0].role, "layer 0 attention.q weight");
  EXPECT_FALSE(ParseFingerprint("{}", "x.json").ok());
  EXPECT_FALSE(ParseFingerprint(text.substr(0, text.size() / 2), "x.json").ok());
}

TEST(Fingerprint, MovedRowsAreFound) {
  const std::vector<float> values = Numbers(16 * 12);
  std::vector<float> moved = values;
  std::swap_ranges(moved.begin(), moved.begin() + 4 * 12, moved.begin() + 8 * 12);
  const PrintComparison c =
      Compare({PrintOfWhole("x.weight", {16, 12}, values)}, {PrintOfWhole("x.weight", {16, 12}, moved)});
  EXPECT_EQ(OnlyVerdict(c), PrintVerdict::kDiffers);
  EXPECT_EQ(c.weights[0].differ, 8);
  ASSERT_EQ(c.weights[0].moved.size(), 2u);
  EXPECT_EQ(c.weights[0].moved[0].from_row, 8);
  EXPECT_EQ(c.weights[0].moved[0].rows.end, 4);
}

}  // namespace
}  // namespace msprobe
