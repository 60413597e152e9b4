#include "graph/vis_db.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>

#include "base/interrupt.h"
#include "base/text.h"

namespace msprobe {
namespace {

// Rows of a compared graph are some kilobytes long. On large pages they need no overflow pages, so the seven scans that
// build the indexes read the table in one go. 64 MiB of page cache bound the memory, also that of the sorter behind the
// indexes.
constexpr char kSetup[] =
    "PRAGMA page_size=16384; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;"
    "PRAGMA cache_size=-65536;";

constexpr char kTables[] =
    "CREATE TABLE tb_nodes (\n    id TEXT PRIMARY KEY,\n    graph_id TEXT NOT NULL,\n    node_order INTEGER NOT NULL,\n"
    "    node_name TEXT NOT NULL,\n    node_type TEXT NOT NULL,\n    up_node TEXT,\n    sub_nodes TEXT,\n"
    "    precision_index INTEGER,\n    overflow_level TEXT,\n    micro_step_id INTEGER NOT NULL,\n"
    "    matched_node_link TEXT,\n    stack_id TEXT,\n    parallel_merge_info TEXT,\n    matched_distributed TEXT,\n"
    "    modified INTEGER NOT NULL,\n    input_data TEXT,\n    output_data TEXT,\n    data_source TEXT,\n"
    "    dump_data_dir TEXT,\n    step INTEGER NOT NULL,\n    rank INTEGER NOT NULL,\n    is_distributed INTEGER\n);"
    "CREATE TABLE tb_stack (\n    id TEXT PRIMARY KEY,\n    stack_info TEXT\n);"
    "CREATE TABLE tb_config (\n    id TEXT PRIMARY KEY,\n    graph_type TEXT NOT NULL,\n    task TEXT,\n    tool_tip "
    "TEXT,\n"
    "    micro_steps INTEGER,\n    overflow_check INTEGER,\n    node_colors TEXT NOT NULL,\n    rank_list TEXT NOT "
    "NULL,\n"
    "    step_list TEXT NOT NULL\n);";

constexpr std::array<const char*, 7> kIndexes{
    "CREATE INDEX index1 ON tb_nodes (step, rank, data_source, up_node, node_order)",
    "CREATE INDEX index2 ON tb_nodes (step, rank, data_source, node_name)",
    "CREATE INDEX index3 ON tb_nodes (step, rank, data_source, node_order)",
    "CREATE INDEX index4 ON tb_nodes (step, rank, node_order)",
    "CREATE INDEX index5 ON tb_nodes (step, rank, micro_step_id, node_order)",
    "CREATE INDEX index6 ON tb_nodes (step, rank, modified, matched_node_link)",
    "CREATE INDEX index7 ON tb_nodes (is_distributed)"};

constexpr int kProgressOps = 100000;  // virtual machine steps between two looks at the interrupt flag

std::string List(const std::vector<int>& v) { return fmt::format("[{}]", fmt::join(v, ", ")); }

}  // namespace

StatusOr<std::unique_ptr<VisDb>> VisDb::Create(const std::string& path) {
  std::unique_ptr<VisDb> db(new VisDb(path));
  MSP_RETURN_IF_ERROR(db->Open());
  return db;
}

VisDb::~VisDb() { Close(); }

void VisDb::BindText(sqlite3_stmt* s, int column, std::string_view text) {
  const int rc =
      sqlite3_bind_text64(s, column, text.data() ? text.data() : "", text.size(), SQLITE_STATIC, SQLITE_UTF8);
  if (rc != SQLITE_OK) unbound_ = text.size();
}

void VisDb::Close() {
  for (sqlite3_stmt** s : {&node_, &stack_, &link_}) {
    sqlite3_finalize(*s);
    *s = nullptr;
  }
  for (const auto& table : tables_) sqlite3_finalize(table->insert_);
  tables_.clear();
  sqlite3_close(db_);
  db_ = nullptr;
}

Status VisDb::Error(const char* what) {
  const int code = db_ ? sqlite3_errcode(db_) : SQLITE_CANTOPEN;
  if (code == SQLITE_INTERRUPT || InterruptRequested()) return Interrupted();
  const std::string why = db_ ? sqlite3_errmsg(db_) : "out of memory";
  if (code == SQLITE_CANTOPEN || code == SQLITE_PERM || code == SQLITE_READONLY) {
    return BadInput(fmt::format("{} cannot be written ({}): choose another output directory with -o", path_, why));
  }
  return InternalError(fmt::format(
      "{} could not be written while {} ({}): free some space or choose another directory with -o", path_, what, why));
}

Status VisDb::Open() {
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(temp_.path().c_str(), &db_, flags, nullptr) != SQLITE_OK) return Error("opening it");
  sqlite3_progress_handler(
      db_, kProgressOps, [](void*) { return InterruptRequested() ? 1 : 0; }, nullptr);
  MSP_RETURN_IF_ERROR(Exec(kSetup));
  MSP_RETURN_IF_ERROR(Exec(kTables));
  MSP_RETURN_IF_ERROR(Exec("BEGIN"));
  MSP_RETURN_IF_ERROR(Prepare("INSERT INTO tb_nodes VALUES (?,?,?,?,?,?,?,?,?,?,?,?,'',?,0,?,?,?,?,?,?,?)", &node_));
  MSP_RETURN_IF_ERROR(Prepare("INSERT INTO tb_stack VALUES (?,?)", &stack_));
  return Prepare("UPDATE tb_nodes SET matched_distributed=? WHERE rowid=?", &link_);
}

Status VisDb::Exec(const char* sql) {
  return sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK ? OkStatus() : Error("writing tables");
}

Status VisDb::Prepare(const char* sql, sqlite3_stmt** statement) {
  return sqlite3_prepare_v2(db_, sql, -1, statement, nullptr) == SQLITE_OK ? OkStatus() : Error("preparing");
}

Status VisDb::Step(sqlite3_stmt* statement) {
  if (unbound_ > 0) {
    return BadInput(fmt::format("a node of the graph needs a text of {} bytes, more than {} can hold: check the dump",
                                unbound_, path_));
  }
  const int rc = sqlite3_step(statement);
  if (rc != SQLITE_DONE) {
    Status error = Error("adding rows");
    sqlite3_reset(statement);
    return error;
  }
  sqlite3_reset(statement);
  return OkStatus();
}

Status VisDb::AddNode(const GraphKey& key, const NodeRows& batch, const NodeRows::Row& row) {
  static constexpr std::array<std::string_view, 10> kTypes{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  const std::string graph_id = key.id();
  const auto text = [&](int column, NodeRows::Span span) {
    BindText(node_, column, std::string_view(batch.text).substr(span.begin, span.size));
  };
  text(1, row.id);
  BindText(node_, 2, graph_id);
  sqlite3_bind_int64(node_, 3, row.order);
  text(4, row.name);
  BindText(node_, 5, kTypes[static_cast<size_t>(row.type)]);
  text(6, row.up_node);
  text(7, row.sub_nodes);
  if (row.precision == Precision::kNone) {
    sqlite3_bind_null(node_, 8);
  } else {
    sqlite3_bind_double(node_, 8, static_cast<int>(row.precision) / 2.0);
  }
  if (row.overflow == Overflow::kNone) {
    sqlite3_bind_null(node_, 9);
  } else {
    BindText(node_, 9, OverflowName(row.overflow));
  }
  sqlite3_bind_int(node_, 10, row.micro_step);
  text(11, row.link);
  text(12, row.stack_id);
  BindText(node_, 13, "{}");
  text(14, row.input);
  text(15, row.output);
  BindText(node_, 16, key.source);
  if (key.data_dir) {
    BindText(node_, 17, *key.data_dir);
  } else {
    sqlite3_bind_null(node_, 17);
  }
  sqlite3_bind_int(node_, 18, key.step);
  sqlite3_bind_int(node_, 19, key.rank);
  sqlite3_bind_int(node_, 20, row.distributed ? 1 : 0);
  MSP_RETURN_IF_ERROR(Step(node_));
  ++rows_;
  return OkStatus();
}

StatusOr<SideTable*> VisDb::MakeTable(std::string_view name, std::string_view columns, std::string_view index) {
  MSP_RETURN_IF_ERROR(Exec(fmt::format("CREATE TABLE msprobe_{} ({})", name, columns).c_str()));
  // A table constraint would have parentheses; columns are separated by plain commas.
  const auto count = 1 + std::count(columns.begin(), columns.end(), ',');
  std::string sql = fmt::format("INSERT INTO msprobe_{} VALUES (?", name);
  for (auto i = count; i > 1; --i) sql += ",?";
  sqlite3_stmt* insert = nullptr;
  MSP_RETURN_IF_ERROR(Prepare((sql + ")").c_str(), &insert));
  tables_.emplace_back(new SideTable(this, insert));
  if (!index.empty()) {
    const size_t open = index.find('(');
    indexes_.push_back(
        fmt::format("CREATE INDEX msprobe_{}ON msprobe_{} {}", index.substr(0, open), name, index.substr(open)));
  }
  return tables_.back().get();
}

SideTable& SideTable::Int(int64_t v) {
  sqlite3_bind_int64(insert_, ++bound_, v);
  return *this;
}

SideTable& SideTable::Real(double v) {
  sqlite3_bind_double(insert_, ++bound_, v);
  return *this;
}

SideTable& SideTable::Text(std::string_view text) {
  db_->BindText(insert_, ++bound_, text);
  return *this;
}

SideTable& SideTable::Null() {
  sqlite3_bind_null(insert_, ++bound_);
  return *this;
}

Status SideTable::Add() {
  MSP_RETURN_IF_ERROR(db_->Step(insert_));
  sqlite3_clear_bindings(insert_);
  bound_ = 0;
  return OkStatus();
}

Status VisDb::AddStack(const std::string& id, const std::string& frames_json) {
  BindText(stack_, 1, id);
  BindText(stack_, 2, frames_json);
  return Step(stack_);
}

Status VisDb::SetCommunication(int64_t row_id, const std::string& json) {
  BindText(link_, 1, json);
  sqlite3_bind_int64(link_, 2, row_id);
  return Step(link_);
}

Status VisDb::SetConfig(const VisConfig& config) {
  sqlite3_stmt* s = nullptr;
  MSP_RETURN_IF_ERROR(Prepare("INSERT INTO tb_config VALUES ('1',?,?,?,?,?,?,?,?)", &s));
  const std::string ranks = List(config.ranks), steps = List(config.steps);
  BindText(s, 1, config.compare ? "compare" : "build");
  BindText(s, 2, config.task);
  if (config.tool_tip.empty()) {
    sqlite3_bind_null(s, 3);
  } else {
    BindText(s, 3, config.tool_tip);
  }
  sqlite3_bind_int(s, 4, config.micro_steps);
  sqlite3_bind_int(s, 5, config.overflow_check ? 1 : 0);
  BindText(s, 6, config.node_colors);
  BindText(s, 7, ranks);
  BindText(s, 8, steps);
  Status status = Step(s);
  sqlite3_finalize(s);
  return status;
}

Status VisDb::Finish() {
  MSP_RETURN_IF_ERROR(Exec("COMMIT"));
  for (const char* sql : kIndexes) {
    if (InterruptRequested()) return Interrupted();
    if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return Error("building its indexes");
  }
  for (const std::string& sql : indexes_) {
    if (InterruptRequested()) return Interrupted();
    if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return Error("building its indexes");
  }
  Close();
  MSP_RETURN_IF_ERROR(temp_.CommitResult());
  path_ = temp_.final_path();
  return OkStatus();
}

}  // namespace msprobe
