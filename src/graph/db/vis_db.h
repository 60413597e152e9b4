// The `.vis.db` file: what the graph page and existing viewers read. SQLite with a fixed schema.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/big_array.h"
#include "base/file.h"
#include "base/status.h"
#include "graph/db/name_table.h"
#include "graph/db/sql_record.h"
#include "graph/db/vis_rows.h"
#include "graph/tree/node_graph.h"

struct sqlite3;
struct sqlite3_stmt;

namespace msprobe {

struct VisConfig {
  bool compare = false;
  std::string task, tool_tip, node_colors;  // empty tool_tip: NULL
  int micro_steps = 1;
  bool overflow_check = false;
  std::vector<int> ranks, steps;
};

class BTreeWriter;
class VisBulk;

/// One of our own tables in a graph file, beside those that older viewers read. Values are given from left to right;
/// texts must live until Add().
class SideTable {
 public:
  SideTable& Int(int64_t v);
  SideTable& Real(double v);  // NaN becomes NULL
  SideTable& Text(std::string_view text);
  SideTable& Blob(std::string_view bytes);
  SideTable& Null();
  /// Writes the row; columns that were not given are NULL. Of a table with a key for its row ids they ascend.
  Status Add();

 private:
  friend class VisDb;
  SideTable(class VisDb* db, std::string name, int columns) : db_(db), name_(std::move(name)), columns_(columns) {}
  /// Of the next value; of the first one it says how the row is written.
  int Column();
  Status AddToBulk();

  class VisDb* db_;
  std::string name_;
  int columns_;
  bool keyed_ = false;     // the first column is the row id
  bool inserted_ = false;  // rows are always inserted
  int bound_ = 0;
  sqlite3_stmt* insert_ = nullptr;
  BTreeWriter* bulk_ = nullptr;  // takes the rows now
  int64_t row_ = 0, last_ = 0;
  SqlRecord record_;
};

enum class VisLayout : uint8_t {
  kCompact,  // tb_nodes is a view of our tables
  kPlain,    // nothing but the three tables of earlier tools
  kPart,     // compact, without indexes: to be appended to another
};

/// Writes one database; the file appears under its name at Finish() or not at all. SQLite makes the tables and fills
/// the small ones; the rows of graphs are written as pages in between, while SQLite has the file closed.
class VisDb {
 public:
  static StatusOr<std::unique_ptr<VisDb>> Create(const std::string& path, VisLayout layout = VisLayout::kCompact);
  ~VisDb();
  /// The rows that follow are nodes of `graph`, in the order of graph.order; `other` is what Node::match refers to.
  /// Both must live until EndGraph().
  Status BeginGraph(const GraphKey& key, const NodeGraph& graph, const NodeGraph* other);
  /// These rows are added next.
  void Expect(const NodeRows& batch) const;
  /// Row ids count up from 1 in the order of adding. `data` is where AddData() put the texts, 0 for none.
  Status AddNode(const NodeRows& batch, const NodeRows::Row& row, int64_t data);
  /// Packed texts of a node, of this graph or the next. Returns their id, 0 when both are empty.
  StatusOr<int64_t> AddData(const NodeRows& batch, NodeRows::Span input, NodeRows::Span output);
  Status EndGraph();
  /// After the first BeginGraph().
  Status AddStack(const std::string& id, const std::string& frames_json);
  /// Before the first BeginGraph().
  Status SetConfig(const VisConfig& config);
  /// Makes the table msprobe_<name> with these column definitions ("node INTEGER PRIMARY KEY, error REAL");
  /// docs/en/graph/database.md lists them all. Nodes are named by their row id in tb_nodes. The table belongs to the
  /// database, and `index`, when given, is made at the end: "name (columns)".
  StatusOr<SideTable*> MakeTable(std::string_view name, std::string_view columns, std::string_view index = {});
  Status SetCommunication(int64_t row_id, const std::string& json);
  /// The node's row in msprobe_precision says "inherited": what it seemed to begin came from elsewhere.
  Status SetInherited(int64_t row_id);
  /// Puts the rows of a finished part behind those that are here, with the configuration of the first one: the result
  /// is what adding them one by one makes. Tables that are not here are left out. Not between graphs.
  Status Append(const std::string& part);
  Status Finish();
  int64_t rows() const;
  /// Where the file is after Finish(): another name when a result with that one was there already.
  const std::string& path() const { return path_; }

 private:
  friend class SideTable;
  struct GraphRow {
    GraphKey key;
    int64_t first = 0, last = 0;
  };
  /// What SetCommunication() was told while the rows were being written: the texts are one behind the other.
  struct Link {
    int64_t row = 0;
    uint64_t begin = 0, size = 0;
  };
  VisDb(const std::string& path, VisLayout layout);
  Status StartBulk();
  Status EndBulk();
  Status AddGraphRow(int64_t graph, const GraphRow& row);
  Status AddName(std::string_view name, uint32_t* id);
  Status AddPath(std::string_view links, uint32_t* id);
  Status ReadPart(const char* sql, const std::function<Status(std::string_view, uint32_t*)>& take,
                  std::vector<uint32_t>* numbers);
  Status CopyPart();
  Status CountRows();
  Status Open();
  Status OpenFile(const TempPath& file);
  Status MakeIndexes(const std::vector<std::string>& all);
  std::vector<std::string> GraphIndexes() const;
  Status WritePlain(const TempPath& file);
  Status Exec(const char* sql);
  /// When it is not prepared yet.
  Status Prepare(const char* sql, sqlite3_stmt** statement);
  void BindText(sqlite3_stmt* statement, int column, std::string_view text);
  Status Step(sqlite3_stmt* statement);
  Status Error(const char* what);
  void Close();

  std::string path_;
  VisLayout layout_;
  TempPath temp_;
  sqlite3* db_ = nullptr;  // null while bulk_ has the file
  std::unique_ptr<VisBulk> bulk_;
  sqlite3_stmt *name_ = nullptr, *links_ = nullptr, *graph_ = nullptr, *link_ = nullptr, *inherit_ = nullptr;
  int64_t rows_ = 0, data_rows_ = 0, graphs_ = 0;
  GraphRow current_;
  std::vector<GraphRow> graph_rows_;
  BigArray<Link> link_rows_;
  BigArray<char> link_texts_;
  std::vector<int64_t> inherited_rows_;                   // told while the rows were being written
  bool had_bulk_ = false;                                 // the indexes of the graphs' tables are made
  NameTable names_;                                       // of appended parts
  std::unordered_map<std::string, uint32_t> part_paths_;  // of them, by their text
  std::vector<std::unique_ptr<SideTable>> tables_;
  std::vector<std::string> indexes_;  // of them
  size_t unbound_ = 0;                // length of a text that was too long to bind
};

}  // namespace msprobe
