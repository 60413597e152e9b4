#include "match/cross_match.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "dump/test_files.h"
#include "match/match_dumps.h"

namespace msprobe {
namespace {

/// An op of a dump: its name, what contains it, the shapes of its inputs and of its output.
struct Op {
  std::string name, parent;
  std::vector<std::string> inputs, outputs;
  std::string parameters;  // JSON members
  double norm = 1;         // of the first output; one more for each that follows
  double number = 0;       // an argument behind the inputs
};

class CrossMatchTest : public testing::Test {
 protected:
  static std::string Tensor(const std::string& shape, double norm) {
    return R"({"type": "x.Tensor", "dtype": "Float32", "shape": [)" + shape + R"(], "Norm": )" + std::to_string(norm) +
           "}";
  }
  DumpFile Dump(const std::string& framework, const std::vector<Op>& ops, const std::string& folder = "") {
    std::string text = R"({"task": "statistics", "level": "mix", "framework": ")" + framework + R"(", "data": {)";
    std::string construct = "{";
    for (const Op& op : ops) {
      const bool first = &op == ops.data(), backward = op.name.find("backward") != std::string::npos;
      const auto list = [&](const std::vector<std::string>& shapes, double norm) {
        std::string out;
        for (size_t i = 0; i < shapes.size(); ++i)
          out += (i ? ", " : "") + Tensor(shapes[i], norm + static_cast<double>(i));
        return out;
      };
      const std::string number =
          op.number == 0 ? "" : R"(, {"type": "float", "value": )" + std::to_string(op.number) + "}";
      text += (first ? "\"" : ", \"") + op.name + "\": {\"" + (backward ? "input" : "input_args") + "\": [" +
              list(op.inputs, 1) + number + R"(], "output": [)" + list(op.outputs, op.norm) + "]";
      if (!op.parameters.empty()) text += R"(, "parameters": {)" + op.parameters + "}";
      text += "}";
      construct += (first ? "\"" : ", \"") + op.name + "\": " + (op.parent.empty() ? "null" : "\"" + op.parent + "\"");
    }
    const std::string to = folder.empty() ? framework : folder;
    dir_.Write(to + "/construct.json", construct + "}");
    StatusOr<DumpFile> dump = DumpFile::Open(dir_.Write(to + "/dump.json", text + "}}"));
    EXPECT_TRUE(dump.ok()) << dump.status().message();
    return std::move(*dump);
  }
  static std::map<std::string, std::string> Pairs(const MatchPlan& plan, const DumpFile& target,
                                                  const DumpFile& golden) {
    std::map<std::string, std::string> out;
    for (size_t i = 0; i < plan.golden_of.size(); ++i) {
      if (plan.golden_of[i] != kNoOp) out.emplace(target.ops().NameAt(i), golden.ops().NameAt(plan.golden_of[i]));
    }
    return out;
  }
  static std::map<std::string, std::string> Links(const MatchPlan& plan, const DumpFile& target,
                                                  const std::string& op) {
    std::map<std::string, std::string> out;
    const auto it = plan.links.find(static_cast<uint32_t>(*target.FindOp(op)));
    if (it == plan.links.end()) return out;
    for (const ItemLink& link : it->second.links) out.emplace(link.target, link.golden);
    return out;
  }
  TempDir dir_;
};

std::string ParameterOf(const std::string& shape) {
  return R"("weight": {"type": "x.Tensor", "dtype": "Float32", "shape": [)" + shape + "]}";
}

const std::string kMlp = "Cell.net.feed_forward.FeedForward.forward.0",
                  kTorchMlp = "Module.model.mlp.LlamaMLP.forward.0";

std::vector<Op> MindSporeNet() {
  const std::string w1 = "Cell.net.feed_forward.w1.Dense.forward.0", w2 = "Cell.net.feed_forward.w2.Dense.forward.0";
  return {{"Primitive.reshape.Reshape.0.forward", w1, {"2, 4, 8"}, {"8, 8"}},
          {"Primitive.matmul.MatMul.0.forward", w1, {"8, 8", "16, 8"}, {"8, 16"}},
          {"Primitive.bias_add.BiasAdd.0.forward", w1, {"8, 16", "16"}, {"8, 16"}},
          {w1, kMlp, {"2, 4, 8"}, {"2, 4, 16"}, ParameterOf("16, 8")},
          {"Mint.mul.0.forward", kMlp, {"2, 4, 16", "2, 4, 16"}, {"2, 4, 16"}},
          {"Primitive.matmul.MatMul.1.forward", w2, {"8, 16", "8, 16"}, {"8, 8"}},
          {w2, kMlp, {"2, 4, 16"}, {"2, 4, 8"}, ParameterOf("8, 16")},
          {kMlp, "", {"2, 4, 8"}, {"2, 4, 8"}},
          {"Tensor.__mul__.0.forward", "", {"2, 4, 8"}, {"2, 4, 8"}},
          {"Primitive.matmul.MatMul.0.backward", w1, {"8, 16"}, {"16, 8", "8, 8"}, "", 5}};
}

std::vector<Op> TorchNet() {
  const std::string gate = "Module.model.mlp.gate_proj.Linear.forward.0",
                    down = "Module.model.mlp.down_proj.Linear.forward.0";
  return {{"Functional.linear.0.forward", gate, {"2, 4, 8", "16, 8", "16"}, {"2, 4, 16"}},
          {gate, kTorchMlp, {"2, 4, 8"}, {"2, 4, 16"}, ParameterOf("16, 8")},
          {"Tensor.__mul__.0.forward", kTorchMlp, {"2, 4, 16", "2, 4, 16"}, {"2, 4, 16"}},
          {"Functional.linear.1.forward", down, {"2, 4, 16", "8, 16"}, {"2, 4, 8"}},
          {down, kTorchMlp, {"2, 4, 16"}, {"2, 4, 8"}, ParameterOf("8, 16")},
          {kTorchMlp, "", {"2, 4, 8"}, {"2, 4, 8"}},
          {"Tensor.__mul__.1.forward", "", {"2, 4, 8"}, {"2, 4, 8"}},
          {"Functional.linear.0.backward", gate, {"8, 16"}, {"8, 8", "16, 8"}, "", 5}};
}

TEST_F(CrossMatchTest, ByStructureOrderAndCommonNames) {
  const DumpFile a = Dump("mindspore", MindSporeNet()), b = Dump("pytorch", TorchNet());
  const auto plan = MatchAcross(a, b);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto pairs = Pairs(*plan, a, b);
  EXPECT_EQ(pairs.at(kMlp), kTorchMlp);
  EXPECT_EQ(pairs.at("Cell.net.feed_forward.w1.Dense.forward.0"), "Module.model.mlp.gate_proj.Linear.forward.0");
  EXPECT_EQ(pairs.at("Cell.net.feed_forward.w2.Dense.forward.0"), "Module.model.mlp.down_proj.Linear.forward.0");
  EXPECT_EQ(pairs.at("Mint.mul.0.forward"), "Tensor.__mul__.0.forward");
  EXPECT_EQ(pairs.at("Tensor.__mul__.0.forward"), "Tensor.__mul__.1.forward") << "not that of its own number";
  EXPECT_EQ(pairs.at("Primitive.matmul.MatMul.1.forward"), "Functional.linear.1.forward");
  EXPECT_FALSE(pairs.count("Primitive.reshape.Reshape.0.forward"));
}

/// The sums inside of a loss that one framework writes out are not those by which the other updates its weights.
TEST_F(CrossMatchTest, ALossIsNoUpdate) {
  std::vector<Op> mindspore = MindSporeNet(), torch = TorchNet();
  mindspore.insert(mindspore.end() - 1, {"Tensor.__add__.0.forward", "", {"6, 1", "6, 1"}, {"6, 1"}});
  torch.push_back({"Tensor.add_.0.forward", "", {"16, 8", "16, 8"}, {"16, 8"}});
  const DumpFile a = Dump("mindspore", mindspore), b = Dump("pytorch", torch);
  const auto plan = MatchAcross(a, b), back = MatchAcross(b, a);
  ASSERT_TRUE(plan.ok() && back.ok());
  EXPECT_FALSE(Pairs(*plan, a, b).count("Tensor.__add__.0.forward"));
  EXPECT_FALSE(Pairs(*back, b, a).count("Tensor.add_.0.forward"));

  mindspore.push_back({"Tensor.add_.0.forward", "", {"16, 8", "16, 8"}, {"16, 8"}});
  const DumpFile updates = Dump("mindspore", mindspore, "updates");
  const auto both = MatchAcross(updates, b);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(Pairs(*both, updates, b).at("Tensor.add_.0.forward"), "Tensor.add_.0.forward");
}

/// Their norms say nothing of which is which: running statistics may be the ones that are wrong.
TEST_F(CrossMatchTest, VectorsOfABatchNormStandByWhatTheyAre) {
  const std::string cell = "Cell.net.bn.BatchNorm2d.forward.0", module = "Module.net.bn.BatchNorm2d.forward.0";
  const std::vector<std::string> shapes = {"2, 4, 8", "4", "4", "4", "4"};
  const DumpFile a = Dump("mindspore", {{"Primitive.bn_train.BatchNorm.0.forward", cell, shapes, {"2, 4, 8"}},
                                        {cell, "", {"2, 4, 8"}, {"2, 4, 8"}, ParameterOf("4")}}),
                 b = Dump("pytorch", {{"Functional.batch_norm.0.forward", module, shapes, {"2, 4, 8"}},
                                      {module, "", {"2, 4, 8"}, {"2, 4, 8"}, ParameterOf("4")}});
  const auto plan = MatchAcross(a, b);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto links = Links(*plan, a, "Primitive.bn_train.BatchNorm.0.forward");
  EXPECT_EQ(links.at(".input.1"), ".input.3") << "weight";
  EXPECT_EQ(links.at(".input.2"), ".input.4") << "bias";
  EXPECT_EQ(links.at(".input.3"), ".input.1") << "mean";
  EXPECT_EQ(links.at(".input.4"), ".input.2") << "variance";
}

TEST_F(CrossMatchTest, AProductAndItsBiasAreOneCall) {
  const DumpFile a = Dump("mindspore", MindSporeNet()), b = Dump("pytorch", TorchNet());
  using Map = std::map<std::string, std::string>;
  const auto plan = MatchAcross(a, b), back = MatchAcross(b, a);
  ASSERT_TRUE(plan.ok() && back.ok());
  EXPECT_EQ(Links(*plan, a, "Primitive.matmul.MatMul.0.forward"),
            (Map{{".input.0", ".input.0"}, {".input.1", ".input.1"}}));
  EXPECT_EQ(Links(*plan, a, "Primitive.bias_add.BiasAdd.0.forward"),
            (Map{{".input.1", ".input.2"}, {".output.0", ".output.0"}}));
  const auto links = back->links.find(static_cast<uint32_t>(*b.FindOp("Functional.linear.0.forward")));
  ASSERT_TRUE(links != back->links.end());
  EXPECT_EQ(links->second.links.back().target, ".output.0");
  EXPECT_EQ(a.ops().NameAt(links->second.links.back().golden_op), "Primitive.bias_add.BiasAdd.0.forward");
}

TEST_F(CrossMatchTest, GradientsGoByShape) {
  const DumpFile a = Dump("mindspore", MindSporeNet()), b = Dump("pytorch", TorchNet());
  const auto plan = MatchAcross(a, b);
  ASSERT_TRUE(plan.ok());
  const auto links = Links(*plan, a, "Primitive.matmul.MatMul.0.backward");
  EXPECT_EQ(links.at(".output.0"), ".output.1");
  EXPECT_EQ(links.at(".output.1"), ".output.0");
}

/// A product and its bias in one call of PyTorch and two of MindSpore.
TEST_F(CrossMatchTest, GradientsOfAProductAndItsBiasAreThoseOfOneCall) {
  const DumpFile a =
      Dump("mindspore", {{"Primitive.conv.Conv2D.0.forward", "", {"2, 3, 4, 4", "5, 3, 1, 1"}, {"2, 5, 4, 4"}},
                         {"Primitive.bias_add.BiasAdd.0.forward", "", {"2, 5, 4, 4", "5"}, {"2, 5, 4, 4"}},
                         {"Primitive.bias_add.BiasAdd.0.backward", "", {"2, 5, 4, 4"}, {"2, 5, 4, 4", "5"}},
                         {"Primitive.conv.Conv2D.0.backward", "", {"2, 5, 4, 4"}, {"5, 3, 1, 1"}}});
  const DumpFile b =
      Dump("pytorch", {{"Functional.conv2d.0.forward", "", {"2, 3, 4, 4", "5, 3, 1, 1", "5"}, {"2, 5, 4, 4"}},
                       {"Functional.conv2d.0.backward", "", {"2, 5, 4, 4"}, {"5, 3, 1, 1", "5"}}});
  using Map = std::map<std::string, std::string>;
  const auto plan = MatchAcross(a, b), back = MatchAcross(b, a);
  ASSERT_TRUE(plan.ok() && back.ok());
  EXPECT_EQ(Links(*plan, a, "Primitive.bias_add.BiasAdd.0.backward"),
            (Map{{".input.0", ".input.0"}, {".output.1", ".output.1"}}));
  EXPECT_EQ(Links(*plan, a, "Primitive.conv.Conv2D.0.backward"),
            (Map{{".input.0", ".input.0"}, {".output.0", ".output.0"}}));
  EXPECT_EQ(Links(*back, b, "Functional.conv2d.0.backward"),
            (Map{{".input.0", ".input.0"}, {".output.0", ".output.0"}, {".output.1", ".output.1"}}));
  EXPECT_TRUE(plan->golden_only.empty() && back->golden_only.empty());
  std::map<std::string, std::string> of;
  for (const ItemLink& link : back->links.at(1).links) of[link.target] = a.ops().NameAt(link.golden_op);
  EXPECT_EQ(of.at(".input.0"), "Primitive.bias_add.BiasAdd.0.backward");
  EXPECT_EQ(of.at(".output.0"), "Primitive.conv.Conv2D.0.backward");
  EXPECT_EQ(of.at(".output.1"), "Primitive.bias_add.BiasAdd.0.backward");
}

/// What PyTorch records as the gradient of a loss is that of its last part.
TEST_F(CrossMatchTest, OfAFunctionOfSeveralPartsTheGivenGradientIsCompared) {
  const DumpFile a = Dump("mindspore", {{"Functional.cross_entropy.0.forward", "", {"2, 5", "2"}, {""}},
                                        {"Functional.cross_entropy.0.backward", "", {""}, {"2, 5"}}});
  const DumpFile b = Dump("pytorch", {{"Functional.cross_entropy.0.forward", "", {"2, 5", "2"}, {""}},
                                      {"Functional.cross_entropy.0.backward", "", {""}, {"", ""}}});
  using Map = std::map<std::string, std::string>;
  const auto plan = MatchAcross(a, b), back = MatchAcross(b, a);
  ASSERT_TRUE(plan.ok() && back.ok());
  EXPECT_EQ(Links(*plan, a, "Functional.cross_entropy.0.backward"), (Map{{".input.0", ".input.0"}}));
  EXPECT_EQ(Links(*back, b, "Functional.cross_entropy.0.backward"), (Map{{".input.0", ".input.0"}}));
}

std::vector<Op> Attention(const std::string& first, double ahead, const std::string& second, double behind) {
  std::vector<Op> out;
  const auto scale = [&](const std::string& name, const std::string& shape, double number) {
    if (number == 0) return;
    out.push_back({name, "", {shape}, {shape}});
    out.back().number = number;
  };
  scale(first, "2, 3, 4", ahead);
  out.push_back({"Torch.matmul.0.forward", "", {"2, 3, 4", "2, 4, 3"}, {"2, 3, 3"}});
  scale(second, "2, 3, 3", behind);
  out.push_back({"Torch.softmax.0.forward", "", {"2, 3, 3"}, {"2, 3, 3"}});
  return out;
}

TEST_F(CrossMatchTest, AScaleMayStandOnTheOtherSideOfAProduct) {
  using Map = std::map<std::string, std::string>;
  const DumpFile a = Dump("mindspore", Attention("", 0, "Tensor.__mul__.0.forward", 0.25));
  const DumpFile b = Dump("pytorch", Attention("Tensor.__mul__.0.forward", 0.25, "", 0));
  const auto plan = MatchAcross(a, b);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(Pairs(*plan, a, b).at("Tensor.__mul__.0.forward"), "Tensor.__mul__.0.forward");
  EXPECT_EQ(Links(*plan, a, "Tensor.__mul__.0.forward"), (Map{{".input.1", ".input.1"}})) << "only the number";
  const DumpFile other = Dump("pytorch", Attention("Tensor.__mul__.0.forward", 0.5, "", 0));
  EXPECT_FALSE(Pairs(*MatchAcross(a, other), a, other).count("Tensor.__mul__.0.forward")) << "another number";
}

TEST_F(CrossMatchTest, DividingIsMultiplyingByTheReciprocal) {
  using Map = std::map<std::string, std::string>;
  const DumpFile a = Dump("mindspore", Attention("", 0, "Tensor.__truediv__.0.forward", 4));
  const DumpFile b = Dump("pytorch", Attention("", 0, "Tensor.__mul__.0.forward", 0.25));
  const auto plan = MatchAcross(a, b), back = MatchAcross(b, a);
  ASSERT_TRUE(plan.ok() && back.ok());
  EXPECT_EQ(Links(*plan, a, "Tensor.__truediv__.0.forward"),
            (Map{{".input.0", ".input.0"}, {".output.0", ".output.0"}}));
  EXPECT_EQ(Pairs(*back, b, a).at("Tensor.__mul__.0.forward"), "Tensor.__truediv__.0.forward");
}

TEST_F(CrossMatchTest, ExchangedRunsGiveThePlanExchanged) {
  const DumpFile a = Dump("mindspore", MindSporeNet()), b = Dump("pytorch", TorchNet());
  const auto plan = MatchAcross(a, b), back = MatchAcross(b, a);
  ASSERT_TRUE(plan.ok() && back.ok());
  const MatchPlan inverted = Inverted(*plan, b.ops().size());
  EXPECT_EQ(Pairs(inverted, b, a), Pairs(*back, b, a));
  EXPECT_EQ(inverted.golden_only.size(), a.ops().size() - inverted.matched - 1) << "the bias belongs to the product";
}

/// A model with an encoder whose layers lie in other modules in the two frameworks.
TEST_F(CrossMatchTest, LayersPairWhateverHoldsThem) {
  const auto linear = [](const std::string& name, const std::string& shape) {
    return Op{name, "", {"2, 8"}, {"2, 8"}, ParameterOf(shape)};
  };
  const DumpFile a = Dump("mindspore", {linear("Cell.enc.a.q.Dense.forward.0", "8, 8"),
                                        linear("Cell.enc.a.k.Dense.forward.0", "8, 8"),
                                        linear("Cell.enc.b.up.Dense.forward.0", "16, 8"),
                                        {"Cell.enc.Block.forward.0", "", {"2, 8"}, {"2, 8"}}});
  const DumpFile b = Dump("pytorch", {linear("Module.body.query.Linear.forward.0", "8, 8"),
                                      linear("Module.body.key.Linear.forward.0", "8, 8"),
                                      linear("Module.body.mlp.inner.fc.Linear.forward.0", "16, 8"),
                                      {"Module.body.Layer.forward.0", "", {"2, 8"}, {"2, 8"}}});
  const auto plan = MatchAcross(a, b);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto pairs = Pairs(*plan, a, b);
  EXPECT_EQ(pairs.at("Cell.enc.a.q.Dense.forward.0"), "Module.body.query.Linear.forward.0");
  EXPECT_EQ(pairs.at("Cell.enc.a.k.Dense.forward.0"), "Module.body.key.Linear.forward.0");
  EXPECT_EQ(pairs.at("Cell.enc.b.up.Dense.forward.0"), "Module.body.mlp.inner.fc.Linear.forward.0");
  EXPECT_EQ(pairs.at("Cell.enc.Block.forward.0"), "Module.body.Layer.forward.0");
}

TEST_F(CrossMatchTest, LayersThatAreOneStandTogether) {
  const auto linear = [](const std::string& name, const std::string& weight, const std::string& output) {
    return Op{name, "", {"2, 8"}, {output}, ParameterOf(weight)};
  };
  const DumpFile a = Dump("mindspore", {linear("Cell.net.w_qkv.Dense.forward.0", "16, 8", "2, 16"),
                                        linear("Cell.net.wo.Dense.forward.0", "8, 8", "2, 8")});
  const DumpFile b = Dump("pytorch", {linear("Module.net.q.Linear.forward.0", "8, 8", "2, 8"),
                                      linear("Module.net.k.Linear.forward.0", "4, 8", "2, 4"),
                                      linear("Module.net.v.Linear.forward.0", "4, 8", "2, 4"),
                                      linear("Module.net.out.Linear.forward.0", "8, 8", "2, 8")});
  const auto plan = MatchAcross(a, b), back = MatchAcross(b, a);
  ASSERT_TRUE(plan.ok() && back.ok());
  EXPECT_EQ(Pairs(*plan, a, b).at("Cell.net.wo.Dense.forward.0"), "Module.net.out.Linear.forward.0");
  const OpLinks& one = plan->links.at(0);
  EXPECT_EQ(one.joined, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_FALSE(one.joins_targets);
  EXPECT_TRUE(plan->golden_only.empty());
  EXPECT_EQ(back->matched, 4u);
  EXPECT_EQ(back->links.at(0).joined, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_TRUE(back->links.at(0).joins_targets);
  EXPECT_EQ(back->links.at(0).others, 0u);
  EXPECT_EQ(Inverted(*plan, b.ops().size()).links.at(0).joined, back->links.at(0).joined);
}

// MindSpore's nn.SiLU records nothing inside; PyTorch's model calls the function.
TEST_F(CrossMatchTest, AnActivationWithNothingInsideIsAFunction) {
  const DumpFile a = Dump("mindspore", {{"Cell.fc.Dense.forward.0", "", {"2, 4"}, {"2, 4"}, R"("weight": {})"},
                                        {"Cell.act.SiLU.forward.0", "", {"2, 4"}, {"2, 4"}},
                                        {"Cell.act.SiLU.backward.0", "", {"2, 4"}, {"2, 4"}}});
  const DumpFile b = Dump("pytorch", {{"Module.fc.Linear.forward.0", "", {"2, 4"}, {"2, 4"}, R"("weight": {})"},
                                      {"Functional.silu.0.forward", "", {"2, 4"}, {"2, 4"}},
                                      {"Functional.silu.0.backward", "", {"2, 4"}, {"2, 4"}}});
  const auto plan = MatchAcross(a, b);
  ASSERT_TRUE(plan.ok());
  const auto pairs = Pairs(*plan, a, b);
  EXPECT_EQ(pairs.at("Cell.act.SiLU.forward.0"), "Functional.silu.0.forward");
  EXPECT_EQ(pairs.at("Cell.act.SiLU.backward.0"), "Functional.silu.0.backward");
  const auto exchanged = MatchAcross(b, a);
  ASSERT_TRUE(exchanged.ok());
  EXPECT_EQ(Pairs(*exchanged, b, a).at("Functional.silu.0.backward"), "Cell.act.SiLU.backward.0");
}

TEST_F(CrossMatchTest, NamesOfMSAdapterArePyTorchs) {
  const std::vector<Op> ops = {{"Torch.exp.0.forward", "", {"2"}, {"2"}}, {"Torch.exp.2.forward", "", {"2"}, {"2"}}};
  const DumpFile a = Dump("mindtorch", {ops[1], ops[0]}), b = Dump("pytorch", ops);
  const auto plan = MatchDumps(a, b, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->cross);
  EXPECT_EQ(Pairs(*plan, a, b), (std::map<std::string, std::string>{{"Torch.exp.0.forward", "Torch.exp.0.forward"},
                                                                    {"Torch.exp.2.forward", "Torch.exp.2.forward"}}));
}

TEST_F(CrossMatchTest, ABlockIsNotTheListOfLayersInIt) {
  const std::string body = "Cell.units.0.body.SequentialCell.forward.0", unit = "Cell.units.0.Unit.forward.0";
  const std::string a1 = "Cell.units.0.body.0.Dense.forward.0", a2 = "Cell.units.0.body.1.Dense.forward.0",
                    act = "Cell.units.0.act.ReLU.forward.0";
  const std::string res = "Module.layers.0.Res.forward.0", b1 = "Module.layers.0.fc1.Linear.forward.0",
                    b2 = "Module.layers.0.fc2.Linear.forward.0";
  const DumpFile a = Dump("mindspore", {{a1, body, {"2, 8"}, {"2, 16"}, ParameterOf("16, 8")},
                                        {a2, body, {"2, 16"}, {"2, 8"}, ParameterOf("8, 16")},
                                        {body, unit, {"2, 8"}, {"2, 8"}},
                                        {"Tensor.__add__.0.forward", unit, {"2, 8", "2, 8"}, {"2, 8"}},
                                        {act, unit, {"2, 8"}, {"2, 8"}},
                                        {unit, "", {"2, 8"}, {"2, 8"}}}),
                 b = Dump("pytorch", {{b1, res, {"2, 8"}, {"2, 16"}, ParameterOf("16, 8")},
                                      {b2, res, {"2, 16"}, {"2, 8"}, ParameterOf("8, 16")},
                                      {"Tensor.__add__.0.forward", res, {"2, 8", "2, 8"}, {"2, 8"}},
                                      {"Functional.relu.0.forward", res, {"2, 8"}, {"2, 8"}},
                                      {res, "", {"2, 8"}, {"2, 8"}}});
  const auto plan = MatchAcross(a, b);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(Pairs(*plan, a, b).at(unit), res);
  const auto back = MatchAcross(b, a);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(Pairs(*back, b, a).at(res), unit);
}

TEST_F(CrossMatchTest, OfTwoProgramsANormThatIsWrittenOutIsANorm) {
  const auto program = [&](const std::string& side, const std::string& block, const std::string& attention,
                           const std::string& mlp, const std::string& norm) {
    const std::string path = "Module." + side + ".", of_block = path + block + ".forward.0",
                      of_norm = path + "n." + norm + ".forward.0", of_attention = path + attention + ".forward.0",
                      of_mlp = path + mlp + ".forward.0";
    return std::vector<Op>{
        {"Tensor.mean.0.forward", of_norm, {"2, 4, 8"}, {"2, 4, 1"}},
        {norm == "RMS" ? "Torch.sqrt.0.forward" : "Torch.rsqrt.0.forward", of_norm, {"2, 4, 1"}, {"2, 4, 1"}},
        {of_norm, of_block, {"2, 4, 8"}, {"2, 4, 8"}, ParameterOf("8")},
        {path + "a.o.Linear.forward.0", of_attention, {"2, 4, 8"}, {"2, 4, 8"}, ParameterOf("8, 8")},
        {of_attention, of_block, {"2, 4, 8"}, {"2, 4, 8"}},
        {path + "m.w.Linear.forward.0", of_mlp, {"2, 4, 8"}, {"2, 4, 16"}, ParameterOf("16, 8")},
        {of_mlp, of_block, {"2, 4, 8"}, {"2, 4, 16"}},
        {of_block, "", {"2, 4, 8"}, {"2, 4, 16"}}};
  };
  const DumpFile a = Dump("pytorch", program("net", "Decoder", "a.SelfAttention", "m.Gated", "RMS"));
  const DumpFile b = Dump(
      "pytorch", program("model", "LlamaDecoderLayer", "a.LlamaAttention", "m.LlamaMLP", "LlamaRMSNorm"), "golden");
  const auto plan = MatchImplementations(a, b, {});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(Pairs(*plan, a, b).at("Module.net.n.RMS.forward.0"), "Module.model.n.LlamaRMSNorm.forward.0");
}

}  // namespace
}  // namespace msprobe
