#include "rollout/stages/qkv_order.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace msprobe {
namespace {

/// Rows from begin to end.
std::vector<int64_t> Rows(int64_t begin, int64_t end) {
  std::vector<int64_t> out(static_cast<size_t>(end - begin));
  std::iota(out.begin(), out.end(), begin);
  return out;
}

WeightTensor Named(std::string name, int64_t rows) {
  WeightTensor out;
  out.name = std::move(name);
  out.shape = {rows, 16};
  return out;
}

TEST(HeadsOfRows, AreThoseOfTheTrainersOrder) {
  ModelFacts facts;
  facts.heads = 4, facts.groups = 4, facts.head_dim = 8;
  const WeightTensor grouped = Named("gpt_neox.layers.1.attention.query_key_value.weight", 96),
                     plain = Named("model.layers.1.self_attn.qkv_proj.weight", 96);
  EXPECT_EQ(HeadsOfRows(facts, grouped, Rows(48, 96)).text.English(), "heads 2 to 3 of q, k, v");
  EXPECT_EQ(HeadsOfRows(facts, grouped, Rows(8, 16)).text.English(), "head 0 of k");
  EXPECT_TRUE(HeadsOfRows(facts, grouped, Rows(8, 16)).one);
  EXPECT_FALSE(HeadsOfRows(facts, plain, Rows(32, 48)).one);
  EXPECT_EQ(HeadsOfRows(facts, plain, Rows(32, 48)).text.English(), "heads 0 to 1 of k");
  EXPECT_TRUE(HeadsOfRows(facts, plain, Rows(32, 47)).text.empty());
  EXPECT_TRUE(HeadsOfRows(facts, Named("model.layers.1.mlp.up_proj.weight", 96), Rows(0, 8)).text.empty());
}

TEST(HeadsOfRows, SeveralQueriesShareKeys) {
  ModelFacts facts;
  facts.heads = 4, facts.groups = 2, facts.head_dim = 8;
  const WeightTensor grouped = Named("decoder.layers.0.self_attention.linear_qkv.weight", 64);
  EXPECT_EQ(HeadsOfRows(facts, grouped, Rows(32, 64)).text.English(), "head 1 of k, v, heads 2 to 3 of q");
}

}  // namespace
}  // namespace msprobe
