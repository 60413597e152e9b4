#include "dump/flatten.h"

#include <gtest/gtest.h>

#include "json/parser.h"

namespace msprobe {
namespace {

std::vector<std::string> Suffixes(std::string_view name, std::string_view text) {
  static JsonDoc doc;
  EXPECT_TRUE(ParseJson(text, "op", &doc).ok());
  std::vector<Item> items;
  FlattenOp(name, doc, &items);
  std::vector<std::string> out;
  for (const Item& item : items) {
    out.push_back(std::to_string(static_cast<int>(item.state)) + item.suffix + (item.leaf->IsNull() ? "=null" : ""));
  }
  return out;
}

TEST(FlattenOp, OrderAndNesting) {
  EXPECT_EQ(
      Suffixes("F.a.0.forward", R"({"parameters": {"weight": {"type": "torch.Tensor"}},
      "output": [{"type": "torch.Tensor"}, [[null, {"type": "int"}], {"k": {"type": "x"}}]],
      "input_kwargs": {"dim": {"type": "int"}, "l": [{"type": "int"}], "e": {}},
      "input_args": [null, {}, [], {"type": "slice"}], "is_recompute": false})"),
      (std::vector<std::string>{"0.input.0=null", "0.input.3", "1.input.dim", "1.input.l.0", "2.output.0",
                                "2.output.1.0.0=null", "2.output.1.0.1", "2.output.1.1.k", "3.parameters.weight"}));
}

TEST(FlattenOp, BackwardGradsDebugAndP2P) {
  EXPECT_EQ(Suffixes("F.a.0.backward", R"({"input": [{"type": "t"}], "output": [null]})"),
            (std::vector<std::string>{"0.input.0", "2.output.0=null"}));
  const char* grads = R"({"bias": [{"type": "t"}], "weight": [null]})";
  const std::vector<std::string> expected{"4.bias", "4.weight=null"};
  EXPECT_EQ(Suffixes("Module.a.Linear.parameters_grad.0", grads), expected);
  EXPECT_EQ(Suffixes("Module.a.Linear.parameters_grad", grads), expected);
  EXPECT_EQ(Suffixes("Module.parameters_grad.Linear.forward.0", grads), std::vector<std::string>{});
  EXPECT_EQ(Suffixes("x.0.debug", R"([{"type": "t"}, {"a": null}])"), (std::vector<std::string>{"5.0", "5.1.a=null"}));
  EXPECT_EQ(Suffixes("x.0.debug", R"({"type": "t"})"), (std::vector<std::string>{"5"}));
  EXPECT_EQ(Suffixes("x.0.debug", "null"), (std::vector<std::string>{"5=null"}));
  EXPECT_EQ(
      Suffixes("Distributed.batch_isend_irecv.0.forward",
               R"({"input_args": [[{"class_type": "torch.distributed.P2POp", "tensor": {"type": "t"}, "peer": 1}]]})"),
      (std::vector<std::string>{"0.input.0.0"}));
}

// An argument may be called "type" without being a leaf, and scalars outside leaves are not items.
TEST(FlattenOp, OddShapes) {
  EXPECT_EQ(Suffixes("F.a.0.forward",
                     R"({"input_kwargs": {"type": {"type": "int"}, "n": 3}, "output": "x", "input_args": null})"),
            (std::vector<std::string>{"0.input=null", "1.input.type"}));
  EXPECT_EQ(Suffixes("F.a.0.forward", "[1, 2]"), std::vector<std::string>{});
}

}  // namespace
}  // namespace msprobe
