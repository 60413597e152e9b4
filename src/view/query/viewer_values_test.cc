#include <gtest/gtest.h>

#include "json/parser.h"
#include "view/query/viewer.h"
#include "view/test_db.h"
#include "view/values/activations.h"

namespace msprobe::view {
namespace {

std::string Output(const std::string& node, const std::string& figures, const std::string& dtype = "torch.float32",
                   const std::string& shape = "[2, 4]") {
  return R"({")" + node + R"(.output.0":{"type":"torch.Tensor","dtype":")" + dtype + R"(","shape":")" + shape + "\"," +
         figures + "}}";
}

struct ActivationsTest : testing::Test {
  void SetUp() override {
    const std::string layers = "Module.model.Model.forward.0";
    const auto linear = [](int i) { return "Module.model.layers." + std::to_string(i) + ".fc.Linear.forward.0"; };
    const std::string relu = "Functional.relu.0.forward", mask = "Tensor.masked_fill.0.forward",
                      index = "Torch.arange.0.forward", back = "Module.model.layers.1.fc.Linear.backward.0";
    std::string sql = SchemaSql() + ConfigSql("build");
    for (const TestNode& n :
         {TestNode{0, linear(0), "0", layers, "NULL", "", "NULL", "{}",
                   Output(linear(0), R"("Max":2.5,"Min":-8,"Mean":0,"Norm":9)")},
          TestNode{1, linear(1), "0", layers, "NULL", "", "NULL", "{}",
                   Output(linear(1), R"("Max":70000.0,"Min":-1,"Mean":0,"Norm":80000)", "torch.bfloat16", "[64, 64]")},
          TestNode{2, relu, "1", layers, "NULL", "", "NULL", "{}",
                   Output(relu, R"("Max":0,"Min":0,"Mean":0,"Norm":0)")},
          TestNode{3, mask, "1", layers, "NULL", "", "NULL", "{}",
                   Output(mask, R"("Max":1,"Min":"-inf","Mean":"-inf","Norm":"inf")")},
          TestNode{4, index, "1", layers, "NULL", "", "NULL", "{}",
                   Output(index, R"("Max":7,"Min":7,"Mean":7,"Norm":7)", "torch.int64", "[9000]")},
          TestNode{5, "Torch.full.0.forward", "1", layers, "NULL", "", "NULL", "{}",
                   Output("Torch.full.0.forward", R"("Max":3,"Min":3,"Mean":3,"Norm":7)")},
          TestNode{6, "Torch.sum.0.forward", "1", layers, "NULL", "", "NULL", "{}",
                   Output("Torch.sum.0.forward", R"("Max":0,"Min":0,"Mean":0,"Norm":0)", "torch.float32", "[]")},
          TestNode{10, "Tensor.mul_.0.forward", "1", "optimizer", "NULL", "", "NULL", "{}",
                   Output("Tensor.mul_.0.forward", R"("Max":0,"Min":0,"Mean":0,"Norm":0)")},
          TestNode{11, "optimizer", "0", "DefaultModel"}, TestNode{7, layers, "0", "DefaultModel"},
          TestNode{8, back, "0", "DefaultModel", "NULL", "", "NULL", "{}",
                   Output(back, R"("Max":"nan","Min":"nan","Mean":"nan","Norm":"nan")")},
          TestNode{9, "DefaultModel", "0", ""}}) {
      sql += NodeSql(n);
    }
    RunSql(dir / "s.vis.db", "BEGIN;" + sql + "COMMIT;");
    viewer = *Viewer::Open(dir.path());
  }
  TestDir dir;
  std::unique_ptr<Viewer> viewer;
};

TEST_F(ActivationsTest, OddOutputsAreCountedByKind) {
  const auto answer = viewer->ActivationsOf({"s.vis.db", 0, 0});
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  JsonDoc doc;
  ASSERT_TRUE(ParseJson(*answer, "", &doc).ok());
  EXPECT_EQ(doc.Find("ops")->Int(), 8);
  EXPECT_EQ(doc.Find("read")->Int(), 8);
  EXPECT_EQ(doc.Find("items")->Int(), 7) << "numbers of a position are no activations";
  const auto first = [&](const char* kind, const char* key) {
    return std::string((*doc.Find(kind)->Find("first"))[0].Find(key)->Text());
  };
  for (const auto& [kind, count] :
       {std::pair("not_finite", 1), {"mask", 1}, {"huge", 1}, {"dead", 1}, {"constant", 1}}) {
    EXPECT_EQ(doc.Find(kind)->Find("count")->Int(), count) << kind;
  }
  EXPECT_EQ(first("not_finite", "value"), "nan");
  EXPECT_EQ(first("mask", "node"), "Tensor.masked_fill.0.forward");
  EXPECT_EQ(first("mask", "value"), "-inf");
  EXPECT_EQ(first("huge", "value"), "70000.0");
  EXPECT_EQ(first("dead", "item"), "Functional.relu.0.forward.output.0") << "a number that is 0 is no dead activation";
  EXPECT_EQ(first("constant", "node"), "Torch.full.0.forward");
  const JsonValue& largest = (*doc.Find("largest"))[0];
  EXPECT_EQ(largest.Find("node")->Text(), "Torch.arange.0.forward");
  EXPECT_EQ(largest.Find("bytes")->Int(), 72000);
  EXPECT_EQ((*doc.Find("largest"))[1].Find("bytes")->Int(), 64 * 64 * 2);
}

TEST_F(ActivationsTest, LayersHaveTheLargestOfTheirOutputs) {
  const std::string answer = *viewer->ActivationsOf({"s.vis.db", 0, 0});
  EXPECT_NE(answer.find(R"({"label":"model.layers.0","forward":{"items":1,"norm":9.0,"max":8.0,"not_finite":false,)"
                        R"("node":"Module.model.layers.0.fc.Linear.forward.0"},"backward":null})"),
            std::string::npos)
      << answer;
  EXPECT_NE(answer.find(R"("backward":{"items":1,"norm":null,"max":null,"not_finite":true,)"
                        R"("node":"Module.model.layers.1.fc.Linear.backward.0"})"),
            std::string::npos)
      << answer;
  EXPECT_EQ(answer, *viewer->ActivationsOf({"s.vis.db", 0, 0}));
  const auto page = viewer->Export("s.vis.db", {});
  ASSERT_TRUE(page.ok());
  EXPECT_NE(page->json.find(R"("activations":)" + answer), std::string::npos);
}

TEST_F(ActivationsTest, AComparedPageGoesWithout) {
  MakeCompareDb(dir / "c.vis.db");
  EXPECT_EQ(viewer->Export("c.vis.db", {})->json.find("\"activations\""), std::string::npos);
}

}  // namespace
}  // namespace msprobe::view
