// The quick way to read a compact file gives what the general one gives.
#include "view/file/compact_graph.h"

#include <gtest/gtest.h>

#include <fstream>

#include "graph/build/visualize.h"
#include "graph/graph_test_files.h"
#include "view/file/load_graph.h"
#include "view/query/view_json.h"
#include "view/query/viewer.h"
#include "view/test_db.h"

namespace msprobe::view {
namespace {

struct CompactGraphTest : testing::Test {
  void SetUp() override {
    std::string data, construct;
    for (int i = 0; i < 40; ++i) {
      const std::string name = "Torch.a." + std::to_string(i) + ".forward", up = "Module.m." + std::to_string(i / 10);
      data += (i ? "," : "") + OpJson(name, TensorJson(1, 0, 0.5, 2), TensorJson(1, 0, 0.5, i % 7 == 0 ? 9 : 2));
      construct += "\"" + name + "\": \"" + up + ".M.forward.0\",";
    }
    for (int i = 0; i < 4; ++i) construct += "\"Module.m." + std::to_string(i) + ".M.forward.0\": null,";
    construct.pop_back();
    std::string golden = data;
    for (size_t at; (at = golden.find("\"Norm\": 9")) != std::string::npos;) golden.replace(at, 9, "\"Norm\": 2");
    golden.replace(golden.find("Torch.a.3."), 10, "Torch.b.3.");
    std::string golden_construct = construct;
    golden_construct.replace(golden_construct.find("Torch.a.3."), 10, "Torch.b.3.");
    GraphSettings settings;
    settings.target = dir.Rank("a", construct, data);
    settings.golden = dir.Rank("b", golden_construct, golden);
    settings.output = dir.Path("out");
    const auto made = VisualizeGraph(settings);
    ASSERT_TRUE(made.ok()) << made.status().message();
    for (const auto& entry : std::filesystem::directory_iterator(dir.Path("out"))) {
      if (entry.path().string().ends_with(".vis.db")) std::filesystem::rename(entry.path(), dir.Path("out/a.vis.db"));
    }
    // A partner that a viewer set, by name; and one that there is not.
    RunSql(dir.Path("out/a.vis.db"),
           "UPDATE tb_nodes SET matched_node_link = '[\"DefaultModel\", \"Torch.b.3.forward\"]' "
           "WHERE node_name = 'Torch.a.3.forward' AND data_source = 'NPU';"
           "UPDATE tb_nodes SET matched_node_link = '[\"nothing\"]', overflow_level = 'high' "
           "WHERE node_name = 'Torch.a.5.forward' AND data_source = 'NPU';"
           // Rows that do not fit into a page: from the second one on SQLite reads them.
           "UPDATE msprobe_node SET communication = printf('%.*c', 40000, 'x') WHERE node = 8;"
           "UPDATE msprobe_node SET link = '[\"' || printf('%.*c', 40000, 'x') || '\", \"Torch.b.3.forward\"]' "
           "WHERE node = 20");
  }

  // Whether the graph of `file` is read the quick way.
  bool Quick(const std::string& file) const {
    const auto open = VisFile::Open(dir.Path("out/" + file), file);
    GraphSides graph;
    const auto loaded = LoadCompactGraph(**open, 0, 0, nullptr, &graph);
    EXPECT_TRUE(loaded.ok());
    EXPECT_EQ(graph.target.empty(), !*loaded);
    return *loaded;
  }

  std::string Everything(const std::string& file) const {
    const auto viewer = *Viewer::Open(dir.Path("out"));
    const GraphAddress key{file, 0, 0};
    std::string out = ToJson(*viewer->Summary(key));
    for (const Side side : {Side::kTarget, Side::kGolden}) {
      SearchQuery all;
      all.limit = 1000;
      const auto hits = viewer->Search(key, side, all);
      out += ToJson(*hits);
      for (const SearchHit& hit : hits->hits) {
        const NodeSummary& node = hit.node;
        out += ToJson(*viewer->Children(key, side, node.name, 0, 1000));
        out += PathToJson(*viewer->Path(key, side, node.name));
        out += ToJson(*viewer->Node(key, side, node.name));
        out += ToJson(*viewer->Links(key, side, node.name));
      }
      all.text = "A.3";
      out += ToJson(*viewer->Search(key, side, all));
    }
    return out + ToJson(*viewer->Layers(key));
  }

  DumpDir dir;
};

TEST_F(CompactGraphTest, IsWhatTheGeneralWayReads) {
  std::filesystem::copy(dir.Path("out/a.vis.db"), dir.Path("out/b.vis.db"));
  RunSql(dir.Path("out/b.vis.db"),
         "INSERT INTO msprobe_name (name_id, name) SELECT max(name_id) + 2, 'behind a gap' FROM msprobe_name");
  EXPECT_TRUE(Quick("a.vis.db"));
  EXPECT_FALSE(Quick("b.vis.db"));
  const std::string quick = Everything("a.vis.db");
  EXPECT_NE(quick.find("\"matched\":\"Torch.b.3.forward\""), std::string::npos);
  EXPECT_NE(quick.find("\"overflow\":\"high\""), std::string::npos);
  EXPECT_EQ(quick, Everything("b.vis.db"));
}

TEST_F(CompactGraphTest, NumbersThatNoToolWritesDoNoHarm) {
  const std::string file = dir.Path("out/a.vis.db");
  RunSql(file,
         "UPDATE msprobe_node SET name_id = 9223372036854775807 WHERE node = 1;"
         "UPDATE msprobe_node SET up = -9223372036854775807 WHERE node = 2;"
         "UPDATE msprobe_node SET match = -1 WHERE node = 3;"
         "UPDATE msprobe_node SET type = 1000, micro_step = 9223372036854775807 WHERE node = 4");
  EXPECT_TRUE(Quick("a.vis.db"));
  const auto viewer = *Viewer::Open(dir.Path("out"));
  SearchQuery all;
  all.limit = 1000;
  const auto hits = viewer->Search({"a.vis.db", 0, 0}, Side::kTarget, all);
  ASSERT_TRUE(hits.ok()) << hits.status().message();
  EXPECT_GT(hits->total, 30u);
  RunSql(file, "UPDATE msprobe_graph SET first = -9223372036854775807, last = 9223372036854775807");
  const auto again = (*Viewer::Open(dir.Path("out")))->Summary({"a.vis.db", 0, 0});
  EXPECT_TRUE(again.ok()) << again.status().message();
  RunSql(file, "DELETE FROM msprobe_name");
  EXPECT_EQ((*Viewer::Open(dir.Path("out")))->Summary({"a.vis.db", 0, 0}).status().code(), Code::kBadInput);
}

TEST_F(CompactGraphTest, KnowsItsStepAndRank) {
  RunSql(dir.Path("out/a.vis.db"), "UPDATE msprobe_graph SET step = 3, rank = 2");
  const auto open = VisFile::Open(dir.Path("out/a.vis.db"), "a.vis.db");
  const auto graph = LoadGraph(**open, 3, 2);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->step, 3);
  EXPECT_EQ(graph->rank, 2);
  EXPECT_TRUE(graph->compared);
}

// The answer comes although the file cannot be read any more: it was read before.
TEST_F(CompactGraphTest, IsReadAhead) {
  const std::string file = dir.Path("out/a.vis.db");
  const GraphAddress key{"a.vis.db", 0, 0};
  const auto viewer = *Viewer::Open(dir.Path("out")), late = *Viewer::Open(dir.Path("out"));
  ASSERT_TRUE(viewer->ReadAhead().ok());
  const auto when = std::filesystem::last_write_time(file);
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary) << std::string(65536, 'x');
  std::filesystem::last_write_time(file, when);
  EXPECT_TRUE(viewer->Summary(key).ok());
  EXPECT_FALSE(late->Summary(key).ok());
  EXPECT_EQ(late->ReadAhead().code(), Code::kBadInput);
  std::filesystem::copy(file, dir.Path("out/b.vis.db"));
  EXPECT_TRUE(late->ReadAhead().ok());  // nobody knows which one will be looked at
}

TEST_F(CompactGraphTest, NamesAreSharedByTheGraphsOfAFile) {
  const auto open = VisFile::Open(dir.Path("out/a.vis.db"), "a.vis.db");
  const auto one = LoadGraph(**open, 0, 0), two = LoadGraph(**open, 0, 0);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->target.names(), one->golden.names());
  EXPECT_EQ(one->target.names(), two->target.names());
}

}  // namespace
}  // namespace msprobe::view
