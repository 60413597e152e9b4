// The `.vis.db` file: what the graph page and existing viewers read. SQLite with a fixed schema.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "graph/name_table.h"
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

/// Rows of nodes with their texts, packed, in one buffer.
struct NodeRows {
  struct Span {
    uint64_t begin = 0, size = 0;
  };
  struct Row {
    uint32_t node = 0, order = 0;
    uint32_t stack = 0;  // number of its row in tb_stack
    Precision precision = Precision::kNone;
    Overflow overflow = Overflow::kNone;
    bool distributed = false;
    Span input, output;  // of size 0: no parameters
    Span merge_info;     // JSON list; of size 0: not merged
    /// What was found about the partner on the golden side while it was read for the comparison.
    bool has_partner = false;
    Overflow partner_overflow = Overflow::kNone;
    Span partner_input, partner_output;
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
  SideTable& Blob(std::string_view bytes);
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

enum class VisLayout : uint8_t {
  kCompact,  // tb_nodes is a view of our tables
  kPlain,    // nothing but the three tables of earlier tools
  kPart,     // compact, without indexes: to be appended to another
};

/// Writes one database; the file appears under its name at Finish() or not at all.
class VisDb {
 public:
  static StatusOr<std::unique_ptr<VisDb>> Create(const std::string& path, VisLayout layout = VisLayout::kCompact);
  ~VisDb();
  /// The rows that follow are nodes of `graph`, in the order of graph.order; `other` is what Node::match refers to.
  /// Both must live until EndGraph().
  Status BeginGraph(const GraphKey& key, const NodeGraph& graph, const NodeGraph* other);
  /// Row ids count up from 1 in the order of adding. `data` is where AddData() put the texts, 0 for none.
  Status AddNode(const NodeRows& batch, const NodeRows::Row& row, int64_t data);
  /// Packed texts of a node, of this graph or the next. Returns their id, 0 when both are empty.
  StatusOr<int64_t> AddData(const NodeRows& batch, NodeRows::Span input, NodeRows::Span output);
  Status EndGraph();
  Status AddStack(const std::string& id, const std::string& frames_json);
  Status SetConfig(const VisConfig& config);
  /// Makes the table msprobe_<name> with these column definitions ("node INTEGER PRIMARY KEY, error REAL");
  /// docs/en/graph/database.md lists them all. Nodes are named by their row id in tb_nodes. The table belongs to the
  /// database, and `index`, when given, is made at the end: "name (columns)".
  StatusOr<SideTable*> MakeTable(std::string_view name, std::string_view columns, std::string_view index = {});
  Status SetCommunication(int64_t row_id, const std::string& json);
  /// Puts the rows of a finished part behind those that are here, with the configuration of the first one: the result
  /// is what adding them one by one makes. Tables that are not here are left out.
  Status Append(const std::string& part);
  Status Finish();
  int64_t rows() const { return rows_; }
  /// Where the file is after Finish(): another name when a result with that one was there already.
  const std::string& path() const { return path_; }

 private:
  friend class SideTable;
  /// The graph whose rows are being added.
  struct Current {
    GraphKey key;
    const NodeGraph* graph = nullptr;
    const NodeGraph* other = nullptr;
    int64_t first = 0;
    std::vector<uint32_t> names, other_names, other_paths;  // ids of nodes, kNoIndex until they are asked for
  };
  VisDb(const std::string& path, VisLayout layout) : path_(path), layout_(layout), temp_(path) {}
  StatusOr<uint32_t> NameId(std::string_view name);
  StatusOr<uint32_t> NameOf(uint32_t node);
  StatusOr<uint32_t> NameOfOther(uint32_t node);
  StatusOr<uint32_t> PathOf(uint32_t parent);
  Status BindPartner(const Node& node);
  void BindSpan(sqlite3_stmt* statement, int column, const NodeRows& batch, NodeRows::Span span);
  StatusOr<uint32_t> PathId(std::string_view links);
  Status ReadPart(const char* sql, const std::function<StatusOr<uint32_t>(std::string_view)>& take,
                  std::vector<uint32_t>* numbers);
  Status CopyPart();
  Status CountRows();
  Status Open();
  Status OpenFile(const TempPath& file);
  Status MakeIndexes();
  Status WritePlain(const TempPath& file);
  Status Exec(const char* sql);
  Status Prepare(const char* sql, sqlite3_stmt** statement);
  void BindText(sqlite3_stmt* statement, int column, std::string_view text);
  Status Step(sqlite3_stmt* statement);
  Status Error(const char* what);
  void Close();

  std::string path_;
  VisLayout layout_;
  TempPath temp_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt *node_ = nullptr, *data_ = nullptr, *name_ = nullptr, *links_ = nullptr, *graph_ = nullptr;
  sqlite3_stmt *stack_ = nullptr, *link_ = nullptr;
  int64_t rows_ = 0, data_rows_ = 0, graphs_ = 0;
  Current current_;
  NameTable names_;
  std::unordered_map<uint64_t, uint32_t> paths_;          // by the path above and the name
  std::unordered_map<std::string, uint32_t> part_paths_;  // of appended parts, by their text
  std::vector<std::unique_ptr<SideTable>> tables_;
  std::vector<std::string> indexes_;  // of them
  size_t unbound_ = 0;                // length of a text that was too long to bind
};

}  // namespace msprobe
