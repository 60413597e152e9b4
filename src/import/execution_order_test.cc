#include "import/execution_order.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

KernelTensor Tensor(std::string key, uint64_t time, bool constant = false) {
  KernelTensor out;
  out.key = std::move(key);
  out.time = time;
  out.graph = "Net/0";
  out.constant = constant;
  return out;
}

TEST(ExecutionOrders, NamesAreThoseOfFiles) {
  const auto order = ExecutionOrder::Parse(
      "NodeExecutionOrder-FullNameWithScope\r\nDefault/a.b-Net/Mul-op1\n\nDefault/Add-op0\nDefault/Add-op0", "o.csv");
  ASSERT_TRUE(order.ok());
  EXPECT_EQ(order->scopes().size(), 3u);
  EXPECT_EQ(order->PlaceOf("Default_a_b-Net_Mul-op1"), 0u);
  EXPECT_EQ(order->PlaceOf("Default_Add-op0"), 1u) << "the first of two";
  EXPECT_FALSE(order->PlaceOf("Default_Sub-op0"));
}

TEST(ExecutionOrders, OtherFilesAreRefused) {
  for (const char* text : {"", "\n\n", "Op Type,Op Name\nMatMul,fc\n"}) {
    const auto order = ExecutionOrder::Parse(text, "o.csv");
    ASSERT_FALSE(order.ok()) << text;
    EXPECT_EQ(order.status().message().find("o.csv "), 0u);
  }
  EXPECT_EQ(*ParseIterations("0\n2\r\n\n17", "i.csv"), (std::vector<uint64_t>{0, 2, 17}));
  for (const char* text : {"x", "1\n-2", "1 2", "99999999999999999999999"}) {
    EXPECT_FALSE(ParseIterations(text, "i.csv").ok()) << text;
  }
}

TEST(ExecutionOrders, KernelsStandInItAndTheRestBefore) {
  const auto order =
      ExecutionOrder::Parse("NodeExecutionOrder-FullNameWithScope\nDefault/B-op0\nDefault/A-op0\n", "o.csv");
  KernelList list;
  list.tensors = {Tensor("Default_A-op0.0.input.0", 10),  Tensor("Default_A-op0.0.output.0", 11),
                  Tensor("Default_B-op0.0.output.0", 30), Tensor("w.0.output.0", 5),
                  Tensor("data-1.0.output.0", 99, true),  Tensor("C-op0.0.output.0", 31)};
  PlaceKernels({{"Net/0", *order}}, &list);
  std::vector<uint32_t> places;
  for (const KernelTensor& t : list.tensors) places.push_back(t.place);
  EXPECT_EQ(places, (std::vector<uint32_t>{4, 4, 2, 1, 0, 3})) << "C is not listed and ran behind B";
}

TEST(ExecutionOrders, WithoutOneTimeDecidesAndRunsFollowEachOther) {
  KernelList list;
  list.tensors = {Tensor("A-op0.0.output.0", 40), Tensor("A-op0.0.output.0", 10), Tensor("B-op0.0.input.0", 20),
                  Tensor("B-op0.0.output.0", 25), Tensor("B-op0.0.output.0", 45)};
  PlaceKernels({}, &list);
  std::vector<std::pair<uint32_t, uint32_t>> got;
  for (const KernelTensor& t : list.tensors) got.emplace_back(t.run, t.place);
  EXPECT_EQ(got, (std::vector<std::pair<uint32_t, uint32_t>>{{1, 2}, {0, 0}, {0, 1}, {0, 1}, {1, 3}}));
}

}  // namespace
}  // namespace msprobe
