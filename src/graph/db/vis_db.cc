#include "graph/db/vis_db.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/interrupt.h"
#include "base/joined_threads.h"
#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "graph/db/vis_bulk.h"
#include "graph/db/vis_plain.h"
#include "graph/db/vis_schema.h"

namespace msprobe {
namespace {

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

VisDb::VisDb(const std::string& path, VisLayout layout) : path_(path), layout_(layout), temp_(path) {}

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
  for (sqlite3_stmt** s : {&name_, &links_, &graph_, &link_, &inherit_}) {
    sqlite3_finalize(*s);
    *s = nullptr;
  }
  for (const auto& table : tables_) {
    sqlite3_finalize(table->insert_);
    table->insert_ = nullptr;
  }
  sqlite3_close(db_);
  db_ = nullptr;
}

Status VisDb::Error(const char* what) {
  const int code = db_ ? sqlite3_errcode(db_) : SQLITE_CANTOPEN;
  if (code == SQLITE_INTERRUPT || InterruptRequested()) return Interrupted();
  const Message why = KnownText(db_ ? sqlite3_errmsg(db_) : "out of memory");
  if (code == SQLITE_CANTOPEN || code == SQLITE_PERM || code == SQLITE_READONLY) {
    return BadInput(Msg("{} cannot be written ({}): choose another output directory", path_, why));
  }
  return InternalError(Msg("{} could not be written while {} ({}): free some space or choose another directory with -o",
                           path_, KnownText(what), why));
}

Status VisDb::OpenFile(const TempPath& file) {
  LeaveMemoryUncounted();
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(file.path().c_str(), &db_, flags, nullptr) != SQLITE_OK) return Error("opening it");
  sqlite3_progress_handler(
      db_, kProgressOps, [](void*) { return InterruptRequested() ? 1 : 0; }, nullptr);
  return Exec(kVisSetup);
}

Status VisDb::Open() {
  MSP_RETURN_IF_ERROR(OpenFile(temp_));
  MSP_RETURN_IF_ERROR(Exec(VisTablesSql().c_str()));
  return Exec("BEGIN");
}

Status VisDb::Exec(const char* sql) {
  return sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK ? OkStatus() : Error("writing tables");
}

Status VisDb::Prepare(const char* sql, sqlite3_stmt** statement) {
  if (*statement) return OkStatus();
  return sqlite3_prepare_v2(db_, sql, -1, statement, nullptr) == SQLITE_OK ? OkStatus() : Error("preparing");
}

Status VisDb::Step(sqlite3_stmt* statement) {
  if (unbound_ > 0) {
    return BadInput(
        Msg("a node of the graph needs a text of {} bytes, more than {} can hold: check the dump", unbound_, path_));
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

int64_t VisDb::rows() const { return bulk_ ? bulk_->rows() : rows_; }

Status VisDb::StartBulk() {
  if (had_bulk_ || rows_ > 0) return InternalError(Msg("{}: rows of graphs were written already", path_));
  for (const std::string& sql : GraphIndexes()) MSP_RETURN_IF_ERROR(Exec(sql.c_str()));
  MSP_RETURN_IF_ERROR(Exec("COMMIT"));
  RootPages roots;
  uint32_t pages = 0;
  sqlite3_stmt* read = nullptr;
  MSP_RETURN_IF_ERROR(
      Prepare("SELECT name, rootpage, (SELECT page_count FROM pragma_page_count()) FROM sqlite_master "
              "WHERE rootpage > 0",
              &read));
  while (sqlite3_step(read) == SQLITE_ROW) {
    const auto* name = reinterpret_cast<const char*>(sqlite3_column_text(read, 0));
    if (name) roots.emplace(name, static_cast<uint32_t>(sqlite3_column_int64(read, 1)));
    pages = static_cast<uint32_t>(sqlite3_column_int64(read, 2));
  }
  if (sqlite3_finalize(read) != SQLITE_OK) return Error("reading its tables");
  Close();
  MSP_ASSIGN_OR_RETURN(bulk_, VisBulk::Start(temp_.path(), path_, pages, std::move(roots)));
  had_bulk_ = true;
  for (const auto& table : tables_) {
    if (!table->inserted_) table->bulk_ = bulk_->Table(table->name_);
  }
  return OkStatus();
}

Status VisDb::EndBulk() {
  rows_ = bulk_->rows();
  const Status status = bulk_->Finish();
  for (const auto& table : tables_) table->bulk_ = nullptr;
  bulk_.reset();
  MSP_RETURN_IF_ERROR(status);
  MSP_RETURN_IF_ERROR(OpenFile(temp_));
  MSP_RETURN_IF_ERROR(Exec("BEGIN"));
  for (const GraphRow& row : graph_rows_) MSP_RETURN_IF_ERROR(AddGraphRow(++graphs_, row));
  graph_rows_.clear();
  const std::string_view texts(link_texts_.data(), link_texts_.size());
  for (const Link& link : link_rows_) {
    MSP_RETURN_IF_ERROR(SetCommunication(link.row, std::string(texts.substr(link.begin, link.size))));
  }
  link_rows_ = {};
  link_texts_ = {};
  for (const int64_t row : inherited_rows_) MSP_RETURN_IF_ERROR(SetInherited(row));
  inherited_rows_ = {};
  return OkStatus();
}

Status VisDb::BeginGraph(const GraphKey& key, const NodeGraph& graph, const NodeGraph* other) {
  if (!bulk_) MSP_RETURN_IF_ERROR(StartBulk());
  current_ = {key, bulk_->rows() + 1, 0};
  bulk_->BeginGraph(graph, other);
  return OkStatus();
}

void VisDb::Expect(const NodeRows& batch) const { bulk_->Expect(batch); }

Status VisDb::AddNode(const NodeRows& batch, const NodeRows::Row& row, int64_t data) {
  return bulk_->AddNode(batch, row, data);
}

StatusOr<int64_t> VisDb::AddData(const NodeRows& batch, NodeRows::Span input, NodeRows::Span output) {
  return bulk_->AddData(batch, input, output);
}

Status VisDb::EndGraph() {
  current_.last = bulk_->rows();
  graph_rows_.push_back(std::move(current_));
  return OkStatus();
}

Status VisDb::AddGraphRow(int64_t graph, const GraphRow& row) {
  MSP_RETURN_IF_ERROR(Prepare("INSERT INTO msprobe_graph VALUES (?,?,?,?,?,?,?,?)", &graph_));
  const std::string id = row.key.id();
  sqlite3_bind_int64(graph_, 1, graph);
  BindText(graph_, 2, id);
  BindText(graph_, 3, row.key.source);
  sqlite3_bind_int(graph_, 4, row.key.step);
  sqlite3_bind_int(graph_, 5, row.key.rank);
  if (row.key.data_dir) {
    BindText(graph_, 6, *row.key.data_dir);
  } else {
    sqlite3_bind_null(graph_, 6);
  }
  sqlite3_bind_int64(graph_, 7, row.first);
  sqlite3_bind_int64(graph_, 8, row.last);
  return Step(graph_);
}

Status VisDb::AddStack(const std::string& id, const std::string& frames_json) {
  return bulk_->AddStack(id, frames_json);
}

Status VisDb::SetCommunication(int64_t row_id, const std::string& json) {
  if (bulk_) {
    link_rows_.push_back({row_id, link_texts_.size(), json.size()});
    link_texts_.append(json.data(), json.size());
    return OkStatus();
  }
  MSP_RETURN_IF_ERROR(Prepare("UPDATE msprobe_node SET communication=? WHERE node=?", &link_));
  BindText(link_, 1, json);
  sqlite3_bind_int64(link_, 2, row_id);
  return Step(link_);
}

Status VisDb::SetInherited(int64_t row_id) {
  if (bulk_) {
    inherited_rows_.push_back(row_id);
    return OkStatus();
  }
  MSP_RETURN_IF_ERROR(Prepare("UPDATE msprobe_precision SET verdict='inherited' WHERE node=?", &inherit_));
  sqlite3_bind_int64(inherit_, 1, row_id);
  return Step(inherit_);
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

std::vector<std::string> VisDb::GraphIndexes() const {
  if (layout_ == VisLayout::kPart) return {};
  if (layout_ == VisLayout::kPlain) return {std::string(kVisChildIndex)};
  return {std::begin(kVisIndexes), std::end(kVisIndexes)};
}

Status VisDb::MakeIndexes(const std::vector<std::string>& all) {
  MSP_RETURN_IF_ERROR(Exec(kVisIndexCache));
  for (const std::string& sql : all) {
    if (InterruptRequested()) return Interrupted();
    if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return Error("building its indexes");
  }
  return OkStatus();
}

Status VisDb::WritePlain(const TempPath& file) {
  MSP_RETURN_IF_ERROR(OpenFile(file));
  MSP_RETURN_IF_ERROR(Exec(kVisIndexCache));
  sqlite3_stmt* attach = nullptr;
  MSP_RETURN_IF_ERROR(Prepare("ATTACH ? AS compact", &attach));
  BindText(attach, 1, temp_.path());
  const Status attached = Step(attach);
  sqlite3_finalize(attach);
  MSP_RETURN_IF_ERROR(attached);
  return Exec(VisPlainSql().c_str());
}

Status VisDb::Finish() {
  if (bulk_) MSP_RETURN_IF_ERROR(EndBulk());
  MSP_RETURN_IF_ERROR(Exec("COMMIT"));
  names_ = NameTable();
  JoinedThreads syncing;
  if (layout_ != VisLayout::kPlain) syncing.Start(StartSync(temp_.path()));
  std::vector<std::string> indexes;
  if (!had_bulk_) indexes = GraphIndexes();
  if (layout_ != VisLayout::kPart) indexes.insert(indexes.end(), indexes_.begin(), indexes_.end());
  const Status indexed = MakeIndexes(indexes);
  syncing.Join();
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
