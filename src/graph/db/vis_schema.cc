#include "graph/db/vis_schema.h"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace msprobe {
namespace {

struct Packed {
  char code;
  std::string_view text;
};

constexpr std::array<Packed, 4> kPieces{{
    {kPackTensor, R"(": {"type": "torch.Tensor", "dtype": "torch.)"},
    {kPackNull, R"(": {"value": "null"})"},
    {kPackPass, R"(", "Requires_grad Consistent": "True", "Result": "pass", "Err_message": "[]"})"},
    {kPackEqual, R"(", "Max diff": "0.0", "Min diff": "0.0", "Mean diff": "0.0", "L2norm diff": "0.0", )"
                 R"("MaxRelativeErr": "0.0%", "MinRelativeErr": "0.0%", "MeanRelativeErr": "0.0%", )"
                 R"("NormRelativeErr": "0.0%)"},
}};

constexpr std::array<Packed, 26> kKeys{{
    {4, "type"},
    {5, "dtype"},
    {6, "shape"},
    {7, "Max"},
    {8, "Min"},
    {9, "Mean"},
    {10, "Norm"},
    {11, "requires_grad"},
    {12, "data_name"},
    {13, "md5"},
    {14, "value"},
    {15, "Max diff"},
    {16, "Min diff"},
    {17, "Mean diff"},
    {18, "L2norm diff"},
    {19, "MaxRelativeErr"},
    {20, "MinRelativeErr"},
    {21, "MeanRelativeErr"},
    {22, "NormRelativeErr"},
    {23, "Requires_grad Consistent"},
    {24, "Result"},
    {25, "Err_message"},
    {26, "Cosine"},
    {27, "EucDist"},
    {28, "MaxAbsErr"},
    {29, "One Thousandth Err Ratio"},
}};

// Both run on any SQLite since 3.24 and need no function of ours.
constexpr char kTables[] =
    "CREATE TABLE msprobe_graph (graph INTEGER PRIMARY KEY, graph_id TEXT NOT NULL UNIQUE, data_source TEXT NOT NULL, "
    "step INTEGER NOT NULL, rank INTEGER NOT NULL, dump_data_dir TEXT, first INTEGER NOT NULL, last INTEGER NOT NULL, "
    "UNIQUE (step, rank, data_source));"
    "CREATE TABLE msprobe_name (name_id INTEGER PRIMARY KEY, name TEXT NOT NULL);"
    "CREATE TABLE msprobe_path (path INTEGER PRIMARY KEY, links TEXT NOT NULL);"
    "CREATE TABLE msprobe_node (node INTEGER PRIMARY KEY, name_id INTEGER NOT NULL, up INTEGER NOT NULL, "
    "children INTEGER NOT NULL, type INTEGER NOT NULL, micro_step INTEGER NOT NULL, stack INTEGER NOT NULL, "
    "is_distributed INTEGER NOT NULL, modified INTEGER NOT NULL, precision_index INTEGER, overflow_level TEXT, "
    "match INTEGER, path INTEGER, data INTEGER, link TEXT, communication TEXT, merge_info TEXT);"
    "CREATE TABLE msprobe_data (data INTEGER PRIMARY KEY, input TEXT, output TEXT);";

constexpr std::string_view kView =
    "CREATE VIEW tb_nodes AS SELECT g.graph_id || '_' || s.name AS id, g.graph_id AS graph_id, "
    "n.node - g.first AS node_order, s.name AS node_name, CAST(n.type AS TEXT) AS node_type, u.name AS up_node, "
    "CASE n.children WHEN 0 THEN '' ELSE (SELECT '[' || group_concat(json_quote(cs.name), ', ') || ']' "
    "FROM msprobe_node c CROSS JOIN msprobe_name cs "
    "WHERE c.up = n.name_id AND c.node BETWEEN g.first AND g.last AND cs.name_id = c.name_id) END AS sub_nodes, "
    "n.precision_index AS precision_index, n.overflow_level AS overflow_level, n.micro_step AS micro_step_id, "
    "CASE WHEN n.link IS NOT NULL THEN n.link WHEN n.match IS NULL THEN '[]' ELSE "
    "(SELECT p.links FROM msprobe_path p WHERE p.path = n.path) || "
    "json_quote((SELECT ps.name FROM msprobe_name ps WHERE ps.name_id = n.match)) || ']' END AS matched_node_link, "
    "g.graph_id || '_' || n.stack AS stack_id, coalesce(n.merge_info, '') AS parallel_merge_info, "
    "coalesce(n.communication, '{{}}') AS matched_distributed, n.modified AS modified, "
    "coalesce({}, '{{}}') AS input_data, coalesce({}, '{{}}') AS output_data, g.data_source AS data_source, "
    "g.dump_data_dir AS dump_data_dir, g.step AS step, g.rank AS rank, n.is_distributed AS is_distributed "
    "FROM msprobe_graph g JOIN msprobe_node n ON n.node BETWEEN g.first AND g.last "
    "JOIN msprobe_name s ON s.name_id = n.name_id JOIN msprobe_name u ON u.name_id = n.up;";

constexpr std::string_view kRow = "(SELECT first FROM msprobe_graph WHERE graph_id = OLD.graph_id) + OLD.node_order";

// What a viewer may change, and where it is kept.
constexpr std::array<std::array<std::string_view, 2>, 5> kUpdated{{{"matched_node_link", "link"},
                                                                   {"precision_index", "precision_index"},
                                                                   {"overflow_level", "overflow_level"},
                                                                   {"modified", "modified"},
                                                                   {"matched_distributed", "communication"}}};

std::string Triggers() {
  std::string sql;
  for (const auto& [column, kept] : kUpdated) {
    sql += fmt::format(
        "CREATE TRIGGER tb_nodes_{0} INSTEAD OF UPDATE OF {0} ON tb_nodes BEGIN "
        "UPDATE msprobe_node SET {1} = NEW.{0} WHERE node = {2}; END;",
        column, kept, kRow);
  }
  // A row without texts gets a place for them first, behind all others.
  for (std::string_view column : {"input", "output"}) {
    sql += fmt::format(
        "CREATE TRIGGER tb_nodes_{0}_data INSTEAD OF UPDATE OF {0}_data ON tb_nodes BEGIN "
        "UPDATE msprobe_node SET data = (SELECT coalesce(max(data), 0) + 1 FROM msprobe_data) "
        "WHERE node = {1} AND data IS NULL; "
        "INSERT OR IGNORE INTO msprobe_data (data) SELECT data FROM msprobe_node WHERE node = {1}; "
        "UPDATE msprobe_data SET {0} = NEW.{0}_data "
        "WHERE data = (SELECT data FROM msprobe_node WHERE node = {1}); END;",
        column, kRow);
  }
  return sql;
}

}  // namespace

char PackedKey(std::string_view key) {
  // Every field of every parameter passes here: few keys have the same length.
  static const auto kBySize = [] {
    std::array<std::vector<Packed>, 32> out;
    for (const Packed& p : kKeys) out[p.text.size()].push_back(p);
    return out;
  }();
  if (key.size() >= kBySize.size()) return 0;
  for (const Packed& p : kBySize[key.size()]) {
    if (p.text == key) return p.code;
  }
  return 0;
}

std::string UnpackSql(std::string_view column, std::string_view data, std::string_view name) {
  constexpr size_t kDepth = 10;  // the parser of SQL takes no more than a few dozen calls inside each other
  std::string sql = fmt::format("SELECT d.{} AS t FROM msprobe_data d WHERE d.data = {}", column, data);
  std::string call = "t";
  size_t depth = 0;
  const auto add = [&](char code, const std::string& text) {
    call = fmt::format("replace({}, char({}), {})", call, static_cast<int>(code), text);
    if (++depth % kDepth != 0) return;
    sql = fmt::format("SELECT {} AS t FROM ({})", call, sql);
    call = "t";
  };
  for (const Packed& p : kKeys) add(p.code, fmt::format("'\", \"{}\": \"'", p.text));
  for (const Packed& p : kPieces) add(p.code, fmt::format("'{}'", p.text));
  add(kPackName, std::string(name));
  return fmt::format("(SELECT {} FROM ({}))", call, sql);
}

std::string VisTablesSql() {
  return std::string(kTables) + kVisTextTables +
         fmt::format(kView, UnpackSql("input", "n.data", "s.name"), UnpackSql("output", "n.data", "s.name")) +
         Triggers();
}

}  // namespace msprobe
