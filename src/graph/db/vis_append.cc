// Putting a finished database behind the rows of another: everything is numbered on.
#include <fmt/format.h>
#include <sqlite3.h>

#include "base/message.h"
#include "graph/db/vis_db.h"

namespace msprobe {
namespace {

using Numbers = std::vector<uint32_t>;

/// SQL function: the number in this database for a number of the part; NULL stays NULL.
void Renumber(sqlite3_context* context, int, sqlite3_value** arguments) {
  const auto& numbers = *static_cast<const Numbers*>(sqlite3_user_data(context));
  if (sqlite3_value_type(arguments[0]) == SQLITE_NULL) return sqlite3_result_null(context);
  const int64_t old = sqlite3_value_int64(arguments[0]);
  if (old < 0 || static_cast<uint64_t>(old) >= numbers.size()) {
    return sqlite3_result_error(context, "a part of the graph is damaged", -1);
  }
  sqlite3_result_int64(context, numbers[static_cast<size_t>(old)]);
}

struct Copy {
  const char* table;
  const char* columns;  // {0}: rows, {1}: texts, {2}: graphs that are here already
};

constexpr Copy kCopies[] = {
    {"msprobe_graph", "graph + {2}, graph_id, data_source, step, rank, dump_data_dir, first + {0}, last + {0}"},
    {"msprobe_data", "data + {1}, input, output"},
    {"msprobe_node",
     "node + {0}, part_name(name_id), part_name(up), children, type, micro_step, stack, is_distributed, modified, "
     "precision_index, overflow_level, part_name(match), part_path(path), data + {1}, link, communication, merge_info"},
    {"tb_stack", "*"},
    {"msprobe_precision", "node + {0}, verdict, error, input_error, units, cosine, max_abs_err, max_relative_err"},
    {"msprobe_subtrees",
     "node + {0}, nodes, error, warning, unmatched, no_data, medium, high, critical, first_error + {0}"},
    {"msprobe_execution", "graph + {2}, position, node + {0}, nodes"},
    {"msprobe_names", "graph + {2}, pattern, count, nodes"},
    {"msprobe_flow", "node + {0}, count, edges"},
};

}  // namespace

Status VisDb::ReadPart(const char* sql, const std::function<Status(std::string_view, uint32_t*)>& take,
                       std::vector<uint32_t>* numbers) {
  sqlite3_stmt* read = nullptr;
  MSP_RETURN_IF_ERROR(Prepare(sql, &read));
  Status status = OkStatus();
  while (status.ok() && sqlite3_step(read) == SQLITE_ROW) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(read, 1));
    uint32_t number = 0;
    status = take(std::string_view(text ? text : "", static_cast<size_t>(sqlite3_column_bytes(read, 1))), &number);
    if (status.ok() && sqlite3_column_int64(read, 0) != static_cast<int64_t>(numbers->size())) {
      status = BadInput(Msg("{} cannot be written, a part of it is damaged: build the graph again", path_));
    }
    numbers->push_back(number);
  }
  const bool done = sqlite3_finalize(read) == SQLITE_OK;
  return status.ok() && !done ? Error("reading a part") : status;
}

Status VisDb::AddName(std::string_view name, uint32_t* id) {
  bool fresh = false;
  *id = names_.Add(name, &fresh);
  if (!fresh) return OkStatus();
  MSP_RETURN_IF_ERROR(Prepare("INSERT INTO msprobe_name VALUES (?,?)", &name_));
  sqlite3_bind_int64(name_, 1, *id);
  BindText(name_, 2, name);
  return Step(name_);
}

Status VisDb::AddPath(std::string_view links, uint32_t* id) {
  const auto [it, fresh] = part_paths_.try_emplace(std::string(links), static_cast<uint32_t>(part_paths_.size()));
  *id = it->second;
  if (!fresh) return OkStatus();
  MSP_RETURN_IF_ERROR(Prepare("INSERT INTO msprobe_path VALUES (?,?)", &links_));
  sqlite3_bind_int64(links_, 1, *id);
  BindText(links_, 2, links);
  return Step(links_);
}

Status VisDb::CopyPart() {
  Numbers names, paths;
  MSP_RETURN_IF_ERROR(ReadPart(
      "SELECT name_id, name FROM part.msprobe_name ORDER BY name_id",
      [this](std::string_view name, uint32_t* id) { return AddName(name, id); }, &names));
  MSP_RETURN_IF_ERROR(ReadPart(
      "SELECT path, links FROM part.msprobe_path ORDER BY path",
      [this](std::string_view links, uint32_t* id) { return AddPath(links, id); }, &paths));
  sqlite3_create_function(db_, "part_name", 1, SQLITE_UTF8, &names, Renumber, nullptr, nullptr);
  sqlite3_create_function(db_, "part_path", 1, SQLITE_UTF8, &paths, Renumber, nullptr, nullptr);
  for (const Copy& copy : kCopies) {
    if (sqlite3_table_column_metadata(db_, "main", copy.table, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) !=
        SQLITE_OK)
      continue;
    const std::string columns = fmt::format(fmt::runtime(copy.columns), rows_, data_rows_, graphs_);
    MSP_RETURN_IF_ERROR(
        Exec(fmt::format("INSERT INTO main.{0} SELECT {1} FROM part.{0} ORDER BY rowid", copy.table, columns).c_str()));
  }
  if (graphs_ == 0) MSP_RETURN_IF_ERROR(Exec("INSERT INTO main.tb_config SELECT * FROM part.tb_config"));
  return CountRows();
}

/// How far each table is numbered.
Status VisDb::CountRows() {
  sqlite3_stmt* read = nullptr;
  MSP_RETURN_IF_ERROR(
      Prepare("SELECT (SELECT max(node) FROM main.msprobe_node), (SELECT max(data) FROM main.msprobe_data), "
              "(SELECT max(graph) FROM main.msprobe_graph)",
              &read));
  const bool found = sqlite3_step(read) == SQLITE_ROW;
  if (found) {
    rows_ = sqlite3_column_int64(read, 0);
    data_rows_ = sqlite3_column_int64(read, 1);
    graphs_ = sqlite3_column_int64(read, 2);
  }
  sqlite3_finalize(read);
  return found ? OkStatus() : Error("counting rows");
}

Status VisDb::Append(const std::string& part) {
  // A database cannot be attached within a transaction.
  MSP_RETURN_IF_ERROR(Exec("COMMIT"));
  sqlite3_stmt* attach = nullptr;
  MSP_RETURN_IF_ERROR(Prepare("ATTACH ? AS part", &attach));
  BindText(attach, 1, part);
  Status status = Step(attach);
  sqlite3_finalize(attach);
  MSP_RETURN_IF_ERROR(status);
  MSP_RETURN_IF_ERROR(Exec("BEGIN"));
  status = CopyPart();
  MSP_RETURN_IF_ERROR(status);
  MSP_RETURN_IF_ERROR(Exec("COMMIT"));
  // The functions refer to numbers of this part.
  sqlite3_create_function(db_, "part_name", 1, SQLITE_UTF8, nullptr, nullptr, nullptr, nullptr);
  sqlite3_create_function(db_, "part_path", 1, SQLITE_UTF8, nullptr, nullptr, nullptr, nullptr);
  MSP_RETURN_IF_ERROR(Exec("DETACH part"));
  return Exec("BEGIN");
}

}  // namespace msprobe
