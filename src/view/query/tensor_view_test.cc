#include "view/query/tensor_view.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "view/query/viewer.h"
#include "view/test_db.h"

namespace msprobe::view {
namespace {

namespace fs = std::filesystem;

std::string NpyFile(const std::vector<float>& values, const std::string& shape) {
  std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
  head.resize((head.size() + 10 + 64) / 64 * 64 - 11, ' ');
  head += '\n';
  std::string out = "\x93NUMPY\x01";
  out += '\0';
  out += static_cast<char>(head.size() & 255);
  out += static_cast<char>(head.size() >> 8);
  out += head;
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return out;
}

constexpr const char* kNode = "Functional.relu.0.forward";

struct TensorViewTest : testing::Test {
  void SetUp() override {
    dir.Write("root/a/t.npy", NpyFile({1, 2, 3, 4, 5, 6, 7, 8}, "(2, 2, 2)"));
    dir.Write("root/b/t.npy", NpyFile({1, 2, 3, 4, 5, 6, 7, 9}, "(2, 2, 2)"));
    dir.Write("root/a/short.npy", NpyFile({1, 2}, "(2,)"));
    dir.Write("root/a/bad.npy", "no tensor");
    dir.Write("outside/t.npy", NpyFile({1}, "(1,)"));
    fs::create_symlink(dir / "outside/t.npy", dir / "root/a/link.npy");
    fs::create_directory_symlink(dir / "outside", dir / "root/linked");
  }
  /// A file whose one node has items "x", "y", ... with these names of data.
  std::unique_ptr<Viewer> Make(const std::vector<std::string>& names, const std::string& target,
                               const std::string& golden) const {
    std::string rows = "{";
    for (size_t i = 0; i < names.size(); ++i) {
      rows += fmt::format(R"({}"{}.input.{}": {{"dtype": "torch.float32", "data_name": "{}"}})", i ? ", " : "", kNode,
                          i, names[i]);
    }
    rows += "}";
    std::string sql = SchemaSql() + ConfigSql("compare", "all");
    for (const char* side : {"NPU", "Bench"}) {
      sql += NodeSql({0, kNode, "1", "DefaultModel", "1", kNode, "NULL", rows}, side) +
             NodeSql({1, "DefaultModel", "0", "", "NULL", "DefaultModel"}, side);
    }
    sql += "UPDATE tb_nodes SET dump_data_dir = " + Quoted(target) + " WHERE data_source = 'NPU';" +
           "UPDATE tb_nodes SET dump_data_dir = " + Quoted(golden) + " WHERE data_source = 'Bench';";
    fs::remove(dir / "root/c.vis.db");
    RunSql(dir / "root/c.vis.db", sql);
    return *Viewer::Open(dir / "root");
  }
  static StatusOr<TensorDetail> Ask(Viewer* viewer, int item, bool pair = false, int64_t slice = 0) {
    TensorQuery query;
    query.node = kNode;
    query.item = fmt::format("{}.input.{}", kNode, item);
    if (pair) query.partner_item = query.item;
    query.slice = slice;
    return viewer->Tensor({"c.vis.db", 0, 0}, Side::kTarget, query);
  }

  TestDir dir;
};

TEST_F(TensorViewTest, PairOfTensors) {
  const auto viewer = Make({"t.npy", "short.npy"}, dir / "root/a", dir / "root/b");
  const auto d = *Ask(viewer.get(), 0, true, 1);
  EXPECT_EQ(d.target.file, "a/t.npy");
  EXPECT_EQ(d.golden->file, "b/t.npy");
  EXPECT_EQ(d.target.dtype, "float32");
  EXPECT_EQ(d.place, std::vector<int64_t>{1});
  EXPECT_EQ(d.preview.difference->equal, 7);
  ASSERT_EQ(d.worst.size(), 1u);
  EXPECT_EQ(d.worst[0].place, (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(d.worst[0].distance, 1);
  const std::string json = ToJson(d);
  EXPECT_NE(json.find(R"("worst":[{"place":[1,1,1],"value":8,"partner":9,"distance":1}])"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("shape":[2,2,2],"count":8,"nan":0,"plus_inf":0,"minus_inf":0,"slices":2)"), std::string::npos);
  // The other side has no such file: what there is is shown, and why the rest is not.
  const auto one = *Ask(viewer.get(), 1, true);
  EXPECT_FALSE(one.golden);
  EXPECT_NE(one.missing.find("not there any more"), std::string::npos) << one.missing;
  EXPECT_EQ(Ask(viewer.get(), 0, false, 2).status().code(), Code::kBadInput);
}

TEST_F(TensorViewTest, OnlyFilesBelowTheDirectory) {
  const auto viewer = Make({"link.npy", "../a/t.npy", "..", "", "-1", "bad.npy", "absent.npy", "/etc/passwd"},
                           dir / "root/a", dir / "root/b");
  for (int item = 0; item < 9; ++item) {
    const auto answer = Ask(viewer.get(), item);
    EXPECT_EQ(answer.status().code(), Code::kBadInput) << item;
    EXPECT_EQ(answer.status().message().find('\n'), std::string::npos);
  }
  for (const std::string& where :
       {dir / "outside", dir / "root/linked", std::string("/"), std::string("a"), std::string("")}) {
    EXPECT_EQ(Ask(Make({"t.npy"}, where, "").get(), 0).status().code(), Code::kBadInput) << where;
  }
  EXPECT_EQ(Ask(Make({"t.npy"}, dir / "root/b/../a", "").get(), 0)->target.file, "a/t.npy");
  const auto single = *Viewer::Open(dir / "root/c.vis.db");
  EXPECT_EQ(Ask(single.get(), 0).status().code(), Code::kBadInput) << "a lone file shows nothing beside it";
}

TEST_F(TensorViewTest, AnExportedPageHoldsPreviewsOfTensors) {
  Make({"t.npy", "absent.npy", "", "short.npy"}, dir / "root/a", dir / "root/b");
  const auto viewer = *Viewer::OpenTrusted(dir / "root/c.vis.db");
  const auto all = viewer->Export("c.vis.db", {{}, {}, 1 << 20, 1 << 20});
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all->tensors.saved, 3u) << "a pair counts once, what was not saved does not count";
  EXPECT_EQ(all->tensors.held, 2u);
  EXPECT_EQ(all->tensors.unread, 1u);
  EXPECT_NE(all->tensors.problem.find("absent.npy"), std::string::npos) << all->tensors.problem;
  // Both slices, subtracted from those of the partner; no place of this machine.
  const std::string item = fmt::format(R"("NPU":{{"0":{{"{}.input.0":{{"0":{{"tensor")", kNode);
  EXPECT_NE(all->json.find(item), std::string::npos) << all->json;
  EXPECT_NE(all->json.find(R"("slice":1,"place":[1],"worst":[{"place":[1,1,1],"value":8,"partner":9)"),
            std::string::npos);
  EXPECT_NE(all->json.find(R"("file":"t.npy")"), std::string::npos);
  EXPECT_EQ(all->json.find(dir / "root"), std::string::npos);
  EXPECT_NE(all->json.find(R"("missing":"short.npy could not be read when)"), std::string::npos);
  const auto none = viewer->Export("c.vis.db", {{}, {}, 1 << 20, 0});
  EXPECT_EQ(none->tensors.saved, 3u);
  EXPECT_EQ(none->tensors.held + none->tensors.unread, 0u);
  EXPECT_NE(none->json.find(R"("tensors":{"NPU":{},"Bench":{}})"), std::string::npos);
}

TEST_F(TensorViewTest, AnExportedPageHoldsTheWorstSliceOfALargeTensor) {
  constexpr int kSlices = 40, kSize = 64 * 96;
  std::vector<float> values(size_t{kSlices} * kSize);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 977) / 3;
  dir.Write("root/b/t.npy", NpyFile(values, "(40, 64, 96)"));
  values[size_t{33} * kSize + 7] = 1e6;
  dir.Write("root/a/t.npy", NpyFile(values, "(40, 64, 96)"));
  Make({"t.npy"}, dir / "root/a", dir / "root/b");
  const auto page = *(*Viewer::OpenTrusted(dir / "root/c.vis.db"))->Export("c.vis.db", {{}, {}, 1 << 20, 1 << 20});
  EXPECT_EQ(page.tensors.held, 1u);
  EXPECT_NE(page.json.find(R"("slice":0,"place":[0])"), std::string::npos);
  EXPECT_NE(page.json.find(R"("slice":33,"place":[33])"), std::string::npos);
  EXPECT_EQ(page.json.find(R"("slice":39,"place":[39])"), std::string::npos) << "there is no room for all of them";
}

TEST_F(TensorViewTest, ViewsThatRepeatTooOften) {
  // Four bytes seen a milliard times.
  dir.Write("root/a/t.npy", NpyFile({1}, "(1000000000,)"));
  EXPECT_FALSE(Ask(Make({"t.npy"}, dir / "root/a", "").get(), 0).ok());
}

}  // namespace
}  // namespace msprobe::view
