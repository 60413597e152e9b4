#include "match/modules/container_pairs.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;

/// Layers that stand in the same order on both sides.
Pairs Share(const std::vector<LayerSpan>& a, const std::vector<LayerSpan>& b, size_t layers) {
  std::vector<std::pair<size_t, size_t>> links;
  for (size_t i = 0; i < layers; ++i) links.emplace_back(i, i);
  Pairs out = PairByShare(a, b, links);
  std::sort(out.begin(), out.end());
  return out;
}

TEST(ContainerPairs, WrappersGoTogetherFromTheOutside) {
  // Float16Module(GPTModel(all)) against Qwen2ForCausalLM(Qwen2Model(all but the head), head)
  const std::vector<LayerSpan> megatron{{10, true, 0, 10}, {11, true, 0, 10}, {12, true, 1, 9}};
  const std::vector<LayerSpan> hugging{{20, true, 0, 10}, {21, true, 0, 9}};
  EXPECT_EQ(Share(megatron, hugging, 10), (Pairs{{10, 20}, {11, 21}}));
}

TEST(ContainerPairs, AModelWithoutWrappersIsWhatIsInThem) {
  const std::vector<LayerSpan> megatron{{10, true, 0, 10}, {11, true, 0, 10}};
  EXPECT_EQ(Share(megatron, {{21, true, 0, 9}}, 10), (Pairs{{11, 21}}));
}

TEST(ContainerPairs, WhatIsCalledGoesWithWhatIsCalled) {
  const std::vector<LayerSpan> list_of_one{{1, false, 0, 4}, {2, true, 0, 4}};
  EXPECT_EQ(Share(list_of_one, {{3, true, 0, 4}}, 4), (Pairs{{2, 3}}));
}

TEST(ContainerPairs, PartsOfAFusedLayerCountForTheirWhole) {
  // fc1, fc2 against gate, up, down
  const Pairs found = PairByShare({{1, true, 0, 2}}, {{2, true, 0, 3}}, {{0, 0}, {0, 1}, {1, 2}});
  EXPECT_EQ(found, (Pairs{{1, 2}}));
}

TEST(ContainerPairs, LittleInCommonIsNoPair) {
  EXPECT_EQ(PairByShare({{1, true, 0, 4}}, {{2, true, 0, 8}}, {{0, 0}, {1, 1}, {2, 9}, {3, 10}}), Pairs());
}

}  // namespace
}  // namespace msprobe
