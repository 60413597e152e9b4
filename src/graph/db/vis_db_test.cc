#include "graph/db/vis_db.h"

#include <sqlite3.h>

#include "graph/db/vis_schema.h"
#include "graph/graph_test_files.h"
#include "graph/test_query.h"

namespace msprobe {
namespace {

using Texts = std::vector<std::string>;

class VisDbTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const uint32_t module = graph_.Add("Module.a\"b\xC3\xA9.M.forward.0", NodeType::kModule);
    graph_.SetParent(module, 0);
    const uint32_t call = graph_.Add("Torch.x.0.forward", NodeType::kApi);
    graph_.SetParent(call, module);
    graph_.nodes[0].match = 0;
    graph_.nodes[module].match = module;
    graph_.nodes[call].match = call;
    graph_.Sort();
    Make("g.vis.db", VisLayout::kCompact);
    ASSERT_EQ(sqlite3_open(dir_.Path("g.vis.db").c_str(), &db_), SQLITE_OK);
  }
  void TearDown() override { sqlite3_close(db_); }

  void Make(const std::string& name, VisLayout layout) {
    auto db = VisDb::Create(dir_.Path(name), layout);
    ASSERT_TRUE(db.ok());
    VisConfig config;
    config.node_colors = "null";
    ASSERT_TRUE((*db)->SetConfig(config).ok());
    for (const char* source : {"NPU", "Bench"}) Write(db->get(), source);
    ASSERT_TRUE((*db)->Finish().ok());
  }

  void Write(VisDb* db, const std::string& source) {
    ASSERT_TRUE(db->BeginGraph({source, 2, 7, std::nullopt}, graph_, &graph_).ok());
    for (uint32_t i = 0; i < graph_.order.size(); ++i) {
      NodeRows rows;
      NodeRows::Row row;
      row.node = graph_.order[i];
      row.order = i;
      rows.text = "{\"";
      rows.text += kPackName;
      rows.text += ".output.0";
      rows.text += kPackTensor;
      rows.text += "float32";
      rows.text += PackedKey("Max");
      rows.text += "1.5\"}}";
      if (i == 0) row.output = {0, rows.text.size()};
      auto data = db->AddData(rows, row.input, row.output);
      ASSERT_TRUE(data.ok());
      ASSERT_TRUE(db->AddNode(rows, row, *data).ok());
    }
    ASSERT_TRUE(db->EndGraph().ok());
  }

  Texts Query(const std::string& sql) { return msprobe::Query(db_, sql); }

  DumpDir dir_;
  NodeGraph graph_;
  sqlite3* db_ = nullptr;
};

TEST_F(VisDbTest, TheViewShowsTheTableOfEarlierFiles) {
  EXPECT_EQ(Query("SELECT name, type FROM pragma_table_info('tb_nodes') LIMIT 3").size(), 3u);
  EXPECT_EQ(Query("SELECT id, graph_id, node_order, node_type, up_node, sub_nodes, matched_node_link, stack_id, "
                  "input_data, output_data, dump_data_dir, step, rank FROM tb_nodes WHERE data_source='NPU' AND "
                  "node_name='Torch.x.0.forward'"),
            (Texts{"NPU_2_7_Torch.x.0.forward|NPU_2_7|0|1|Module.a\"b\xC3\xA9.M.forward.0||"
                   R"(["DefaultModel", "Module.a\"b\u00e9.M.forward.0", "Torch.x.0.forward"]|NPU_2_7_0|{}|)"
                   R"({"Torch.x.0.forward.output.0": {"type": "torch.Tensor", "dtype": "torch.float32", "Max": "1.5"}})"
                   "|NULL|2|7"}));
  EXPECT_EQ(Query("SELECT json_extract(sub_nodes, '$[0]') FROM tb_nodes WHERE up_node='' AND data_source='Bench'"),
            (Texts{"Module.a\"b\xC3\xA9.M.forward.0"}));
}

TEST_F(VisDbTest, IndexesServeTheQueriesOfViewers) {
  for (const char* column : {"node_name", "up_node"}) {
    std::string plan;
    for (const std::string& line :
         Query(std::string("EXPLAIN QUERY PLAN SELECT node_name, up_node, precision_index FROM tb_nodes "
                           "WHERE step=? AND rank=? AND data_source=? AND ") +
               column + "=?"))
      plan += line + "\n";
    EXPECT_EQ(plan.find("SCAN"), std::string::npos) << plan;
  }
}

TEST_F(VisDbTest, ViewersCanChangeAMatch) {
  const std::string where = " WHERE step=2 AND rank=7 AND data_source='NPU' AND node_name='Torch.x.0.forward'";
  const std::string columns =
      "SELECT matched_node_link, input_data, output_data, precision_index, modified FROM tb_nodes";
  Query(
      "UPDATE tb_nodes SET matched_node_link='[\"y\"]', input_data='{\"in\": 1}', output_data='{}', "
      "precision_index=0.5, modified=1" +
      where);
  EXPECT_EQ(Query(columns + where), (Texts{R"(["y"]|{"in": 1}|{}|0.5|1)"}));
  EXPECT_EQ(Query("SELECT node_name FROM tb_nodes WHERE step=2 AND rank=7 AND modified=1"),
            (Texts{"Torch.x.0.forward"}));
  EXPECT_EQ(Query(columns + " WHERE modified=0 AND output_data != '{}'").size(), 1u) << "the other side is as it was";
  // A row that had no texts gets its own.
  Query("UPDATE tb_nodes SET input_data='{\"root\": 2}' WHERE up_node=''");
  EXPECT_EQ(Query("SELECT input_data, output_data FROM tb_nodes WHERE up_node=''"),
            (Texts{R"({"root": 2}|{})", R"({"root": 2}|{})"}));
  EXPECT_EQ(Query("PRAGMA integrity_check"), (Texts{"ok"}));
}

TEST_F(VisDbTest, ThePlainLayoutHasTheSameRowsAndNothingElse) {
  const Texts compact = Query("SELECT * FROM tb_nodes");
  ASSERT_EQ(compact.size(), 6u);
  sqlite3_close(db_);
  Make("p.vis.db", VisLayout::kPlain);
  ASSERT_EQ(sqlite3_open(dir_.Path("p.vis.db").c_str(), &db_), SQLITE_OK);
  EXPECT_EQ(Query("SELECT * FROM tb_nodes ORDER BY rowid"), compact);
  EXPECT_EQ(Query("SELECT type, group_concat(name) FROM sqlite_master WHERE sql IS NOT NULL GROUP BY type"),
            (Texts{"index|index1,index2,index3,index4,index5,index6,index7", "table|tb_nodes,tb_stack,tb_config"}));
  EXPECT_EQ(Query("PRAGMA integrity_check"), (Texts{"ok"}));
  const auto left = ListDirectory(dir_.Path(""));
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(left->size(), 2u) << "temporary files are gone";
}

}  // namespace
}  // namespace msprobe
