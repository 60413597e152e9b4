#include "compare/values/dimension_order.h"

#include <gtest/gtest.h>

#include <numeric>

namespace msprobe {
namespace {

/// Numbers that tell each element from every other.
struct Made {
  explicit Made(std::vector<int64_t> shape) {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    values.resize(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 1.0F);
    tensor.dtype = DType::kFloat32;
    tensor.data = values.data();
    tensor.shape = std::move(shape);
    uint64_t bytes = 0;
    EXPECT_TRUE(SetContiguous(&tensor, 1 << 30, &bytes));
  }
  std::vector<float> values;
  FileTensor tensor;
};

/// `made` with its dimensions in another order, in memory.
Made Laid(const Made& made, const std::vector<size_t>& order, const std::vector<int64_t>& shape) {
  Made out(shape);
  std::vector<int64_t> sizes, strides;
  for (const size_t d : order) sizes.push_back(made.tensor.shape[d]), strides.push_back(made.tensor.strides[d]);
  std::vector<int64_t> at(sizes.size(), 0);
  for (float& value : out.values) {
    int64_t from = 0;
    for (size_t d = 0; d < at.size(); ++d) from += at[d] * strides[d];
    value = made.values[static_cast<size_t>(from)];
    for (size_t d = at.size(); d-- > 0 && ++at[d] == sizes[d];) at[d] = 0;
  }
  return out;
}

std::string Found(const Made& target, const Made& golden) {
  const std::vector<OrderedPair> orders = PossibleOrders(target.tensor, golden.tensor);
  const OrderedPair* best = BestOrder(orders);
  if (!best || SampledError(*best) > 0) return "none";
  return best->order;
}

TEST(DimensionOrder, SequenceAheadOfBatch) {
  const Made golden({2, 16, 8});
  EXPECT_EQ(Found(Laid(golden, {1, 0, 2}, {16, 2, 8}), golden), "Bench dimensions in the order (1, 0, 2)");
}

TEST(DimensionOrder, OfEqualSizesTheValuesDecide) {
  const Made golden({8, 8, 4});
  EXPECT_EQ(Found(Laid(golden, {1, 0, 2}, {8, 8, 4}), golden), "Bench dimensions in the order (1, 0, 2)");
  EXPECT_EQ(Found(golden, golden), "");
}

TEST(DimensionOrder, HeadsAheadOfTheSequence) {
  const Made golden({2, 4, 16, 8});  // [b, heads, s, d]
  EXPECT_EQ(Found(Laid(golden, {2, 0, 1, 3}, {16, 2, 32}), golden), "Bench dimensions in the order (2, 0, 1, 3)");
  const Made target({2, 4, 16, 8});
  EXPECT_EQ(Found(target, Laid(target, {2, 0, 1, 3}, {16, 2, 32})), "NPU dimensions in the order (2, 0, 1, 3)");
}

TEST(DimensionOrder, BatchAndSequenceInOneDimension) {
  const Made golden({16, 2, 8});  // [s, b, h]
  EXPECT_EQ(Found(Laid(golden, {1, 0, 2}, {32, 8}), golden), "Bench dimensions in the order (1, 0, 2)");
}

TEST(DimensionOrder, OtherElementsHaveNone) {
  const Made golden({2, 6, 3});
  EXPECT_EQ(Found(Made({2, 6, 4}), golden), "none");
  EXPECT_TRUE(PossibleOrders(Made({2, 6, 4}).tensor, golden.tensor).empty());
}

TEST(DimensionOrder, OnesDoNotCount) {
  const Made golden({1, 6, 5});
  EXPECT_EQ(Found(Laid(golden, {1, 0, 2}, {6, 1, 5}), golden), "");
}

}  // namespace
}  // namespace msprobe
