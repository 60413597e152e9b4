#include "compare/first_difference.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "compare/compare.h"
#include "dump/test_files.h"

namespace msprobe {
namespace {

std::string Tensor(double v, const std::string& dtype = "torch.float32") {
  const std::string s = fmt::format("{}", v);
  return R"({"type": "torch.Tensor", "dtype": ")" + dtype + R"(", "shape": [2], "Max": )" + s + R"(, "Min": )" + s +
         R"(, "Mean": )" + s + R"(, "Norm": )" + s + "}";
}

/// An op with one input and one output.
std::string Op(const std::string& name, double in, double out) {
  const bool backward = name.find("backward") != std::string::npos;
  return "\"" + name + R"(": {")" + (backward ? "input" : "input_args") + R"(": [)" + Tensor(in) + R"(], "output": [)" +
         Tensor(out) + "]}";
}

class NoFormat : public RowFormat {
 public:
  void AppendOp(const OpDiff&, int, RowBlock*) const override {}
};

class FirstDifferenceTest : public testing::Test {
 protected:
  void Write(const std::string& side, const std::vector<std::string>& ops) {
    std::string data;
    for (const std::string& op : ops) data += (data.empty() ? "" : ", ") + op;
    dir_.Write(side + "/dump.json",
               R"({"task": "statistics", "level": "mix", "framework": "pytorch", "data": {)" + data + "}}");
  }
  Differences Find() {
    FilePair files;
    files.target = dir_.path() + "/t/dump.json";
    files.golden = dir_.path() + "/g/dump.json";
    auto pair = OpenDumpPair(files, Mapping());
    EXPECT_TRUE(pair.ok()) << pair.status().message();
    const auto outcome = ComparePair(
        *pair, NoFormat(), [](RowBlock&&) { return OkStatus(); }, nullptr);
    EXPECT_TRUE(outcome.ok());
    auto found = FindDifferences(*pair, outcome->distances);
    EXPECT_TRUE(found.ok());
    return *found;
  }
  TempDir dir_;
  using Kind = FirstDifference::Kind;
};

TEST_F(FirstDifferenceTest, NoneWhenAllAgree) {
  Write("t", {Op("F.a.0.forward", 1, 2)});
  Write("g", {Op("F.a.0.forward", 1, 2)});
  const Differences d = Find();
  EXPECT_EQ(d.first.kind, Kind::kNone);
  EXPECT_EQ(d.source.kind, Kind::kNone);
}

TEST_F(FirstDifferenceTest, TheOpWhoseOutputDiffersWithItsFrame) {
  Write("t", {Op("F.a.0.forward", 1, 2), Op("F.b.0.forward", 2, 3.3), Op("F.c.0.forward", 3.3, 4)});
  Write("g", {Op("F.a.0.forward", 1, 2), Op("F.b.0.forward", 2, 3.0), Op("F.c.0.forward", 3.0, 5)});
  dir_.Write("t/stack.json", R"json({"0": [["F.b.0.forward"], ["File /x/torch/nn/f.py, line 3, in f, \n g()",
                                "File /u/model.py, line 12, in step, \n f()"]]})json");
  const Differences d = Find();
  EXPECT_EQ(d.first.kind, Kind::kOp);
  EXPECT_EQ(d.first.name, "F.b.0.forward");
  EXPECT_EQ(d.first.item, ".output.0");
  EXPECT_EQ(d.first.detail, "Norm differs by 10 %");
  EXPECT_EQ(d.first.inputs, "are equal");
  EXPECT_EQ(d.first.frame, "model.py:12");
  EXPECT_EQ(d.first.function, "step");
  EXPECT_EQ(d.source.kind, Kind::kNone);
}

TEST_F(FirstDifferenceTest, RoundOffIsNoDifference) {
  Write("t", {Op("F.a.0.forward", 1, 2.0000004), Op("F.b.0.forward", 2.0000004, 5)});
  Write("g", {Op("F.a.0.forward", 1, 2), Op("F.b.0.forward", 2, 3)});
  const Differences d = Find();
  EXPECT_EQ(d.first.name, "F.b.0.forward");
  EXPECT_EQ(d.first.inputs, "agree to 2e-07");
}

TEST_F(FirstDifferenceTest, ADifferentParameterIsToldApart) {
  Write("t", {Op("F.a.0.forward", 1.5, 2.5)});
  Write("g", {Op("F.a.0.forward", 1, 2)});
  const Differences d = Find();
  EXPECT_EQ(d.first.kind, Kind::kNone);
  EXPECT_EQ(d.source.kind, Kind::kInput);
  EXPECT_EQ(d.source.item, ".input.0");
}

TEST_F(FirstDifferenceTest, ModulesAroundADifferencePassItOn) {
  // The child's parameter differs; its parent's inputs agree and its output differs, but it is not to blame.
  const std::string child = "Module.mlp.down.Linear.forward.0", parent = "Module.mlp.MLP.forward.0";
  Write("t", {Op(child, 1.5, 2.5), Op(parent, 1, 2.5), Op("Module.norm.Norm.forward.0", 1, 7)});
  Write("g", {Op(child, 1, 2), Op(parent, 1, 2), Op("Module.norm.Norm.forward.0", 1, 9)});
  const Differences d = Find();
  EXPECT_EQ(d.source.name, child);
  EXPECT_EQ(d.first.name, "Module.norm.Norm.forward.0");
}

TEST_F(FirstDifferenceTest, TheHierarchyTellsContainers) {
  Write("t", {Op("F.linear.0.forward", 1, 2.5), Op("Module.a.A.forward.0", 1, 2.5)});
  Write("g", {Op("F.linear.0.forward", 1, 2), Op("Module.a.A.forward.0", 1, 2)});
  dir_.Write("t/construct.json", R"({"F.linear.0.forward": "Module.a.A.forward.0", "Module.a.A.forward.0": null})");
  EXPECT_EQ(Find().first.name, "F.linear.0.forward");
}

TEST_F(FirstDifferenceTest, BackwardOfADifferingForwardIsNotToBlame) {
  Write("t", {Op("F.a.0.forward", 1, 2), Op("F.b.0.forward", 2, 3.5), Op("F.b.0.backward", 1, 5),
              Op("F.a.0.backward", 1, 6)});
  Write("g", {Op("F.a.0.forward", 1, 2), Op("F.b.0.forward", 3, 3.0), Op("F.b.0.backward", 1, 4),
              Op("F.a.0.backward", 1, 4)});
  const Differences d = Find();
  EXPECT_EQ(d.source.name, "F.b.0.forward");
  EXPECT_EQ(d.first.name, "F.a.0.backward") << "its forward agrees, its own gradient is wrong";
}

TEST_F(FirstDifferenceTest, CommunicationPointsToOtherRanks) {
  Write("t", {Op("Distributed.all_reduce.0.forward", 1, 3)});
  Write("g", {Op("Distributed.all_reduce.0.forward", 1, 2)});
  EXPECT_EQ(Find().first.kind, Kind::kCommunication);
}

TEST_F(FirstDifferenceTest, AnotherDTypeIsToldThoughValuesAgree) {
  const auto op = [](const std::string& name, const std::string& dtype) {
    return "\"" + name + R"(": {"input_args": [)" + Tensor(1) + "], \"output\": [" + Tensor(2, dtype) + "]}";
  };
  Write("t", {Op("F.a.0.forward", 1, 2), op("F.b.0.forward", "torch.bfloat16"), op("F.c.0.forward", "torch.bfloat16")});
  Write("g", {Op("F.a.0.forward", 1, 2), op("F.b.0.forward", "torch.float32"), op("F.c.0.forward", "torch.float32")});
  const Differences d = Find();
  EXPECT_EQ(d.first.kind, Kind::kNone);
  EXPECT_EQ(d.dtype.kind, Kind::kDType);
  EXPECT_EQ(d.dtype_ops, 2u);
  EXPECT_EQ(d.dtype.name, "F.b.0.forward");
  EXPECT_EQ(d.dtype.item, ".output.0");
  EXPECT_EQ(d.dtype.detail, "is of torch.bfloat16 against torch.float32");
}

TEST_F(FirstDifferenceTest, UnwrittenMemoryIsNoDifference) {
  Write("t", {Op("Torch.empty.0.forward", 1, 3)});
  Write("g", {Op("Torch.empty.0.forward", 1, 2)});
  EXPECT_EQ(Find().first.kind, Kind::kNone);
}

TEST(UserFrameTest, SkipsTheFrameworkAndBrokenFrames) {
  std::string place, function;
  EXPECT_TRUE(UserFrame({"nonsense", "File /a/torch/x.py, line 1, in y", "File /b/c.py, line 7, in <module>, \n z"},
                        &place, &function));
  EXPECT_EQ(place, "c.py:7");
  EXPECT_EQ(function, "<module>");
  EXPECT_FALSE(UserFrame({"File /a/torch/x.py, line 1, in y, \n z"}, &place, &function));
}

}  // namespace
}  // namespace msprobe
