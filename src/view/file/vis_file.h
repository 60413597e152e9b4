// One graph file, .vis.db or the .vis of earlier releases: its settings, the nodes of a side, the figures of a node.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "view/file/sqlite_db.h"
#include "view/file/tree.h"
#include "view/file/vis_json_file.h"
#include "view/file/vis_records.h"

namespace msprobe::view {

/// Thread-safe: each query borrows a connection of its own.
class VisFile {
 public:
  /// `shown` is how errors name the file. kBadInput when it is no graph file; the text says why.
  static StatusOr<std::unique_ptr<VisFile>> Open(const std::string& path, std::string_view shown);
  ~VisFile();
  const VisSettings& config() const { return config_; }
  /// Nodes of a side ("NPU", "Bench"), in whatever layout they are.
  Status LoadSide(int64_t step, int64_t rank, std::string_view side, Tree* out) const;
  StatusOr<NodeRecord> LoadRecord(int64_t rowid) const;
  const std::string& shown() const { return shown_; }
  const std::string& path() const { return path_; }
  /// Nodes of the compact layout are in msprobe_node; without it they are in tb_nodes.
  bool compact() const { return compact_; }
  /// The graph when it is a JSON text; null: it is a database.
  const VisJsonFile* json() const { return json_.get(); }
  /// What is 1 for an error is 0 in this file.
  bool md5_inverted() const { return md5_inverted_; }
  /// What a tree says of its nodes, with the name of the file before it.
  Status InFile(const Status& status) const;
  /// Of a value of precision_index.
  Verdict LevelOf(double index) const;
  /// The names that a graph of the compact layout brought, as long as such a graph is in memory; null otherwise.
  std::shared_ptr<const NodeNames> KnownNames() const;
  void KeepNames(const std::shared_ptr<const NodeNames>& names) const;
  /// Asks a question of its own, for what stands beside the nodes. Only of databases.
  Status Ask(const std::function<Status(const SqliteDb&)>& question) const;
  /// True for a plain table of this name; `name` is one of ours.
  static StatusOr<bool> HasTable(const SqliteDb& db, std::string_view name);

 private:
  struct Connection;
  class Lease;
  VisFile(std::string path, std::string_view shown);
  StatusOr<std::unique_ptr<Connection>> Connect() const;
  StatusOr<std::unique_ptr<Connection>> Borrow() const;
  void GiveBack(std::unique_ptr<Connection> connection) const;
  Status ReadConfig(Connection* connection);

  std::string path_, shown_;
  VisSettings config_;
  std::unique_ptr<VisJsonFile> json_;
  bool md5_inverted_ = false, compact_ = false;
  mutable std::mutex mutex_;
  mutable std::weak_ptr<const NodeNames> names_;  // KnownNames()
  mutable std::vector<std::unique_ptr<Connection>> idle_;
};

}  // namespace msprobe::view
