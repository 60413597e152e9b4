// One .vis.db file: its settings, the nodes of a side, and the figures of a node.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "view/file/cells.h"
#include "view/file/sqlite_db.h"
#include "view/file/tree.h"

namespace msprobe::view {

struct VisSettings {
  bool compared = false;
  std::string task;
  int64_t micro_steps = 0;
  bool overflow_check = false;
  bool verdicts = false;      ///< the ruler judges its nodes
  std::string colors_json;    ///< "" when there is none
  std::string tool_tip_json;  ///< likewise
  std::vector<int64_t> ranks, steps;
  std::string target, golden;  ///< paths of the dumps; "" where the file does not say
};

Overflow OverflowOf(std::string_view text);

/// What a node's own row holds.
struct NodeRecord {
  std::vector<ViewRow> inputs, outputs;
  std::vector<std::string> stack, merge_info;
  std::string communication_json;  ///< "" when the node talks to no other rank
};

/// Thread-safe: each query borrows a connection of its own.
class VisFile {
 public:
  /// `shown` is how errors name the file. kBadInput when it is not a graph database; the text says why.
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
  /// What is 1 for an error is 0 in this file.
  bool md5_inverted() const { return md5_inverted_; }
  /// What a tree says of its nodes, with the name of the file before it.
  Status InFile(const Status& status) const;
  /// Of a value of precision_index.
  Verdict LevelOf(double index) const;
  /// The names that a graph of the compact layout brought, as long as such a graph is in memory; null otherwise.
  std::shared_ptr<const NodeNames> KnownNames() const;
  void KeepNames(const std::shared_ptr<const NodeNames>& names) const;
  /// Asks a question of its own, for what stands beside the nodes.
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
  bool md5_inverted_ = false, compact_ = false;
  mutable std::mutex mutex_;
  mutable std::weak_ptr<const NodeNames> names_;  // KnownNames()
  mutable std::vector<std::unique_ptr<Connection>> idle_;
};

}  // namespace msprobe::view
