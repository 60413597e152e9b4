// The rows of graphs on their way into a `.vis.db` file: written as pages, in order, while the file is nobody else's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/big_array.h"
#include "graph/db/btree_writer.h"
#include "graph/db/name_table.h"
#include "graph/db/page_file.h"
#include "graph/db/vis_rows.h"
#include "graph/tree/node_graph.h"

namespace msprobe {

/// Root pages by the names of their tables and indexes.
using RootPages = std::map<std::string, uint32_t, std::less<>>;

class VisBulk {
 public:
  /// The file at `path` holds `pages` pages, with empty tables and indexes; `shown` names it in errors.
  static StatusOr<std::unique_ptr<VisBulk>> Start(const std::string& path, const std::string& shown, uint32_t pages,
                                                  RootPages roots);
  /// Both must live until the next call.
  void BeginGraph(const NodeGraph& graph, const NodeGraph* other);
  /// These rows are added next.
  void Expect(const NodeRows& batch) const;
  Status AddNode(const NodeRows& batch, const NodeRows::Row& row, int64_t data);
  StatusOr<int64_t> AddData(const NodeRows& batch, NodeRows::Span input, NodeRows::Span output);
  Status AddStack(const std::string& id, const std::string& frames_json);
  /// A row of another table; ids of its rows ascend.
  BTreeWriter* Table(std::string_view name);
  int64_t rows() const { return static_cast<int64_t>(name_of_row_.size()); }
  /// Writes the indexes that the file has, and the last pages.
  Status Finish();

 private:
  VisBulk(std::unique_ptr<PageFile> file, std::string shown, RootPages roots);
  uint32_t NameId(std::string_view name, uint32_t hash);
  uint32_t NameOf(uint32_t node);
  uint32_t NameOfOther(uint32_t node);
  uint32_t PathOf(uint32_t parent);
  void AddPartner(const Node& node);
  void NoteSize(uint64_t bytes) { longest_ = bytes > longest_ ? bytes : longest_; }
  Status Check() const;
  Status WriteNodeIndex(std::string_view name, const BigArray<uint32_t>& keys);
  Status WriteTextIndex(std::string_view name, const std::vector<std::string_view>& texts,
                        const std::vector<uint32_t>& order, int64_t first_row);

  std::unique_ptr<PageFile> file_;
  const std::string shown_;
  RootPages roots_;
  std::map<std::string, BTreeWriter, std::less<>> tables_;
  BTreeWriter *node_, *data_, *name_, *path_, *stack_;
  SqlRecord record_;
  int64_t data_rows_ = 0;
  uint64_t longest_ = 0;                        // of all texts
  BigArray<uint32_t> name_of_row_, up_of_row_;  // of each node
  NameTable names_;
  std::unordered_map<uint64_t, uint32_t> paths_;  // by the path above and the name
  std::vector<std::string> stack_ids_;

  const NodeGraph* graph_ = nullptr;
  const NodeGraph* other_ = nullptr;
  std::vector<uint32_t> node_names_, other_names_, other_paths_;  // ids of nodes, kNoIndex until they are asked for
};

}  // namespace msprobe
