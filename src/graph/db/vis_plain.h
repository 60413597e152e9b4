// The layout of graph files without tables of our own: tb_nodes is a table, as earlier tools write it.
#pragma once

#include <string>

namespace msprobe {

/// SQL that fills an empty database with the three tables of a compact one, attached as `compact`, whose children can
/// be looked up by an index (kVisChildIndex). Rows keep their order; the indexes come last.
std::string VisPlainSql();

}  // namespace msprobe
