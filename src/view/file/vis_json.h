// Graphs as release 8.1.1 writes them: one JSON text ".vis" for one rank, in the place of a .vis.db file.
#pragma once

#include <string>

#include "base/status.h"

namespace msprobe::view {

/// Writes the graph of one rank and step of the .vis.db file `db` as JSON: "root", "node" with all that a node shows,
/// and beside them the settings; in a comparison once for "NPU" and once for "Bench". Numbers have six decimals, as
/// they have there. kBadInput when the file holds several ranks or steps.
Status WriteVisJson(const std::string& db, const std::string& path);

}  // namespace msprobe::view
