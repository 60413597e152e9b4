#include "view/tensor_view.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "view/test_db.h"
#include "view/viewer.h"

namespace msprobe::view {
namespace {

namespace fs = std::filesystem;

std::string Npy(const std::vector<float>& values, const std::string& shape) {
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
    dir.Write("root/a/t.npy", Npy({1, 2, 3, 4, 5, 6, 7, 8}, "(2, 2, 2)"));
    dir.Write("root/b/t.npy", Npy({1, 2, 3, 4, 5, 6, 7, 9}, "(2, 2, 2)"));
    dir.Write("root/a/short.npy", Npy({1, 2}, "(2,)"));
    dir.Write("root/a/bad.npy", "no tensor");
    dir.Write("outside/t.npy", Npy({1}, "(1,)"));
    fs::create_symlink(dir / "outside/t.npy", dir / "root/a/link.npy");
    fs::create_directory_symlink(dir / "outside", dir / "root/linked");
  }
  /// A file whose one node has items "x", "y", ... with these names of data.
  std::unique_ptr<Viewer> Make(const std::vector<std::string>& names, const std::string& mine,
                               const std::string& theirs) const {
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
    sql += "UPDATE tb_nodes SET dump_data_dir = " + Quoted(mine) + " WHERE data_source = 'NPU';" +
           "UPDATE tb_nodes SET dump_data_dir = " + Quoted(theirs) + " WHERE data_source = 'Bench';";
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
    return viewer->Tensor({"c.vis.db", 0, 0}, Side::kNpu, query);
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

TEST_F(TensorViewTest, ViewsThatRepeatTooOften) {
  // Four bytes seen a milliard times.
  dir.Write("root/a/t.npy", Npy({1}, "(1000000000,)"));
  EXPECT_FALSE(Ask(Make({"t.npy"}, dir / "root/a", "").get(), 0).ok());
}

}  // namespace
}  // namespace msprobe::view
