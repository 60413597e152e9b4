#include "weights/weight_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "weights/role_words.h"

namespace msprobe {
namespace {

std::vector<float> Counting(int64_t n) {
  std::vector<float> out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), 0.0F);
  return out;
}

WeightTensor Matrix(const std::vector<float>& values, std::vector<int64_t> shape) {
  FileTensor file{"w", DType::kFloat32, values.data(), std::move(shape), {}, false};
  uint64_t bytes = 0;
  EXPECT_TRUE(SetContiguous(&file, UINT64_MAX, &bytes));
  return WholeTensor(file, 0);
}

std::vector<float> Gathered(const WeightTensor& t) {
  std::vector<float> out(static_cast<size_t>(t.elements()));
  GatherElements(t, 0, t.elements(), reinterpret_cast<char*>(out.data()));
  return out;
}

TEST(WeightTensor, FlatStretchesOfAnyLengthBecomeBoxes) {
  const std::vector<float> values = Counting(3 * 4 * 5);
  for (int64_t cut = 0; cut <= 60; ++cut) {
    for (int64_t next = cut; next <= 60; next += 7) {
      WeightTensor t;
      t.dtype = DType::kFloat32;
      t.shape = {3, 4, 5};
      ASSERT_TRUE(AddFlat(0, cut, values.data(), 0, &t));
      ASSERT_TRUE(AddFlat(cut, next - cut, values.data() + cut, 0, &t));
      ASSERT_TRUE(AddFlat(next, 60 - next, values.data() + next, 0, &t));
      ASSERT_TRUE(IsCovered(t)) << cut << " " << next;
      ASSERT_EQ(Gathered(t), values) << cut << " " << next;
      ASSERT_LE(t.blocks.size(), 15U);
    }
  }
  WeightTensor t;
  t.dtype = DType::kFloat32;
  t.shape = {2, 3};
  EXPECT_FALSE(AddFlat(4, 3, values.data(), 0, &t));
  EXPECT_FALSE(AddFlat(-1, 1, values.data(), 0, &t));
  EXPECT_FALSE(IsCovered(t));
}

TEST(WeightTensor, RangesAndJoinsKeepWhereElementsComeFrom) {
  const std::vector<float> values = Counting(24);
  const WeightTensor t = Matrix(values, {6, 4});
  const WeightTensor odd = SelectRanges(t, 0, {{1, 2}, {3, 4}, {5, 6}}, "k");
  EXPECT_EQ(odd.shape, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(Gathered(odd)[4], 12);
  EXPECT_EQ(odd.blocks[1].origin, (std::vector<int64_t>{3, 0}));
  const auto joined = JoinAlong(1, {t, t});
  ASSERT_TRUE(joined.ok());
  EXPECT_EQ(joined->shape, (std::vector<int64_t>{6, 8}));
  EXPECT_EQ(Gathered(*joined)[12], 4);
  const WeightTensor turned = Transposed(t);
  EXPECT_EQ(Gathered(turned)[1], 4);
  const WeightTensor row = SelectFirst(t, 2, "expert 2");
  EXPECT_EQ(Gathered(row), (std::vector<float>{8, 9, 10, 11}));
  EXPECT_EQ(row.label(), "w[expert 2]");
  EXPECT_FALSE(JoinAlong(0, {t, Matrix(values, {4, 6})}).ok());
}

TEST(WeightTensor, ShapesThatNoTensorHasAreRefused) {
  int64_t count = 0;
  EXPECT_TRUE(CountElements({}, &count));
  EXPECT_EQ(count, 1);
  EXPECT_TRUE(CountElements({5, 0}, &count));
  EXPECT_EQ(count, 0);
  EXPECT_FALSE(CountElements({-1}, &count));
  EXPECT_FALSE(CountElements({int64_t{1} << 40, int64_t{1} << 40}, &count));
  EXPECT_FALSE(CountElements({0, int64_t{1} << 40, int64_t{1} << 40}, &count));
}

TEST(WeightName, SaysTheSameInManyWords) {
  const auto what = [](std::string_view name) {
    const WeightName n = ParseWeightName(name);
    return std::to_string(n.layer) + " " + n.what + " " + n.param;
  };
  EXPECT_EQ(what("model.layers.3.self_attn.q_proj.weight"), "3 attention.q weight");
  EXPECT_EQ(what("model.layers.3.attention.wq.weight"), "3 attention.q weight");
  EXPECT_EQ(what("bert.encoder.layer.3.attention.self.query.bias"), "3 attention.q bias");
  EXPECT_EQ(what("bert.encoder.layer.3.attention.output.dense.weight"), "3 attention.o weight");
  EXPECT_EQ(what("bert.encoder.layer.3.output.dense.weight"), "3 mlp.down weight");
  EXPECT_EQ(what("bert.encoder.layer.3.output.LayerNorm.gamma"), "3 norm2 weight");
  EXPECT_EQ(what("transformer.h.3.attn.c_proj.weight"), "3 attention.o weight");
  EXPECT_EQ(what("transformer.h.3.mlp.c_proj.weight"), "3 mlp.down weight");
  EXPECT_EQ(what("decoder.layers.3.mlp.linear_fc1.layer_norm_weight"), "3 norm2 weight");
  EXPECT_EQ(what("decoder.block.3.layer.1.EncDecAttention.q.weight"), "3 cross.q weight");
  EXPECT_EQ(what("decoder.block.3.layer.2.DenseReluDense.wo.weight"), "3 mlp.down weight");
  EXPECT_EQ(what("decoder.block.3.layer.1.layer_norm.weight"), "3 norm_cross weight");
  EXPECT_EQ(what("model.layers.3.block_sparse_moe.gate.weight"), "3 mlp.router weight");
  EXPECT_EQ(what("model.layers.3.block_sparse_moe.experts.5.w2.weight"), "3 mlp.down weight");
  EXPECT_EQ(ParseWeightName("model.layers.3.block_sparse_moe.experts.5.w2.weight").expert, 5);
  EXPECT_EQ(what("backbone.embedding.word_embedding.embedding_table"), "-1 embed weight");
  EXPECT_EQ(what("lm_head.weight"), "-1 head weight");
  EXPECT_EQ(what("decoder.layers.3.mlp.experts.linear_fc1.weight12"), "3 mlp.up weight");
  EXPECT_EQ(ParseWeightName("decoder.layers.3.mlp.experts.linear_fc1.weight12").expert, 12);
  EXPECT_EQ(what("decoder.layers.3.self_attention.linear_q_up_proj.layer_norm_weight"), "3 attention.q_norm weight");
  EXPECT_EQ(what("model.layers.3.self_attn.kv_a_proj_with_mqa.weight"), "3 attention.kv_down weight");
  EXPECT_EQ(what("model.layers.3.mlp.gate.e_score_correction_bias"), "3 mlp.router bias");
  EXPECT_EQ(what("model.layers.3.mlp.shared_expert_gate.weight"), "3 mlp.shared_gate weight");
  EXPECT_EQ(what("decoder.layers.3.cross_attention.linear_kv.weight"), "3 cross.kv weight");
  EXPECT_EQ(what("bert/encoder/layer_3/attention/self/query/kernel"), "3 attention.q weight");
  EXPECT_TRUE(ParseWeightName("bert/encoder/layer_3/attention/self/query/kernel").kernel);
  EXPECT_EQ(ParseWeightName("act.prelu.w").param, "weight");
}

TEST(WeightTensor, PiecesOfBoxesAreWhatTheWholeHas) {
  const std::vector<float> values = Counting(6 * 4);
  const WeightTensor whole = Matrix(values, {6, 4});
  const auto joined = JoinAlong(1, {SelectRanges(whole, 1, {{2, 4}}, ""), SelectRanges(whole, 1, {{0, 2}}, "")});
  ASSERT_TRUE(joined.ok());
  for (const WeightTensor& t : {whole, Transposed(whole), *joined}) {
    const std::vector<float> all = Gathered(t);
    for (int64_t begin = 0; begin < 24; ++begin) {
      for (int64_t end = begin; end <= 24; ++end) {
        std::vector<float> part(24, -1);
        GatherElements(t, begin, end, reinterpret_cast<char*>(part.data()));
        EXPECT_TRUE(std::equal(part.begin(), part.begin() + (end - begin), all.begin() + begin));
        EXPECT_TRUE(std::all_of(part.begin() + (end - begin), part.end(), [](float x) { return x == -1; }));
      }
    }
  }
}

}  // namespace
}  // namespace msprobe
