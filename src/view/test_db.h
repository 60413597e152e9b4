// For tests: small .vis.db files made by SQL, with the tables that graph tools write.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace msprobe::view {

class TestDir {
 public:
  TestDir() {
    std::string name = (std::filesystem::temp_directory_path() / "msprobe_view_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TestDir() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
  }

 private:
  std::string path_;
};

inline void RunSql(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK) << path;
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << (error == nullptr ? "" : error);
  sqlite3_free(error);
  sqlite3_close(db);
}

inline std::string SchemaSql() {
  return "CREATE TABLE tb_nodes(id TEXT PRIMARY KEY, graph_id TEXT NOT NULL, node_order INTEGER NOT NULL,"
         " node_name TEXT NOT NULL, node_type TEXT NOT NULL, up_node TEXT, sub_nodes TEXT, precision_index INTEGER,"
         " overflow_level TEXT, micro_step_id INTEGER NOT NULL, matched_node_link TEXT, stack_id TEXT,"
         " parallel_merge_info TEXT, matched_distributed TEXT, modified INTEGER NOT NULL, input_data TEXT,"
         " output_data TEXT, data_source TEXT, dump_data_dir TEXT, step INTEGER NOT NULL, rank INTEGER NOT NULL,"
         " is_distributed INTEGER);"
         "CREATE TABLE tb_stack(id TEXT PRIMARY KEY, stack_info TEXT);"
         "CREATE TABLE tb_config(id TEXT PRIMARY KEY, graph_type TEXT NOT NULL, task TEXT, tool_tip TEXT,"
         " micro_steps INTEGER, overflow_check INTEGER, node_colors TEXT NOT NULL, rank_list TEXT NOT NULL,"
         " step_list TEXT NOT NULL);"
         "CREATE INDEX index1 ON tb_nodes(step,rank,data_source,up_node,node_order);"
         "CREATE INDEX index2 ON tb_nodes(step,rank,data_source,node_name);"
         "CREATE INDEX index3 ON tb_nodes(step,rank,data_source,node_order);";
}

struct TestNode {
  int order;
  std::string name, type, up;
  std::string precision = "NULL";  // SQL
  std::string partner = "";        // "" is unmatched
  std::string overflow = "NULL";   // SQL
  std::string input = "{}", output = "{}";
};

inline std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    out += c;
    if (c == '\'') out += c;
  }
  return out + "'";
}

inline std::string NodeSql(const TestNode& n, const std::string& side = "NPU", int step = 0, int rank = 0) {
  const std::string graph = side + "_" + std::to_string(step) + "_" + std::to_string(rank);
  const std::string link = n.partner.empty() ? "[]" : "[\"DefaultModel\",\"" + n.partner + "\"]";
  return "INSERT INTO tb_nodes VALUES(" + Quoted(graph + "_" + n.name) + "," + Quoted(graph) + "," +
         std::to_string(n.order) + "," + Quoted(n.name) + "," + Quoted(n.type) + "," + Quoted(n.up) + ",''," +
         n.precision + "," + n.overflow + ",0," + Quoted(link) + "," + Quoted(graph + "_0") + ",'','{}',0," +
         Quoted(n.input) + "," + Quoted(n.output) + "," + Quoted(side) + ",NULL," + std::to_string(step) + "," +
         std::to_string(rank) + ",0);";
}

inline std::string ConfigSql(const std::string& type = "compare", const std::string& task = "summary") {
  return "INSERT INTO tb_config VALUES('1'," + Quoted(type) + "," + Quoted(task) +
         ",'{\"Max diff\":\"difference of the maxima\"}',2,1,'{\"#FF704D\":{\"value\":[0.6,1],\"description\":\"d\","
         "\"accuracy_level\":\"error\"}}','[0, 1]','[0]');";
}

/// A compared graph: DefaultModel > m1 (pass) > {linear (error), relu (warning)}, m2 without partner, a collection.
inline void MakeCompareDb(const std::string& path) {
  const std::string m1 = "Module.blocks.0.fc1.Linear.forward.0", m2 = "Module.head.Linear.forward.0";
  std::string sql = SchemaSql() + ConfigSql() +
                    "INSERT INTO tb_stack VALUES('NPU_0_0_0','[\"File a.py, line 1, in f\"]'),"
                    "('Bench_0_0_0','[\"File b.py, line 2, in g\"]');";
  const std::string figures = R"({"Functional.linear.0.forward.input.0":{"type":"torch.Tensor","Max":"0.25",)"
                              R"("Min":1.0000000000000001,"flag":true,"none":null,"bad":NaN,"list":[1,2]}})";
  for (const TestNode& n :
       {TestNode{0, "Functional.linear.0.forward", "1", m1, "1", "Functional.linear.0.forward", "'critical'", figures,
                 R"({"out.0":{"Result":"error"}})"},
        TestNode{1, "Functional.relu.0.forward", "1", m1, "0.5", "Functional.relu.0.forward", "'high'"},
        TestNode{2, m1, "0", "DefaultModel", "0", m1}, TestNode{3, m2, "0", "DefaultModel"},
        TestNode{4, "Torch.add.0.forward", "1", "Apis_Between_Modules.0", "NULL", "Torch.add.0.forward"},
        TestNode{5, "Apis_Between_Modules.0", "9", "DefaultModel", "0", "Apis_Between_Modules.0"},
        TestNode{6, "DefaultModel", "0", "", "NULL", "DefaultModel"}}) {
    sql += NodeSql(n);
  }
  for (const TestNode& n :
       {TestNode{0, "Functional.linear.0.forward", "1", m1, "NULL", "Functional.linear.0.forward", "NULL", figures},
        TestNode{1, "Functional.relu.0.forward", "1", m1, "NULL", "Functional.relu.0.forward"},
        TestNode{2, m1, "0", "DefaultModel", "NULL", m1},
        TestNode{4, "Torch.add.0.forward", "1", "Apis_Between_Modules.0", "NULL", "Torch.add.0.forward"},
        TestNode{5, "Apis_Between_Modules.0", "9", "DefaultModel", "NULL", "Apis_Between_Modules.0"},
        TestNode{6, "DefaultModel", "0", "", "NULL", "DefaultModel"}}) {
    sql += NodeSql(n, "Bench");
  }
  RunSql(path, "BEGIN;" + sql + "COMMIT;");
}

}  // namespace msprobe::view
