#include "graph/vis_db.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/text.h"
#include "graph/vis_plain.h"
#include "graph/vis_schema.h"

namespace msprobe {
namespace {

// Everything is appended, so what leaves the cache is written once: a small one costs nothing, and the file grows while
// the rows are made instead of at the end.
constexpr char kSetup[] =
    "PRAGMA page_size=16384; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;"
    "PRAGMA cache_size=-4096;";
// For indexes and their sorter, when nothing else needs memory.
constexpr char kIndexCache[] = "PRAGMA cache_size=-65536;";

constexpr int kProgressOps = 100000;  // virtual machine steps between two looks at the interrupt flag

// Counting its memory costs SQLite a lock at every allocation. Has no effect when SQLite is in use already.
void LeaveMemoryUncounted() { [[maybe_unused]] static const int done = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

/// What is in the file starts its way to the disk, on a thread of its own. Closing drops SQLite's locks, which nobody
/// else asks for: the name is temporary.
std::vector<std::thread> StartSync(const std::string& path) {
  return StartThreads(1, [path] {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
#ifdef __linux__
    (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
#endif
    close(fd);
  });
}

std::string List(const std::vector<int>& v) { return fmt::format("[{}]", fmt::join(v, ", ")); }

}  // namespace

StatusOr<std::unique_ptr<VisDb>> VisDb::Create(const std::string& path, VisLayout layout) {
  std::unique_ptr<VisDb> db(new VisDb(path, layout));
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
  for (sqlite3_stmt** s : {&node_, &data_, &name_, &links_, &graph_, &stack_, &link_}) {
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

Status VisDb::OpenFile(const TempPath& file) {
  LeaveMemoryUncounted();
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(file.path().c_str(), &db_, flags, nullptr) != SQLITE_OK) return Error("opening it");
  sqlite3_progress_handler(
      db_, kProgressOps, [](void*) { return InterruptRequested() ? 1 : 0; }, nullptr);
  return Exec(kSetup);
}

Status VisDb::Open() {
  MSP_RETURN_IF_ERROR(OpenFile(temp_));
  MSP_RETURN_IF_ERROR(Exec(VisTablesSql().c_str()));
  MSP_RETURN_IF_ERROR(Exec("BEGIN"));
  MSP_RETURN_IF_ERROR(Prepare("INSERT INTO msprobe_node VALUES (?,?,?,?,?,?,?,?,0,?,?,?,?,?,NULL,NULL,?)", &node_));
  MSP_RETURN_IF_ERROR(Prepare("INSERT INTO msprobe_data VALUES (?,?,?)", &data_));
  MSP_RETURN_IF_ERROR(Prepare("INSERT INTO msprobe_name VALUES (?,?)", &name_));
  MSP_RETURN_IF_ERROR(Prepare("INSERT INTO msprobe_path VALUES (?,?)", &links_));
  MSP_RETURN_IF_ERROR(Prepare("INSERT INTO msprobe_graph VALUES (?,?,?,?,?,?,?,?)", &graph_));
  MSP_RETURN_IF_ERROR(Prepare("INSERT INTO tb_stack VALUES (?,?)", &stack_));
  MSP_RETURN_IF_ERROR(Prepare("UPDATE msprobe_node SET communication=? WHERE node=?", &link_));
  return NameId("").status();  // the parent of the root is name 0
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

StatusOr<uint32_t> VisDb::NameId(std::string_view name) {
  bool fresh = false;
  const uint32_t id = names_.Add(name, &fresh);
  if (fresh) {
    sqlite3_bind_int64(name_, 1, id);
    BindText(name_, 2, name);
    MSP_RETURN_IF_ERROR(Step(name_));
  }
  return id;
}

StatusOr<uint32_t> VisDb::NameOf(uint32_t node) {
  uint32_t& id = current_.names[node];
  if (id == kNoIndex) {
    MSP_ASSIGN_OR_RETURN(id, NameId(current_.graph->nodes[node].name));
  }
  return id;
}

StatusOr<uint32_t> VisDb::NameOfOther(uint32_t node) {
  uint32_t& id = current_.other_names[node];
  if (id == kNoIndex) {
    MSP_ASSIGN_OR_RETURN(id, NameId(current_.other->nodes[node].name));
  }
  return id;
}

// The ancestors of a partner, root first, as the beginning of a JSON list. Brothers share it, and so do all ranks.
StatusOr<uint32_t> VisDb::PathOf(uint32_t parent) {
  const std::vector<uint32_t> chain = current_.other->PathTo(parent);
  std::string text = "[";
  uint64_t key = 0;
  for (size_t i = 0;; ++i) {
    const auto [it, fresh] = paths_.try_emplace(key, static_cast<uint32_t>(paths_.size()));
    const uint32_t path = it->second;
    if (fresh) {
      sqlite3_bind_int64(links_, 1, path);
      BindText(links_, 2, text);
      MSP_RETURN_IF_ERROR(Step(links_));
    }
    if (i == chain.size()) return path;
    MSP_ASSIGN_OR_RETURN(const uint32_t name, NameOfOther(chain[i]));
    key = (uint64_t{path} + 1) << 32 | name;
    AppendJsonString(text, current_.other->nodes[chain[i]].name);
    text += ", ";
  }
}

Status VisDb::BeginGraph(const GraphKey& key, const NodeGraph& graph, const NodeGraph* other) {
  current_ = {key, &graph, other, rows_ + 1, {}, {}, {}};
  current_.names.assign(graph.nodes.size(), kNoIndex);
  names_.Reserve(graph.nodes.size());  // other graphs mostly have the same names
  if (!other) return OkStatus();
  current_.other_names.assign(other->nodes.size(), kNoIndex);
  current_.other_paths.assign(other->nodes.size(), kNoIndex);
  return OkStatus();
}

Status VisDb::EndGraph() {
  const std::string id = current_.key.id();
  sqlite3_bind_int64(graph_, 1, ++graphs_);
  BindText(graph_, 2, id);
  BindText(graph_, 3, current_.key.source);
  sqlite3_bind_int(graph_, 4, current_.key.step);
  sqlite3_bind_int(graph_, 5, current_.key.rank);
  if (current_.key.data_dir) {
    BindText(graph_, 6, *current_.key.data_dir);
  } else {
    sqlite3_bind_null(graph_, 6);
  }
  sqlite3_bind_int64(graph_, 7, current_.first);
  sqlite3_bind_int64(graph_, 8, rows_);
  MSP_RETURN_IF_ERROR(Step(graph_));
  current_ = {};
  return OkStatus();
}

StatusOr<int64_t> VisDb::AddData(const NodeRows& batch, NodeRows::Span input, NodeRows::Span output) {
  if (input.size == 0 && output.size == 0) return 0;
  sqlite3_bind_int64(data_, 1, ++data_rows_);
  BindSpan(data_, 2, batch, input);
  BindSpan(data_, 3, batch, output);
  MSP_RETURN_IF_ERROR(Step(data_));
  return data_rows_;
}

void VisDb::BindSpan(sqlite3_stmt* statement, int column, const NodeRows& batch, NodeRows::Span span) {
  if (span.size == 0) {
    sqlite3_bind_null(statement, column);
  } else {
    BindText(statement, column, std::string_view(batch.text).substr(span.begin, span.size));
  }
}

Status VisDb::AddNode(const NodeRows& batch, const NodeRows::Row& row, int64_t data) {
  const Node& node = current_.graph->nodes[row.node];
  MSP_ASSIGN_OR_RETURN(const uint32_t name, NameOf(row.node));
  uint32_t up = 0;
  if (node.parent != kNoIndex) {
    MSP_ASSIGN_OR_RETURN(up, NameOf(node.parent));
  }
  sqlite3_bind_int64(node_, 1, rows_ + 1);
  sqlite3_bind_int64(node_, 2, name);
  sqlite3_bind_int64(node_, 3, up);
  sqlite3_bind_int64(node_, 4, static_cast<int64_t>(node.children.size()));
  sqlite3_bind_int(node_, 5, static_cast<int>(node.type));
  sqlite3_bind_int(node_, 6, std::max(node.micro_step, 0));
  sqlite3_bind_int64(node_, 7, row.stack);
  sqlite3_bind_int(node_, 8, row.distributed ? 1 : 0);
  if (row.precision == Precision::kNone) {
    sqlite3_bind_null(node_, 9);
  } else {
    sqlite3_bind_double(node_, 9, static_cast<int>(row.precision) / 2.0);
  }
  if (row.overflow == Overflow::kNone) {
    sqlite3_bind_null(node_, 10);
  } else {
    BindText(node_, 10, OverflowName(row.overflow));
  }
  MSP_RETURN_IF_ERROR(BindPartner(node));
  if (data == 0) {
    sqlite3_bind_null(node_, 13);
  } else {
    sqlite3_bind_int64(node_, 13, data);
  }
  BindSpan(node_, 14, batch, row.merge_info);
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

SideTable& SideTable::Blob(std::string_view bytes) {
  sqlite3_bind_blob64(insert_, ++bound_, bytes.empty() ? "" : bytes.data(), bytes.size(), SQLITE_STATIC);
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

Status VisDb::BindPartner(const Node& node) {
  if (node.match == kNoIndex || !current_.other) {
    sqlite3_bind_null(node_, 11);
    sqlite3_bind_null(node_, 12);
    return OkStatus();
  }
  MSP_ASSIGN_OR_RETURN(const uint32_t partner, NameOfOther(node.match));
  const uint32_t up = current_.other->nodes[node.match].parent;
  uint32_t path = up == kNoIndex ? kNoIndex : current_.other_paths[up];
  if (path == kNoIndex) {
    MSP_ASSIGN_OR_RETURN(path, PathOf(up));
    if (up != kNoIndex) current_.other_paths[up] = path;
  }
  sqlite3_bind_int64(node_, 11, partner);
  sqlite3_bind_int64(node_, 12, path);
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

Status VisDb::MakeIndexes() {
  if (layout_ == VisLayout::kPart) return OkStatus();
  names_ = NameTable();
  MSP_RETURN_IF_ERROR(Exec(kIndexCache));
  std::vector<std::string> all(std::begin(kVisIndexes), std::end(kVisIndexes));
  if (layout_ == VisLayout::kPlain) all = {std::string(kVisChildIndex)};
  all.insert(all.end(), indexes_.begin(), indexes_.end());
  for (const std::string& sql : all) {
    if (InterruptRequested()) return Interrupted();
    if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return Error("building its indexes");
  }
  return OkStatus();
}

Status VisDb::WritePlain(const TempPath& file) {
  MSP_RETURN_IF_ERROR(OpenFile(file));
  MSP_RETURN_IF_ERROR(Exec(kIndexCache));
  sqlite3_stmt* attach = nullptr;
  MSP_RETURN_IF_ERROR(Prepare("ATTACH ? AS compact", &attach));
  BindText(attach, 1, temp_.path());
  const Status attached = Step(attach);
  sqlite3_finalize(attach);
  MSP_RETURN_IF_ERROR(attached);
  return Exec(VisPlainSql().c_str());
}

Status VisDb::Finish() {
  MSP_RETURN_IF_ERROR(Exec("COMMIT"));
  std::vector<std::thread> syncing;
  if (layout_ != VisLayout::kPlain) syncing = StartSync(temp_.path());
  const Status indexed = MakeIndexes();
  for (std::thread& thread : syncing) thread.join();
  MSP_RETURN_IF_ERROR(indexed);
  Close();
  TempPath plain(path_);
  TempPath& result = layout_ == VisLayout::kPlain ? plain : temp_;
  if (layout_ == VisLayout::kPlain) {
    const Status written = WritePlain(plain);
    Close();
    MSP_RETURN_IF_ERROR(written);
  }
  MSP_RETURN_IF_ERROR(result.CommitResult());
  path_ = result.final_path();
  return OkStatus();
}

}  // namespace msprobe
