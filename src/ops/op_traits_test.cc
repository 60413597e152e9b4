#include "ops/op_traits.h"

#include <gtest/gtest.h>

#include <cctype>
#include <sstream>
#include <string>

#include "ops/collective.h"

namespace msprobe {
namespace {

using namespace op_trait;

TEST(OpTraits, OneRowForAllSpellingsOfAName) {
  for (const char* name : {"add", "add_", "__add__", "Add"})
    EXPECT_EQ(TraitsOf(name).arithmetic, Arithmetic::kElementwise) << name;
  EXPECT_EQ(TraitsOf("LayerNorm").arithmetic, TraitsOf("layer_norm").arithmetic);
  EXPECT_EQ(TraitsOf("_foreach_sqrt_").arithmetic, TraitsOf("sqrt").arithmetic);
  EXPECT_EQ(TraitsOf("somebody_s_kernel").arithmetic, Arithmetic::kUnknown);
  EXPECT_EQ(TraitsOf("").bits, kNoTraits);
}

TEST(OpTraits, NamesOfMindSporeHaveTheTraitsOfTheirTwins) {
  EXPECT_EQ(TraitsOf("batch_matmul").arithmetic, Arithmetic::kProduct);
  EXPECT_EQ(ArithmeticOf("Cell.net.fc.Dense.forward.0"), Arithmetic::kProduct);
  EXPECT_TRUE(TraitsOf("asnumpy").Has(kMoves));
  EXPECT_FALSE(TraitsOf("asnumpy").Has(kIgnored)) << "mindstudio-probe compares it";
}

TEST(OpTraits, ClassesCarryTheNameOfTheirKind) {
  EXPECT_EQ(ArithmeticOf("Module.norm.LlamaRMSNorm.forward.0"), Arithmetic::kNormalise);
  EXPECT_EQ(ArithmeticOf("Torch.exp_rank2.0.forward"), Arithmetic::kFunction);
  EXPECT_EQ(ArithmeticOf("Module.qkv.QKVParallelLinear.backward.2"), Arithmetic::kProduct);
  EXPECT_EQ(ArithmeticOf("Functional.my_norm.0.forward"), Arithmetic::kUnknown)
      << "an API of this name may be anything";
}

TEST(OpTraits, OpsThatNoRuleAppliesTo) {
  for (const char* op : {"Torch.empty.0.forward", "Tensor.new_empty.3.forward", "Tensor.to.1.forward",
                         "Tensor.__setitem__.0.forward", "Tensor.setitem.0.forward"})
    EXPECT_TRUE(IsIgnoredApi(op) && HasArbitraryValues(op)) << op;
  for (const char* op : {"Torch.empty_permuted.0.forward", "Tensor.resize_.0.forward"}) {
    EXPECT_FALSE(IsIgnoredApi(op)) << op << ": mindstudio-probe judges it";
    EXPECT_TRUE(HasArbitraryValues(op)) << op;
  }
  for (const char* op : {"Torch.add.0.forward", "Module.to.Linear.forward.0", "Torch", ""})
    EXPECT_FALSE(IsIgnoredApi(op) || HasArbitraryValues(op)) << op;
}

TEST(OpTraits, EveryNameOfTheTableIsFoundInAnySpelling) {
  struct Row {
    uint16_t traits;
    std::string names;
  };
  const Row rows[] = {
#define OPS(arithmetic, traits, names) {traits, names},
#include "ops/op_traits.def"
  };
  size_t count = 0;
  for (const Row& row : rows) {
    std::istringstream names(row.names);
    for (std::string name; names >> name; ++count) {
      std::string upper = name;
      for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      for (const std::string& spelling : {name, name + "_", "__" + name + "__", upper}) {
        EXPECT_EQ(TraitsOf(spelling).bits, row.traits) << spelling;
        EXPECT_EQ(IsIgnored(spelling), (row.traits & kIgnored) != 0) << spelling;
        EXPECT_EQ(HasArbitraryValues("Torch." + spelling + ".0.forward"), (row.traits & (kIgnored | kUndefined)) != 0)
            << spelling;
      }
    }
  }
  EXPECT_GT(count, 400u);
}

TEST(OpTraits, FunctionsThatWorkInPlaceAreKnownByName) {
  for (const char* name : {"Tensor.add_", "Tensor.__iadd__", "Tensor.__setitem__", "relu_"}) {
    EXPECT_TRUE(ChangesArguments(name)) << name;
  }
  for (const char* name : {"Tensor.__add__", "Tensor.__invert__", "Tensor.__index__", "Torch.is_nonzero", ""}) {
    EXPECT_FALSE(ChangesArguments(name)) << name;
  }
}

TEST(OpTraits, ResultsThatHoldNothing) {
  ASSERT_EQ(ResultsWithoutValue("npu_fusion_attention").size(), 2u);
  EXPECT_EQ(ResultsWithoutValue("npu_fusion_attention")[1], 5);
  EXPECT_TRUE(ResultsWithoutValue("linear").empty());
}

TEST(CollectiveTest, ArgumentsThatACallFills) {
  const Collective* call = FindCollective("all_gather_single");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->position, 0);
  EXPECT_EQ(call->keyword, "output_tensor");
  EXPECT_EQ(FindCollective("gather")->position, 1);
  EXPECT_FALSE(FindCollective("all_reduce")->Fills());
  EXPECT_FALSE(FindCollective("linear"));
}

TEST(CollectiveTest, NamesThatAreNotListedMoveValuesAsTheFirstThatTheyContain) {
  EXPECT_EQ(FlowOf("all_reduce_of_a_plugin"), CommFlow::kAll);
  EXPECT_EQ(FlowOf("reduce_scatter_v"), CommFlow::kAll);
  EXPECT_EQ(FlowOf("my_scatter"), CommFlow::kFromRoot);
  EXPECT_EQ(FlowOf("isend"), CommFlow::kSend);
  EXPECT_EQ(FlowOf("irecv"), CommFlow::kReceive);
  EXPECT_EQ(FlowOf("monitored_barrier"), CommFlow::kNone);
  EXPECT_EQ(FlowOf("get_rank"), CommFlow::kNone);
}

}  // namespace
}  // namespace msprobe
