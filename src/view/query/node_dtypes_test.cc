// Searches by dtype and in the graph of another rank, on files of ours and on those of the earlier tool.
#include "view/values/node_dtypes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/build/visualize.h"
#include "graph/db/vis_schema.h"
#include "graph/graph_test_files.h"
#include "tensor/kernels/dtype.h"
#include "view/query/view_json.h"
#include "view/query/viewer.h"
#include "view/test_db.h"

namespace msprobe::view {
namespace {

constexpr uint32_t kF32 = 1u << static_cast<unsigned>(DType::kFloat32),
                   kBf16 = 1u << static_cast<unsigned>(DType::kBFloat16),
                   kI64 = 1u << static_cast<unsigned>(DType::kInt64);

std::string Of(std::string text, std::string_view from, std::string_view to) {
  for (size_t at; (at = text.find(from)) != std::string::npos;) text.replace(at, from.size(), to);
  return text;
}

std::vector<std::string> Names(Viewer* viewer, const GraphAddress& key, Side side, const std::string& text) {
  SearchQuery query;
  query.text = text;
  const auto hits = viewer->Search(key, side, query);
  EXPECT_TRUE(hits.ok()) << hits.status().message();
  std::vector<std::string> out;
  if (!hits.ok()) return out;
  for (const SearchHit& hit : hits->hits) out.push_back(hit.node.name);
  return out;
}

TEST(DTypesInCell, AreThoseOfTensorsAndNotOfNumbers) {
  const std::string type{PackedKey("type")}, dtype{PackedKey("dtype")}, shape{PackedKey("shape")};
  const std::string tensor{kPackTensor};
  EXPECT_EQ(DTypesInCell("{\"\x01.input.0" + tensor + "bfloat16" + shape + "[2]\"}"), kBf16);
  EXPECT_EQ(
      DTypesInCell("{\"x" + type + "mindspore.Tensor" + dtype + "Float32" + shape + "[2]\", \"y" + tensor + "int64\"}"),
      kF32 | kI64);
  EXPECT_EQ(DTypesInCell("{\"x" + type + "int" + dtype + "int\", \"y" + type + "float" + dtype + "float\"}"), 0u);
  EXPECT_EQ(DTypesInCell(
                R"({"x": {"type": "torch.Tensor", "dtype": "torch.float32"}, "y": {"type": "int", "dtype": "int"}})"),
            kF32);
  EXPECT_EQ(DTypesInCell(dtype), 0u);
  EXPECT_EQ(DTypesInCell(""), 0u);
}

TEST(SearchByDType, KnowsBothSidesOfAFileOfOurs) {
  DumpDir dir;
  const std::string construct = R"("Torch.a.0.forward": null, "Torch.b.0.forward": "Module.m.M.forward.0", )"
                                R"("Module.m.M.forward.0": null)";
  const std::string plain = TensorJson(1, 0, 0.5, 2), half = Of(plain, "torch.float32", "torch.bfloat16");
  const std::string number = R"({"type": "int", "value": 3})";
  const auto data = [&](const std::string& of_b) {
    return OpJson("Torch.a.0.forward", plain + ", " + number, plain) + ", " + OpJson("Torch.b.0.forward", plain, of_b);
  };
  GraphSettings settings;
  settings.target = dir.Rank("a", construct, data(half), "");
  settings.golden = dir.Rank("b", construct, data(plain), "");
  settings.output = dir.Path("out");
  ASSERT_TRUE(VisualizeGraph(settings).ok());
  const auto viewer = *Viewer::Open(dir.Path("out"));
  const GraphAddress key{viewer->Files()->files[0].file, 0, 0};
  const std::string a = "Torch.a.0.forward", b = "Torch.b.0.forward";
  EXPECT_EQ(Names(viewer.get(), key, Side::kTarget, "dtype:bf16"), std::vector<std::string>{b});
  EXPECT_EQ(Names(viewer.get(), key, Side::kTarget, "dtype:bf16 side:golden"), std::vector<std::string>{});
  EXPECT_EQ(Names(viewer.get(), key, Side::kTarget, "dtype:fp32 type:op"), (std::vector<std::string>{a, b}));
  EXPECT_EQ(Names(viewer.get(), key, Side::kGolden, "dtype:fp32 type:op").size(), 2u);
  EXPECT_EQ(Names(viewer.get(), key, Side::kTarget, "type:op -dtype:bfloat16"), std::vector<std::string>{a});
  EXPECT_EQ(Names(viewer.get(), key, Side::kTarget, "dtype:int32"), std::vector<std::string>{})
      << "a number is no tensor";
  const std::string page = viewer->Export(key.file, {{}, {}, 1})->json;
  EXPECT_NE(page.find(R"("dtypes":{"names":["float32","float64",)"), std::string::npos);
  EXPECT_NE(page.find(R"("NPU":[)"), std::string::npos);
}

TEST(SearchByDType, ReadsTheRowsOfTheEarlierTool) {
  TestDir dir;
  MakeCompareDb(dir / "c.vis.db");
  const auto tensor = [](const std::string& dtype) {
    return R"({"x":{"type":"torch.Tensor","dtype":")" + dtype + R"(","shape":"[2]"}})";
  };
  TestNode first{20, "Torch.half.0.forward", "1", "DefaultModel"}, second = first;
  first.output = tensor("torch.float16");
  second.order = 21;
  second.name = "Torch.scalar.0.forward";
  second.input = R"({"x":{"type":"float","dtype":"float","shape":"[]"}})";
  RunSql(dir / "c.vis.db", NodeSql(first) + NodeSql(second));
  const auto viewer = *Viewer::Open(dir.path());
  const GraphAddress key{"c.vis.db", 0, 0};
  EXPECT_EQ(Names(viewer.get(), key, Side::kTarget, "dtype:fp16"), std::vector<std::string>{first.name});
  EXPECT_EQ(Names(viewer.get(), key, Side::kTarget, "dtype:fp32"), std::vector<std::string>{});
  SearchQuery query;
  query.text = "dtype:fp16 side:golden";
  const auto none = viewer->Search(key, Side::kTarget, query);
  EXPECT_EQ(none.status().code(), Code::kUsage);
  EXPECT_EQ(none.status().message(),
            "dtype: no dtypes are known in this graph: make it from a dump of statistics or tensors");
}

TEST(SearchOfARank, IsOfThatGraph) {
  TestDir dir;
  MakeCompareDb(dir / "c.vis.db");
  const TestNode other{0, "Torch.only_there.0.forward", "1", "DefaultModel"};
  RunSql(dir / "c.vis.db", NodeSql({1, "DefaultModel", "0", "None"}, "NPU", 0, 1) + NodeSql(other, "NPU", 0, 1) +
                               NodeSql({1, "DefaultModel", "0", "None"}, "Bench", 0, 1));
  const auto viewer = *Viewer::Open(dir.path());
  const GraphAddress key{"c.vis.db", 0, 0};
  EXPECT_EQ(Names(viewer.get(), key, Side::kTarget, "only_there"), std::vector<std::string>{});
  EXPECT_EQ(Names(viewer.get(), key, Side::kTarget, "only_there rank:1"), std::vector<std::string>{other.name});
  SearchQuery query;
  query.text = "linear rank:0";
  EXPECT_EQ(viewer->Search(key, Side::kTarget, query)->rank, 0);
  query.text = "type:op rank:1";
  const auto hits = viewer->Search(key, Side::kTarget, query);
  EXPECT_EQ(hits->rank, 1);
  EXPECT_EQ(ToJson(*hits).find(R"({"side":"NPU","rank":1,"total":1,)"), 0u);
  // What is selected in the graph that is shown is not in that one.
  const auto next = viewer->Seek(key, Side::kTarget, query, "Functional.linear.0.forward", true);
  ASSERT_TRUE(next.ok()) << next.status().message();
  EXPECT_EQ(next->rank, 1);
  EXPECT_EQ(next->node->name, other.name);
  EXPECT_EQ(ToJson(*next).find(R"({"side":"NPU","rank":1,"node":{)"), 0u);
  query.text = "rank:7";
  const auto none = viewer->Search(key, Side::kTarget, query);
  EXPECT_EQ(none.status().code(), Code::kUsage);
  EXPECT_EQ(none.status().message(), "rank: there is no rank 7 in this file: it has 0-1");
}

}  // namespace
}  // namespace msprobe::view
