#include "view/file/vis_file.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/message.h"
#include "graph/db/vis_schema.h"

namespace msprobe::view {
namespace {

constexpr size_t kIdleConnections = 4;
constexpr size_t kMaxListed = 100000;

// A view or virtual table of that name could run anything; only plain tables are read. In files of the compact layout
// tb_nodes is a view, and what stands behind it is read with SQL of our own.
constexpr std::string_view kTablesSql =
    "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('tb_nodes', 'tb_stack', 'tb_config') "
    "AND rootpage > 0";
constexpr std::string_view kCompactTablesSql =
    "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('msprobe_graph', 'msprobe_name', "
    "'msprobe_path', 'msprobe_node', 'msprobe_data', 'tb_stack', 'tb_config') AND rootpage > 0";
constexpr std::string_view kCompactGraphSql =
    "SELECT n.node, n.node - g.first, s.name, n.type, u.name, n.precision_index, n.overflow_level, n.micro_step, "
    "coalesce(n.link, '[' || json_quote((SELECT p.name FROM msprobe_name p WHERE p.name_id = n.match)) || ']') "
    "FROM msprobe_graph g JOIN msprobe_node n ON n.node BETWEEN g.first AND g.last "
    "JOIN msprobe_name s ON s.name_id = n.name_id JOIN msprobe_name u ON u.name_id = n.up "
    "WHERE g.step = ?1 AND g.rank = ?2 AND g.data_source = ?3 ORDER BY n.node";
constexpr std::string_view kGraphSql =
    "SELECT rowid, node_order, node_name, node_type, up_node, precision_index, overflow_level, micro_step_id, "
    "matched_node_link FROM tb_nodes WHERE step = ?1 AND rank = ?2 AND data_source = ?3 ORDER BY node_order, rowid";
constexpr std::string_view kRecordSql =
    "SELECT n.input_data, n.output_data, s.stack_info, n.parallel_merge_info, n.matched_distributed "
    "FROM tb_nodes n LEFT JOIN tb_stack s ON s.id = n.stack_id WHERE n.rowid = ?1";
std::string CompactRecordSql() {
  return fmt::format(
      "SELECT {}, {}, t.stack_info, n.merge_info, n.communication "
      "FROM msprobe_node n JOIN msprobe_graph g ON n.node BETWEEN g.first AND g.last "
      "JOIN msprobe_name s ON s.name_id = n.name_id LEFT JOIN tb_stack t ON t.id = g.graph_id || '_' || n.stack "
      "WHERE n.node = ?1",
      UnpackSql("input", "n.data", "s.name"), UnpackSql("output", "n.data", "s.name"));
}
constexpr std::string_view kConfigSql =
    "SELECT graph_type, task, tool_tip, micro_steps, overflow_check, node_colors, rank_list, step_list "
    "FROM tb_config ORDER BY id LIMIT 1";

constexpr std::string_view kPathsSql = "SELECT key, value FROM msprobe_meta WHERE key IN ('target', 'golden')";
constexpr std::string_view kJudgedSql = "SELECT EXISTS (SELECT 1 FROM msprobe_precision)";

void Tidy(std::vector<int64_t>* list) {
  std::sort(list->begin(), list->end());
  list->erase(std::unique(list->begin(), list->end()), list->end());
  if (list->size() > kMaxListed) list->resize(kMaxListed);
}

/// What was compared; files of earlier versions do not say.
Status ReadPaths(const SqliteDb& db, VisSettings* settings) {
  MSP_ASSIGN_OR_RETURN(const bool known, VisFile::HasTable(db, "msprobe_meta"));
  if (!known) return OkStatus();
  MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(kPathsSql));
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) return OkStatus();
    (query.Text(0) == "target" ? settings->target : settings->golden) = query.Text(1);
  }
}

StatusOr<int64_t> Count(const SqliteDb& db, std::string_view sql) {
  MSP_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(sql));
  MSP_ASSIGN_OR_RETURN(const bool row, query.Step());
  return row ? query.Int(0) : 0;
}

StatusOr<std::vector<int64_t>> Distinct(const SqliteDb& db, std::string_view column, std::string_view table) {
  MSP_ASSIGN_OR_RETURN(SqliteStatement query,
                       db.Prepare(fmt::format("SELECT DISTINCT {} FROM {} LIMIT {}", column, table, kMaxListed)));
  std::vector<int64_t> values;
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) return values;
    values.push_back(query.Int(0));
  }
}

}  // namespace

// Statements go before the database that they belong to.
struct VisFile::Connection {
  SqliteDb db;
  SqliteStatement graph, record;
  bool compact = false;
};

// A connection goes back to the pool only after a query that ended well.
class VisFile::Lease {
 public:
  Lease(const VisFile* file, std::unique_ptr<Connection> connection)
      : file_(file), connection_(std::move(connection)) {}
  Connection* operator->() { return connection_.get(); }
  Connection* get() { return connection_.get(); }
  void Return() { file_->GiveBack(std::move(connection_)); }

 private:
  const VisFile* file_;
  std::unique_ptr<Connection> connection_;
};

Verdict VisFile::LevelOf(double index) const {
  if (md5_inverted_) index = 1 - index;
  // The bounds of the colours; files of earlier tools hold any value between 0 and 1.
  if (index >= 0.6) return Verdict::kError;
  if (index >= 0.3) return Verdict::kWarning;
  return Verdict::kPass;
}

VisFile::VisFile(std::string path, std::string_view shown) : path_(std::move(path)), shown_(shown) {}

VisFile::~VisFile() = default;

StatusOr<std::unique_ptr<VisFile>> VisFile::Open(const std::string& path, std::string_view shown) {
  auto file = std::unique_ptr<VisFile>(new VisFile(path, shown));
  if (IsVisJsonName(shown)) {
    MSP_ASSIGN_OR_RETURN(file->json_, VisJsonFile::Open(path, shown, &file->config_));
    return file;
  }
  auto connection = file->Connect();
  if (!connection.ok()) {
    struct stat wal {};
    if (connection.status().code() == Code::kBadInput && stat((path + "-wal").c_str(), &wal) == 0 && wal.st_size > 0) {
      return BadInput(Msg("{} is still being written (its -wal file is not empty): wait for the writer to end", shown));
    }
    return connection.status();
  }
  MSP_RETURN_IF_ERROR(file->ReadConfig(connection->get()));
  file->GiveBack(*std::move(connection));
  return file;
}

StatusOr<std::unique_ptr<VisFile::Connection>> VisFile::Connect() const {
  MSP_ASSIGN_OR_RETURN(SqliteDb db, SqliteDb::OpenImmutable(path_, shown_));
  MSP_ASSIGN_OR_RETURN(const int64_t tables, Count(db, kTablesSql));
  bool compact = false;
  if (tables == 2) {
    MSP_ASSIGN_OR_RETURN(const int64_t ours, Count(db, kCompactTablesSql));
    compact = ours == 7;
  }
  if (tables != 3 && !compact) {
    return BadInput(
        Msg("{} is not a graph database (tb_nodes, tb_stack or tb_config is missing): graph_visualize of msprobe "
            "writes such files",
            shown_));
  }
  MSP_ASSIGN_OR_RETURN(SqliteStatement graph, db.Prepare(compact ? kCompactGraphSql : kGraphSql));
  MSP_ASSIGN_OR_RETURN(SqliteStatement record, db.Prepare(compact ? CompactRecordSql() : std::string(kRecordSql)));
  return std::unique_ptr<Connection>(new Connection{std::move(db), std::move(graph), std::move(record), compact});
}

StatusOr<std::unique_ptr<VisFile::Connection>> VisFile::Borrow() const {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return Connect();
}

void VisFile::GiveBack(std::unique_ptr<Connection> connection) const {
  std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleConnections) idle_.push_back(std::move(connection));
}

Status VisFile::ReadConfig(Connection* connection) {
  MSP_ASSIGN_OR_RETURN(SqliteStatement query, connection->db.Prepare(kConfigSql));
  MSP_ASSIGN_OR_RETURN(const bool row, query.Step());
  if (!row) return BadInput(Msg("{} has no row in tb_config: its writer was interrupted, write it again", shown_));
  compact_ = connection->compact;
  config_.compared = query.Text(0) == "compare";
  config_.task = query.Text(1);
  config_.tool_tip_json = ObjectText(query.Text(2));
  config_.micro_steps = query.Int(3);
  config_.overflow_check = query.Int(4) != 0;
  config_.colors_json = ObjectText(query.Text(5));
  config_.ranks = ParseInts(query.Text(6));
  config_.steps = ParseInts(query.Text(7));
  const std::string_view table = connection->compact ? "msprobe_graph" : "tb_nodes";
  if (config_.ranks.empty()) {
    MSP_ASSIGN_OR_RETURN(config_.ranks, Distinct(connection->db, "rank", table));
  }
  if (config_.steps.empty()) {
    MSP_ASSIGN_OR_RETURN(config_.steps, Distinct(connection->db, "step", table));
  }
  if (compact_) {
    MSP_RETURN_IF_ERROR(ReadPaths(connection->db, &config_));
    MSP_ASSIGN_OR_RETURN(const bool judged, HasTable(connection->db, "msprobe_precision"));
    if (judged) {
      MSP_ASSIGN_OR_RETURN(const int64_t rows, Count(connection->db, kJudgedSql));
      config_.verdicts = rows > 0;
    }
  }
  Tidy(&config_.ranks);
  Tidy(&config_.steps);
  // Writers older than the is_distributed column stored 1 for equal checksums and 0 for different ones.
  if (config_.task != "md5" || connection->compact) return OkStatus();
  MSP_ASSIGN_OR_RETURN(
      const int64_t columns,
      Count(connection->db, "SELECT count(*) FROM pragma_table_info('tb_nodes') WHERE name = 'is_distributed'"));
  md5_inverted_ = columns == 0;
  return OkStatus();
}

Status VisFile::InFile(const Status& status) const {
  return status.ok() ? status : BadInput(Msg("{} {}", shown_, status.text()));
}

Status VisFile::LoadSide(int64_t step, int64_t rank, std::string_view side, Tree* out) const {
  if (json_) return step == config_.steps[0] && rank == config_.ranks[0] ? json_->LoadSide(side, out) : OkStatus();
  MSP_ASSIGN_OR_RETURN(auto borrowed, Borrow());
  Lease lease(this, std::move(borrowed));
  SqliteStatement& query = lease->graph;
  query.Reset();
  query.Bind(1, step);
  query.Bind(2, rank);
  query.Bind(3, side);
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) break;
    TreeNode node;
    node.rowid = query.Int(0);
    node.order = query.Int(1);
    node.type = static_cast<uint8_t>(std::clamp<int64_t>(query.Int(3), 0, 9));
    if (query.IsNumber(5)) node.level = LevelOf(query.Real(5));
    node.overflow = OverflowOf(query.Text(6));
    node.micro_step = query.Int(7);
    MSP_RETURN_IF_ERROR(InFile(out->Add(node, query.Text(2), query.Text(4), LastText(query.Text(8)))));
  }
  query.Reset();
  lease.Return();
  out->Link();
  return OkStatus();
}

StatusOr<NodeRecord> VisFile::LoadRecord(int64_t rowid) const {
  if (json_) return json_->LoadRecord(rowid);
  MSP_ASSIGN_OR_RETURN(auto borrowed, Borrow());
  Lease lease(this, std::move(borrowed));
  SqliteStatement& query = lease->record;
  query.Reset();
  query.Bind(1, rowid);
  MSP_ASSIGN_OR_RETURN(const bool row, query.Step());
  if (!row) return InternalError(Msg("{} changed while it was read: load the page again", shown_));
  NodeRecord record;
  record.inputs = ParseRows(query.Text(0));
  record.outputs = ParseRows(query.Text(1));
  record.stack = ParseTexts(query.Text(2));
  record.merge_info = ParseTexts(query.Text(3));
  record.communication_json = ObjectText(query.Text(4));
  query.Reset();
  lease.Return();
  return record;
}

std::shared_ptr<const NodeNames> VisFile::KnownNames() const {
  std::lock_guard lock(mutex_);
  return names_.lock();
}

void VisFile::KeepNames(const std::shared_ptr<const NodeNames>& names) const {
  std::lock_guard lock(mutex_);
  names_ = names;
}

Status VisFile::Ask(const std::function<Status(const SqliteDb&)>& question) const {
  MSP_ASSIGN_OR_RETURN(auto borrowed, Borrow());
  Lease lease(this, std::move(borrowed));
  MSP_RETURN_IF_ERROR(question(lease->db));
  lease.Return();
  return OkStatus();
}

StatusOr<bool> VisFile::HasTable(const SqliteDb& db, std::string_view name) {
  MSP_ASSIGN_OR_RETURN(
      SqliteStatement query,
      db.Prepare("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?1 AND rootpage > 0"));
  query.Bind(1, name);
  MSP_ASSIGN_OR_RETURN(const bool row, query.Step());
  return row && query.Int(0) == 1;
}

}  // namespace msprobe::view
