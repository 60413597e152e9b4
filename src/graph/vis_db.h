// The `.vis.db` file: what the graph page and existing viewers read. SQLite with a fixed schema.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "graph/node_graph.h"
#include "graph/overflow.h"

struct sqlite3;
struct sqlite3_stmt;

namespace msprobe {

/// Columns that all rows of one graph share.
struct GraphKey {
  std::string source;  // "NPU" or "Bench"
  int step = 0, rank = 0;
  std::optional<std::string> data_dir;
  std::string id() const { return source + "_" + std::to_string(step) + "_" + std::to_string(rank); }
};

/// precision_index of a node: NULL, 0, 0.5 or 1.
enum class Precision : int8_t { kNone = -1, kPass = 0, kWarning = 1, kError = 2 };

/// Rows of tb_nodes with their texts in one buffer.
struct NodeRows {
  struct Span {
    uint64_t begin = 0, size = 0;
  };
  struct Row {
    uint32_t node = 0, order = 0;
    NodeType type = NodeType::kModule;
    Precision precision = Precision::kNone;
    Overflow overflow = Overflow::kNone;
    int micro_step = 0;
    bool distributed = false;
    Span id, name, up_node, sub_nodes, link, stack_id, input, output;
  };
  std::string text;
  std::vector<Row> rows;
};

struct VisConfig {
  bool compare = false;
  std::string task, tool_tip, node_colors;  // empty tool_tip: NULL
  int micro_steps = 1;
  bool overflow_check = false;
  std::vector<int> ranks, steps;
};

/// One of our own tables in a graph file, beside those that older viewers read. Values are bound from left to right;
/// texts must live until Add().
class SideTable {
 public:
  SideTable& Int(int64_t v);
  SideTable& Real(double v);  // NaN becomes NULL
  SideTable& Text(std::string_view text);
  SideTable& Null();
  /// Writes the row; columns that were not bound are NULL.
  Status Add();

 private:
  friend class VisDb;
  SideTable(class VisDb* db, sqlite3_stmt* insert) : db_(db), insert_(insert) {}
  class VisDb* db_;
  sqlite3_stmt* insert_;
  int bound_ = 0;
};

/// Writes one database; the file appears under its name at Finish() or not at all.
class VisDb {
 public:
  static StatusOr<std::unique_ptr<VisDb>> Create(const std::string& path);
  ~VisDb();
  /// Row ids count up from 1 in the order of adding.
  Status AddNode(const GraphKey& key, const NodeRows& batch, const NodeRows::Row& row);
  Status AddStack(const std::string& id, const std::string& frames_json);
  Status SetConfig(const VisConfig& config);
  /// Makes the table msprobe_<name> with these column definitions ("node INTEGER PRIMARY KEY, error REAL");
  /// docs/en/graph/database.md lists them all. Nodes are named by their row id in tb_nodes. The table belongs to the
  /// database, and `index`, when given, is made at the end: "name (columns)".
  StatusOr<SideTable*> MakeTable(std::string_view name, std::string_view columns, std::string_view index = {});
  Status SetCommunication(int64_t row_id, const std::string& json);
  Status Finish();
  int64_t rows() const { return rows_; }
  /// Where the file is after Finish(): another name when a result with that one was there already.
  const std::string& path() const { return path_; }

 private:
  friend class SideTable;
  explicit VisDb(const std::string& path) : path_(path), temp_(path) {}
  Status Open();
  Status Exec(const char* sql);
  Status Prepare(const char* sql, sqlite3_stmt** statement);
  void BindText(sqlite3_stmt* statement, int column, std::string_view text);
  Status Step(sqlite3_stmt* statement);
  Status Error(const char* what);
  void Close();

  std::string path_;
  TempPath temp_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt *node_ = nullptr, *stack_ = nullptr, *link_ = nullptr;
  std::vector<std::unique_ptr<SideTable>> tables_;
  std::vector<std::string> indexes_;  // of them
  int64_t rows_ = 0;
  size_t unbound_ = 0;  // length of a text that was too long to bind
};

}  // namespace msprobe
