// The layout of a `.vis.db` file: compact tables, and the view through which earlier readers see the table they know.
#pragma once

#include <string>
#include <string_view>

namespace msprobe {

/// For the connection that writes a file. Everything is appended, so what leaves the cache is written once: a small one
/// costs nothing, and the file grows while the rows are made instead of at the end.
inline constexpr char kVisSetup[] =
    "PRAGMA page_size=16384; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;"
    "PRAGMA cache_size=-4096;";
/// For indexes and their sorter, when nothing else needs memory.
inline constexpr char kVisIndexCache[] = "PRAGMA cache_size=-65536;";
/// Tables, the view tb_nodes and the triggers that let it be updated.
std::string VisTablesSql();
/// Tables that earlier tools have as well, for any layout.
inline constexpr char kVisTextTables[] =
    "CREATE TABLE tb_stack (\n    id TEXT PRIMARY KEY,\n    stack_info TEXT\n);"
    "CREATE TABLE tb_config (\n    id TEXT PRIMARY KEY,\n    graph_type TEXT NOT NULL,\n    task TEXT,\n"
    "    tool_tip TEXT,\n    micro_steps INTEGER,\n    overflow_check INTEGER,\n    node_colors TEXT NOT NULL,\n"
    "    rank_list TEXT NOT NULL,\n    step_list TEXT NOT NULL\n);";
/// Indexes, made when the rows are in; this one finds the children of a node.
inline constexpr std::string_view kVisChildIndex = "CREATE INDEX msprobe_node2 ON msprobe_node (up)";
inline constexpr std::string_view kVisIndexes[] = {
    "CREATE UNIQUE INDEX msprobe_name1 ON msprobe_name (name)",
    "CREATE INDEX msprobe_node1 ON msprobe_node (name_id)",
    kVisChildIndex,
    "CREATE INDEX msprobe_node3 ON msprobe_node (modified) WHERE modified = 1",
};

/// The texts input_data and output_data are stored packed: a control byte, which JSON never holds as it is, stands for
/// a piece of text that nearly every parameter repeats.
enum PackCode : char {
  kPackName = 1,    // the name of the node
  kPackTensor = 2,  // of a tensor: from the end of its name to its dtype
  kPackNull = 3,    // the whole of a parameter without a value
  kPackPass = 30,   // the end of a parameter that passes
  kPackEqual = 31,  // all differences, when they are zero
};
/// The byte for `", "KEY": "`, or 0 when that is not packed.
char PackedKey(std::string_view key);
/// SQL that unpacks msprobe_data.<column> of the row of `data`; `name` is SQL for the name of its node.
std::string UnpackSql(std::string_view column, std::string_view data, std::string_view name);

}  // namespace msprobe
