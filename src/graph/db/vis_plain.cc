#include "graph/db/vis_plain.h"

#include "graph/db/vis_schema.h"

namespace msprobe {
namespace {

constexpr char kNodeTable[] =
    "CREATE TABLE tb_nodes (\n    id TEXT PRIMARY KEY,\n    graph_id TEXT NOT NULL,\n    node_order INTEGER NOT NULL,\n"
    "    node_name TEXT NOT NULL,\n    node_type TEXT NOT NULL,\n    up_node TEXT,\n    sub_nodes TEXT,\n"
    "    precision_index INTEGER,\n    overflow_level TEXT,\n    micro_step_id INTEGER NOT NULL,\n"
    "    matched_node_link TEXT,\n    stack_id TEXT,\n    parallel_merge_info TEXT,\n    matched_distributed TEXT,\n"
    "    modified INTEGER NOT NULL,\n    input_data TEXT,\n    output_data TEXT,\n    data_source TEXT,\n"
    "    dump_data_dir TEXT,\n    step INTEGER NOT NULL,\n    rank INTEGER NOT NULL,\n    is_distributed INTEGER\n);";

// The order of the tables in the file is that of earlier tools, too.
constexpr char kCopy[] =
    "PRAGMA compact.cache_size=-32768; BEGIN;"
    "INSERT INTO tb_nodes SELECT * FROM compact.tb_nodes;"
    "INSERT INTO tb_stack SELECT * FROM compact.tb_stack;"
    "INSERT INTO tb_config SELECT * FROM compact.tb_config;"
    "COMMIT;";

constexpr char kIndexes[] =
    "CREATE INDEX index1 ON tb_nodes (step, rank, data_source, up_node, node_order);"
    "CREATE INDEX index2 ON tb_nodes (step, rank, data_source, node_name);"
    "CREATE INDEX index3 ON tb_nodes (step, rank, data_source, node_order);"
    "CREATE INDEX index4 ON tb_nodes (step, rank, node_order);"
    "CREATE INDEX index5 ON tb_nodes (step, rank, micro_step_id, node_order);"
    "CREATE INDEX index6 ON tb_nodes (step, rank, modified, matched_node_link);"
    "CREATE INDEX index7 ON tb_nodes (is_distributed);";

}  // namespace

std::string VisPlainSql() { return std::string(kNodeTable) + kVisTextTables + kCopy + kIndexes; }

}  // namespace msprobe
