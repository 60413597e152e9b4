#include "match/match_dumps.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "dump/test_files.h"
#include "json/writer.h"

namespace msprobe {
namespace {

using Names = std::vector<std::string>;

class MatchDumpsTest : public testing::Test {
 protected:
  /// A dump whose ops have two inputs and an output.
  DumpFile Dump(const std::string& side, const std::string& framework, const Names& ops,
                const std::string& construct = "") {
    const std::string tensor = R"({"type": ")" + std::string(framework == "mindspore" ? "mindspore" : "torch") +
                               R"(.Tensor", "dtype": "Float32", "shape": [2]})";
    std::string text = R"({"task": "statistics", "level": "mix", )";
    if (!framework.empty()) text += R"("framework": ")" + framework + R"(", )";
    text += R"("data": {)";
    for (size_t i = 0; i < ops.size(); ++i) {
      text += (i ? ", \"" : "\"") + ops[i] + R"(": {"input_args": [)" + tensor + ", " + tensor +
              R"(], "input_kwargs": {"alpha": {"type": "int", "value": 1}}, "output": [)" + tensor + "]}";
    }
    const std::string path = dir_.Write(side + "/dump.json", text + "}}");
    if (!construct.empty()) dir_.Write(side + "/construct.json", construct);
    StatusOr<DumpFile> dump = DumpFile::Open(path);
    EXPECT_TRUE(dump.ok()) << dump.status().message();
    return std::move(*dump);
  }

  /// "b" or "-" for each op of the target.
  static Names Partners(const StatusOr<MatchPlan>& plan, const DumpFile& golden) {
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    Names out;
    if (!plan.ok()) return out;
    for (const uint32_t g : plan->golden_of) out.emplace_back(g == kNoOp ? "-" : golden.ops()[g].name);
    return out;
  }
  TempDir dir_;
};

TEST_F(MatchDumpsTest, CellMappingReplacesWholeNamesFirstThenParts) {
  const DumpFile a = Dump("t", "pytorch",
                          {"Module.model.attention.linear_q.Linear.forward.0", "Module.norm.RMSNorm.forward.0",
                           "Module.fc1.Dense.backward.3", "Functional.linear.0.forward"});
  const DumpFile b = Dump("g", "pytorch",
                          {"Module.model.attn.q_proj.Linear.forward.0", "Module.norm.LlamaRMSNorm.forward.0",
                           "Module.fc1.Linear.backward.0", "Functional.linear.0.forward"});
  Mapping mapping;
  mapping.cell = true;
  mapping.cells = {
      {"attention", "attn"}, {"linear_q", "q_proj"}, {"RMSNorm", "LlamaRMSNorm"}, {"fc1.Dense", "fc1.Linear"}};
  const auto plan = MatchDumps(a, b, mapping);
  Names want;
  for (const OpSpan& op : b.ops()) want.emplace_back(op.name);
  EXPECT_EQ(Partners(plan, b), want);
  EXPECT_EQ(plan->how, "cell mapping");
}

TEST_F(MatchDumpsTest, DataMappingTakesItemsFromOtherOps) {
  const DumpFile a = Dump("t", "pytorch", {"Functional.add.0.forward", "Functional.add.1.forward"});
  const DumpFile b = Dump("g", "pytorch", {"Functional.add.1.forward", "Functional.add.2.forward"});
  Mapping mapping;
  mapping.data = true;
  mapping.items = {{"Functional.add.0.forward.input.0", "Functional.add.2.forward.input.1"},
                   {"Functional.add.0.forward.kwargs.alpha", "Functional.add.2.forward.kwargs.alpha"},
                   {"Functional.add.1.forward.output.0", "Functional.add.9.forward.output.0"}};
  const auto plan = MatchDumps(a, b, mapping);
  EXPECT_EQ(Partners(plan, b), (Names{"Functional.add.2.forward", "Functional.add.1.forward"}));
  ASSERT_EQ(plan->links.size(), 2u);
  const OpLinks& first = plan->links.at(0);
  EXPECT_EQ(first.others, kNoOp);
  ASSERT_EQ(first.links.size(), 2u);
  EXPECT_EQ(first.links[0].golden, ".input.1");
  EXPECT_EQ(first.links[1].target, ".input.alpha");
  EXPECT_EQ(plan->links.at(1).links[0].golden_op, kNoOp);
  EXPECT_EQ(plan->links.at(1).others, 0u) << "unlisted items match by name";
  ASSERT_EQ(plan->warnings.size(), 1u);
  EXPECT_TRUE(Contains(plan->warnings[0], "add.9"));
  std::string json;
  JsonWriter writer(&json);
  WriteMatchPlan(&writer, *plan, OpNames(a), OpNames(b));
  EXPECT_TRUE(Contains(json, R"(["Functional.add.0.forward.input.0", "Functional.add.2.forward.input.1"])")) << json;

  mapping.items = {{"nothing.of.this", "Functional.add.2.forward.input.1"}};
  EXPECT_EQ(MatchDumps(a, b, mapping).status().code(), Code::kBadInput);
}

TEST_F(MatchDumpsTest, MindSporeAgainstPyTorchByBothFrameworksNames) {
  const DumpFile a = Dump("t", "mindspore",
                          {"Mint.add.0.forward", "Functional.tanh.0.forward", "Functional.dense.0.forward",
                           "MintFunctional.relu.0.forward", "Tensor.asnumpy.0.forward", "Cell.net.fc.Dense.forward.0",
                           "Cell.net.fc.Dense.backward.4", "Functional.nowhere.0.forward"});
  const DumpFile b = Dump("g", "pytorch",
                          {"Torch.add.0.forward", "Torch.tanh.0.forward", "Functional.linear.0.forward",
                           "Functional.relu.0.forward", "Tensor.numpy.0.forward", "Module.net.fc.Linear.forward.0",
                           "Module.net.fc.Linear.backward.0", "Torch.rand.0.forward"});
  const Names want = {"Torch.add.0.forward",
                      "Torch.tanh.0.forward",
                      "Functional.linear.0.forward",
                      "Functional.relu.0.forward",
                      "Tensor.numpy.0.forward",
                      "Module.net.fc.Linear.forward.0",
                      "Module.net.fc.Linear.backward.0",
                      "-"};
  Mapping mapping;
  EXPECT_EQ(Partners(MatchDumps(a, b, mapping), b), want);
  mapping.api = true;
  EXPECT_EQ(Partners(MatchDumps(a, b, mapping), b), want);
  EXPECT_EQ(MatchDumps(b, b, mapping).status().code(), Code::kUsage) << "PyTorch against PyTorch";
  const Names back = {"Mint.add.0.forward",           "Functional.tanh.0.forward",
                      "Functional.dense.0.forward",   "MintFunctional.relu.0.forward",
                      "Tensor.asnumpy.0.forward",     "Cell.net.fc.Dense.forward.0",
                      "Cell.net.fc.Dense.backward.4", "-"};
  EXPECT_EQ(Partners(MatchDumps(b, a, mapping), a), back) << "in the other direction";
}

TEST_F(MatchDumpsTest, NoTwoFunctionsShareAPartner) {
  const DumpFile a = Dump("t", "mindspore", {"Functional.exp.0.forward", "Tensor.exp.0.forward", "Mint.exp.0.forward"});
  const DumpFile b = Dump("g", "pytorch", {"Torch.exp.0.forward", "Tensor.exp.0.forward"});
  EXPECT_EQ(Partners(MatchDumps(a, b, {}), b), (Names{"Torch.exp.0.forward", "Tensor.exp.0.forward", "-"}));
}

TEST_F(MatchDumpsTest, BackwardGoesWithForwardWhereOneFrameworkCallsAFunctionMoreOften) {
  const DumpFile a = Dump("t", "mindspore",
                          {"Tensor.__add__.0.forward", "Tensor.__add__.1.forward", "Functional.silu.7.forward",
                           "Tensor.__add__.1.backward", "Tensor.__add__.0.backward", "Functional.silu.7.backward"});
  const DumpFile b = Dump(
      "g", "pytorch",
      {"Tensor.__add__.0.forward", "Tensor.__add__.1.forward", "Tensor.__add__.2.forward", "Functional.silu.7.forward",
       "Tensor.__add__.2.backward", "Tensor.__add__.0.backward", "Functional.silu.9.backward"});
  Mapping mapping;
  mapping.api = true;
  const auto plan = MatchDumps(a, b, mapping);
  EXPECT_EQ(Partners(plan, b), (Names{"Tensor.__add__.0.forward", "Tensor.__add__.1.forward",
                                      "Functional.silu.7.forward", "-", "Tensor.__add__.0.backward",
                                      "Functional.silu.9.backward"}));  // a number that leads nowhere: in order
}

TEST_F(MatchDumpsTest, ApiRulesNameTheItemsThatStandAgainstEachOther) {
  const DumpFile a = Dump("t", "mindspore", {"Functional.mine.0.forward", "Functional.mine.0.backward"});
  const DumpFile b = Dump("g", "pytorch", {"Torch.theirs.0.forward", "Torch.theirs.0.backward"});
  Mapping mapping;
  mapping.api = true;
  mapping.apis = {{"Functional.mine", "Torch.theirs", {{"0", "1"}, {"1", "alpha"}}, {{"0", "0"}}, {}, {}}};
  const auto plan = MatchDumps(a, b, mapping);
  EXPECT_EQ(Partners(plan, b), (Names{"Torch.theirs.0.forward", "Torch.theirs.0.backward"}));
  const OpLinks& links = plan->links.at(0);
  ASSERT_EQ(links.links.size(), 3u);
  EXPECT_EQ(links.links[1].golden, ".input.alpha");
  EXPECT_EQ(links.others, kNoOp) << "an item that is not listed has no partner";
}

TEST_F(MatchDumpsTest, FrameworkOfOldDumpsIsToldByTheirOps) {
  EXPECT_EQ(*FrameworkOf(Dump("a", "", {"Functional.add.0.forward"})), Framework::kPyTorch);
  EXPECT_EQ(*FrameworkOf(Dump("b", "", {"Cell.net.Dense.forward.0"})), Framework::kMindSpore);
  EXPECT_EQ(*FrameworkOf(Dump("c", "mindtorch", {"Functional.add.0.forward"})), Framework::kMindSpore);
  EXPECT_EQ(FrameworkOf(Dump("d", "jax", {"Functional.add.0.forward"})).status().code(), Code::kBadInput);
}

TEST_F(MatchDumpsTest, LayersMatchByWhereTheyAre) {
  const DumpFile a = Dump(
      "t", "mindspore",
      {"Cell.module.enc.layers.4.attn.SelfAttention.forward.0", "Functional.dense.0.forward",
       "Functional.dense.0.backward", "Functional.dense.1.forward", "Cell.module.enc.ParallelTransformer.forward.0",
       "Functional.exp.0.forward", "Cell.module.enc.layers.4.attn.SelfAttention.parameters_grad.0"},
      R"({"Functional.dense.0.forward": "Cell.module.enc.layers.4.attn.SelfAttention.forward.0",
                              "Functional.dense.1.forward": "Cell.module.enc.layers.4.attn.SelfAttention.forward.0",
                              "Functional.exp.0.forward": null})");
  const DumpFile b =
      Dump("g", "pytorch",
           {"Functional.linear.7.forward", "Functional.linear.8.forward", "Functional.linear.8.backward",
            "Functional.linear.7.backward", "Module.model.dec.layers.0.self_attn.Attention.forward.0",
            "Module.model.dec.Decoder.forward.0", "Module.model.dec.layers.0.self_attn.Attention.parameters_grad.0"},
           R"({"Functional.linear.7.forward": "Module.model.dec.layers.0.self_attn.Attention.forward.0",
                              "Functional.linear.8.forward": "Module.model.dec.layers.0.self_attn.Attention.forward.0"})");
  Mapping mapping;
  mapping.layer = true;
  mapping.layers = {{"TopLayer", {{"module", "m"}, {"module.enc", "model.dec"}}},
                    {"TransformerLayer", {{"attn", "wrong"}}}};
  // Nothing names the class of layers.4, so "attn" needs a rule from above.
  EXPECT_EQ(Partners(MatchDumps(a, b, mapping), b)[4], "Module.model.dec.Decoder.forward.0");
  mapping.layers.push_back({"ParallelTransformer", {{"layers.0.attn", "layers.0.self_attn"}}});
  const auto plan = MatchDumps(a, b, mapping);
  EXPECT_EQ(Partners(plan, b),
            (Names{"Module.model.dec.layers.0.self_attn.Attention.forward.0", "Functional.linear.7.forward",
                   "Functional.linear.7.backward", "Functional.linear.8.forward", "Module.model.dec.Decoder.forward.0",
                   "-", "Module.model.dec.layers.0.self_attn.Attention.parameters_grad.0"}))
      << "calls in one place pair in order, gradients with their calls; ParallelTransformer counts its layers from 0";
  EXPECT_EQ(plan->how, "layer mapping");
}

TEST_F(MatchDumpsTest, LayersWithoutConstructCountFunctionsAsOutside) {
  const DumpFile a = Dump("t", "pytorch", {"Functional.add.3.forward", "Functional.add.4.forward"});
  const DumpFile b = Dump("g", "pytorch", {"Torch.add.0.forward"});
  Mapping mapping;
  mapping.layer = true;
  const auto plan = MatchDumps(a, b, mapping);
  EXPECT_EQ(Partners(plan, b), (Names{"Torch.add.0.forward", "-"}));
  EXPECT_EQ(plan->warnings.size(), 2u);
}

}  // namespace
}  // namespace msprobe
