// The rows of our own tables: inserted, or written as pages while the database has no connection.
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>

#include "base/message.h"
#include "graph/db/vis_bulk.h"
#include "graph/db/vis_db.h"

namespace msprobe {

StatusOr<SideTable*> VisDb::MakeTable(std::string_view name, std::string_view columns, std::string_view index) {
  if (bulk_) MSP_RETURN_IF_ERROR(EndBulk());
  MSP_RETURN_IF_ERROR(Exec(fmt::format("CREATE TABLE msprobe_{} ({})", name, columns).c_str()));
  // A table constraint would have parentheses; columns are separated by plain commas.
  const auto count = 1 + std::count(columns.begin(), columns.end(), ',');
  const std::string_view first = columns.substr(0, columns.find(','));
  auto table =
      std::unique_ptr<SideTable>(new SideTable(this, fmt::format("msprobe_{}", name), static_cast<int>(count)));
  table->keyed_ = first.ends_with(" INTEGER PRIMARY KEY");
  table->inserted_ = !table->keyed_ && first.ends_with(" PRIMARY KEY");  // has an index of its own
  tables_.push_back(std::move(table));
  if (!index.empty()) {
    const size_t open = index.find('(');
    indexes_.push_back(
        fmt::format("CREATE INDEX msprobe_{}ON msprobe_{} {}", index.substr(0, open), name, index.substr(open)));
  }
  return tables_.back().get();
}

int SideTable::Column() {
  if (bound_ == 0 && bulk_) record_.Clear();
  if (bound_ == 0 && !bulk_ && !insert_) {
    std::string sql = fmt::format("INSERT INTO {} VALUES (?", name_);
    for (int i = 1; i < columns_; ++i) sql += ",?";
    // Add() tells when it could not be prepared.
    sqlite3_prepare_v2(db_->db_, (sql + ")").c_str(), -1, &insert_, nullptr);
  }
  return ++bound_;
}

SideTable& SideTable::Int(int64_t v) {
  const int column = Column();
  if (!bulk_) {
    sqlite3_bind_int64(insert_, column, v);
  } else if (keyed_ && column == 1) {
    row_ = v;
    record_.Null();
  } else {
    record_.Int(v);
  }
  return *this;
}

SideTable& SideTable::Real(double v) {
  const int column = Column();
  bulk_ ? record_.Real(v) : static_cast<void>(sqlite3_bind_double(insert_, column, v));
  return *this;
}

SideTable& SideTable::Text(std::string_view text) {
  const int column = Column();
  bulk_ ? record_.Text(text) : db_->BindText(insert_, column, text);
  return *this;
}

SideTable& SideTable::Blob(std::string_view bytes) {
  const int column = Column();
  if (bulk_) {
    record_.Blob(bytes);
  } else {
    sqlite3_bind_blob64(insert_, column, bytes.empty() ? "" : bytes.data(), bytes.size(), SQLITE_STATIC);
  }
  return *this;
}

SideTable& SideTable::Null() {
  const int column = Column();
  bulk_ ? record_.Null() : static_cast<void>(sqlite3_bind_null(insert_, column));
  return *this;
}

Status SideTable::AddToBulk() {
  while (bound_ < columns_) Null();
  if (!keyed_) row_ = last_ + 1;
  if (row_ <= last_) return InternalError(Msg("{}: rows are not added in their order", name_));
  last_ = row_;
  bulk_->AddRow(row_, &record_);
  return OkStatus();
}

Status SideTable::Add() {
  if (bulk_) {
    MSP_RETURN_IF_ERROR(AddToBulk());
  } else {
    if (!insert_) return db_->Error("adding rows");
    MSP_RETURN_IF_ERROR(db_->Step(insert_));
    sqlite3_clear_bindings(insert_);
  }
  bound_ = 0;
  return OkStatus();
}

}  // namespace msprobe
