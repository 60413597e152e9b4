#include "view/file/sqlite_db.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <array>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/interrupt.h"
#include "base/message.h"

namespace msprobe::view {
namespace {

constexpr int kMaxValueBytes = 64 << 20;
constexpr int kOpsBetweenInterruptChecks = 100000;

// As a URI, so that immutable=1 can be given; everything but plain path characters is escaped.
std::string FileUri(const std::string& path) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string uri = "file:";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
                       c == '.' || c == '_' || c == '-';
    if (plain) {
      uri += c;
    } else {
      uri += '%';
      uri += kHex[byte >> 4];
      uri += kHex[byte & 15];
    }
  }
  return uri + "?immutable=1";
}

Status Failure(int code, std::string_view file, const char* text) {
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      return BadInput(Msg("{} is not a SQLite database: write it again with msprobe graph_visualize", file));
    case SQLITE_INTERRUPT: return Interrupted();
    case SQLITE_NOMEM: return InternalError(Msg("out of memory while reading {}: close other programs", file));
    case SQLITE_TOOBIG:
      return InternalError(
          Msg("{} holds a value larger than {} MiB: it was not written by a graph tool", file, kMaxValueBytes >> 20));
    case SQLITE_CORRUPT:
      return InternalError(
          Msg("{} is damaged or still being written ({}): wait for the writer to end, or write it again", file, text));
    default: return InternalError(Msg("{} cannot be read ({}): check the file and its permissions", file, text));
  }
}

/// SQLite reads zeros where the last page of a file is cut: what its head says is compared with its size.
bool EndsEarly(const std::string& path) {
  std::array<unsigned char, 100> head{};
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<int64_t>(file.tellg());
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(head.data()), head.size())) return false;
  const auto number = [&head](size_t at) {
    return static_cast<int64_t>(head[at]) << 24 | head[at + 1] << 16 | head[at + 2] << 8 | head[at + 3];
  };
  constexpr size_t kPageSize = 16, kChanges = 24, kPages = 28, kPagesAsOf = 92;
  if (std::memcmp(head.data(), "SQLite format 3", 16) != 0 || number(kChanges) != number(kPagesAsOf)) return false;
  const int64_t page = head[kPageSize] << 8 | head[kPageSize + 1];
  return number(kPages) * (page == 1 ? 65536 : page) > size;
}

int CheckInterrupt(void*) { return InterruptRequested() ? 1 : 0; }

}  // namespace

SqliteStatement::SqliteStatement(SqliteStatement&& o) noexcept
    : stmt_(std::exchange(o.stmt_, nullptr)), file_(std::move(o.file_)) {}
SqliteStatement& SqliteStatement::operator=(SqliteStatement&& o) noexcept {
  std::swap(stmt_, o.stmt_);
  std::swap(file_, o.file_);
  return *this;
}
SqliteStatement::~SqliteStatement() { sqlite3_finalize(stmt_); }
void SqliteStatement::Reset() { sqlite3_reset(stmt_); }
void SqliteStatement::Bind(int at, int64_t value) { sqlite3_bind_int64(stmt_, at, value); }
void SqliteStatement::Bind(int at, std::string_view value) {
  sqlite3_bind_text64(stmt_, at, value.data(), value.size(), SQLITE_STATIC, SQLITE_UTF8);
}

StatusOr<bool> SqliteStatement::Step() {
  const int code = sqlite3_step(stmt_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return Failure(code, file_, sqlite3_errmsg(sqlite3_db_handle(stmt_)));
}

bool SqliteStatement::IsNull(int column) const { return sqlite3_column_type(stmt_, column) == SQLITE_NULL; }
int64_t SqliteStatement::Int(int column) const { return sqlite3_column_int64(stmt_, column); }
double SqliteStatement::Real(int column) const { return sqlite3_column_double(stmt_, column); }
bool SqliteStatement::IsNumber(int column) const {
  const int type = sqlite3_column_type(stmt_, column);
  return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}
std::string_view SqliteStatement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(stmt_, column));
  if (text == nullptr) return {};
  return {text, static_cast<size_t>(sqlite3_column_bytes(stmt_, column))};
}

StatusOr<SqliteDb> SqliteDb::OpenImmutable(const std::string& path, std::string_view shown) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(FileUri(path).c_str(), &raw,
                                   SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  SqliteDb db(raw, shown);
  if (code != SQLITE_OK) return Failure(code, shown, raw == nullptr ? "out of memory" : sqlite3_errmsg(raw));
  if (EndsEarly(path)) return Failure(SQLITE_CORRUPT, shown, "it ends early");
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_progress_handler(raw, kOpsBetweenInterruptChecks, CheckInterrupt, nullptr);
  return db;
}

SqliteDb::SqliteDb(SqliteDb&& o) noexcept : db_(std::exchange(o.db_, nullptr)), shown_(std::move(o.shown_)) {}
SqliteDb& SqliteDb::operator=(SqliteDb&& o) noexcept {
  std::swap(db_, o.db_);
  std::swap(shown_, o.shown_);
  return *this;
}
SqliteDb::~SqliteDb() { sqlite3_close_v2(db_); }

StatusOr<SqliteStatement> SqliteDb::Prepare(std::string_view sql) const {
  sqlite3_stmt* stmt = nullptr;
  const int code =
      sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &stmt, nullptr);
  if (code == SQLITE_ERROR) {
    return BadInput(Msg("{} is not a graph database ({}): graph_visualize of msprobe writes such files", shown_,
                        sqlite3_errmsg(db_)));
  }
  if (code != SQLITE_OK) return Failure(code, shown_, sqlite3_errmsg(db_));
  return SqliteStatement(stmt, shown_);
}

}  // namespace msprobe::view
