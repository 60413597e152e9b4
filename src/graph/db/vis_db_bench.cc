// The rows of a graph into a finished file: as pages of B-trees, as VisDb writes them, against prepared inserts in the
// order of the rows. What pages gain decides whether they are written by code of ours: docs/performance.md has the
// figures.
//   build/bench/graph_bench --benchmark_filter=VisDb --benchmark_enable_random_interleaving=true
// Files are written to TMPDIR.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>

#include "base/file.h"
#include "graph/db/name_table.h"
#include "graph/db/vis_db.h"
#include "graph/db/vis_schema.h"

namespace msprobe {
namespace {

constexpr size_t kBatch = 1024;       // rows of a block
constexpr uint32_t kModuleEvery = 4;  // nodes
constexpr size_t kStacks = 1000;      // call stacks of the whole graph
constexpr size_t kFramesOfAStack = 8;

/// A graph and its rows, with texts like those of statistics dumps.
struct Input {
  NodeGraph graph;
  std::vector<NodeRows> batches;
  std::vector<std::pair<std::string, std::string>> stacks;
  GraphKey key{"NPU", 0, 0, std::nullopt};
};

void AppendItem(std::string& out, std::string_view name, uint32_t n) {
  const double value = 1e-3 * n + 0.123456789;
  out += fmt::format("\"{}.{}{}float32{}[2, 128, {}]{}{}{}{}{}{}{}{}{}True\"}}", kPackName, name, kPackTensor,
                     PackedKey("shape"), 64 + n % 64 * 64, PackedKey("Max"), value, PackedKey("Min"), -value,
                     PackedKey("Mean"), value / 7, PackedKey("Norm"), value * 3, PackedKey("requires_grad"));
}

NodeRows::Span AppendItems(std::string& out, std::string_view name, uint32_t items, uint32_t n) {
  const size_t begin = out.size();
  for (uint32_t i = 0; i < items; ++i) {
    out += i == 0 ? "{" : ", ";
    AppendItem(out, fmt::format("{}.{}", name, i), n + i);
  }
  out += '}';
  return {begin, out.size() - begin};
}

Input MakeInput(uint32_t nodes) {
  Input in;
  uint32_t module = 0;
  for (uint32_t i = 1; i < nodes; ++i) {
    const bool is_module = i % kModuleEvery == 1;
    std::string name = is_module ? fmt::format("Module.model.layers.{}.self_attn.q_proj.Linear.forward.{}",
                                               i / kModuleEvery % 96, i / kModuleEvery / 96)
                                 : fmt::format("Functional.scaled_dot_product_attention.{}.forward", i);
    const uint32_t node = in.graph.AddOwned(std::move(name), is_module ? NodeType::kModule : NodeType::kApi);
    in.graph.SetParent(node, is_module ? 0 : module);
    if (is_module) module = node;
  }
  in.graph.Sort();
  for (size_t s = 0; s < kStacks; ++s) {
    std::string frames = "[";
    for (size_t f = 0; f < kFramesOfAStack; ++f) {
      frames += fmt::format("{}\"File /opt/model/modeling_llama.py, line {}, in forward, \\n layer_{}(x)\"",
                            f ? ", " : "", 100 * s + f, f);
    }
    in.stacks.emplace_back(in.key.id() + "_" + std::to_string(s), frames + "]");
  }
  for (uint32_t i = 0; i < in.graph.order.size(); ++i) {
    if (i % kBatch == 0) in.batches.emplace_back();
    NodeRows& batch = in.batches.back();
    NodeRows::Row row;
    row.node = in.graph.order[i];
    row.order = i;
    row.stack = static_cast<uint32_t>(i % kStacks);
    row.name_hash = HashName(in.graph.nodes[row.node].name);
    row.input = AppendItems(batch.text, "input", 2, i);
    row.output = AppendItems(batch.text, "output", 1, i);
    batch.rows.push_back(row);
  }
  return in;
}

const Input& InputOf(int64_t nodes) {
  static std::map<int64_t, Input> kept;
  const auto at = kept.find(nodes);
  return at != kept.end() ? at->second : kept.emplace(nodes, MakeInput(static_cast<uint32_t>(nodes))).first->second;
}

VisConfig Config() {
  VisConfig config;
  config.node_colors = "null";
  return config;
}

Status WriteBulk(const Input& in, const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const std::unique_ptr<VisDb> db, VisDb::Create(path));
  MSP_RETURN_IF_ERROR(db->SetConfig(Config()));
  MSP_RETURN_IF_ERROR(db->BeginGraph(in.key, in.graph, nullptr));
  for (const auto& [id, frames] : in.stacks) MSP_RETURN_IF_ERROR(db->AddStack(id, frames));
  for (const NodeRows& batch : in.batches) {
    db->Expect(batch);
    for (const NodeRows::Row& row : batch.rows) {
      MSP_ASSIGN_OR_RETURN(const int64_t data, db->AddData(batch, row.input, row.output));
      MSP_RETURN_IF_ERROR(db->AddNode(batch, row, data));
    }
  }
  MSP_RETURN_IF_ERROR(db->EndGraph());
  return db->Finish();
}

/// The same file by SQLite alone.
class InsertedFile {
 public:
  explicit InsertedFile(const std::string& path) : temp_(path) {}
  InsertedFile(const InsertedFile&) = delete;
  InsertedFile& operator=(const InsertedFile&) = delete;
  ~InsertedFile() { Close(); }

  Status Write(const Input& in) {
    if (sqlite3_open(temp_.path().c_str(), &db_) != SQLITE_OK) return Failed();
    MSP_RETURN_IF_ERROR(Exec(kVisSetup));
    MSP_RETURN_IF_ERROR(Exec(VisTablesSql()));
    MSP_RETURN_IF_ERROR(Exec("BEGIN"));
    MSP_RETURN_IF_ERROR(Exec("INSERT INTO tb_config VALUES ('1','build','',NULL,1,0,'null','[]','[]')"));
    MSP_RETURN_IF_ERROR(Prepare());
    MSP_RETURN_IF_ERROR(AddRows(in));
    MSP_RETURN_IF_ERROR(Exec(fmt::format("INSERT INTO msprobe_graph VALUES (1,'{}','{}',{},{},NULL,1,{})", in.key.id(),
                                         in.key.source, in.key.step, in.key.rank, in.graph.order.size())));
    MSP_RETURN_IF_ERROR(Exec("COMMIT"));
    MSP_RETURN_IF_ERROR(Exec(kVisIndexCache));
    for (const std::string_view sql : kVisIndexes) MSP_RETURN_IF_ERROR(Exec(std::string(sql)));
    Close();
    return temp_.CommitResult();
  }

 private:
  Status AddRows(const Input& in) {
    MSP_RETURN_IF_ERROR(AddName(""));
    for (const auto& [id, frames] : in.stacks) {
      BindText(stack_, 1, id);
      BindText(stack_, 2, frames);
      MSP_RETURN_IF_ERROR(Step(stack_));
    }
    names_.Reserve(in.graph.nodes.size());
    ids_.assign(in.graph.nodes.size(), kNoIndex);
    for (const NodeRows& batch : in.batches) {
      for (const NodeRows::Row& row : batch.rows) names_.Prefetch(row.name_hash);
      for (const NodeRows::Row& row : batch.rows) MSP_RETURN_IF_ERROR(AddRow(in, batch, row));
    }
    return OkStatus();
  }

  Status AddRow(const Input& in, const NodeRows& batch, const NodeRows::Row& row) {
    const std::string_view text = batch.text;
    sqlite3_bind_int64(data_, 1, ++rows_);
    BindText(data_, 2, text.substr(row.input.begin, row.input.size));
    BindText(data_, 3, text.substr(row.output.begin, row.output.size));
    MSP_RETURN_IF_ERROR(Step(data_));
    const Node& node = in.graph.nodes[row.node];
    MSP_RETURN_IF_ERROR(NameOf(in.graph, row.node));
    if (node.parent != kNoIndex) MSP_RETURN_IF_ERROR(NameOf(in.graph, node.parent));
    int column = 0;
    for (const int64_t v : {rows_, int64_t{ids_[row.node]}, node.parent == kNoIndex ? 0 : int64_t{ids_[node.parent]},
                            static_cast<int64_t>(node.children.size()), static_cast<int64_t>(node.type), int64_t{0},
                            int64_t{row.stack}, int64_t{0}, int64_t{0}, rows_}) {
      sqlite3_bind_int64(node_, ++column, v);
    }
    return Step(node_);
  }

  Status NameOf(const NodeGraph& graph, uint32_t node) {
    if (ids_[node] != kNoIndex) return OkStatus();
    ids_[node] = static_cast<uint32_t>(names_.size());
    return AddName(graph.nodes[node].name);
  }

  Status AddName(std::string_view name) {
    bool fresh = false;
    sqlite3_bind_int64(name_, 1, names_.Add(name, &fresh));
    if (!fresh) return InternalError("a name comes twice");
    BindText(name_, 2, name);
    return Step(name_);
  }

  Status Prepare() {
    const std::pair<const char*, sqlite3_stmt**> all[] = {{"INSERT INTO msprobe_name VALUES (?,?)", &name_},
                                                          {"INSERT INTO msprobe_data VALUES (?,?,?)", &data_},
                                                          {"INSERT INTO tb_stack VALUES (?,?)", &stack_},
                                                          {"INSERT INTO msprobe_node (node, name_id, up, children, "
                                                           "type, micro_step, stack, is_distributed, modified, data) "
                                                           "VALUES (?,?,?,?,?,?,?,?,?,?)",
                                                           &node_}};
    for (const auto& [sql, statement] : all) {
      if (sqlite3_prepare_v2(db_, sql, -1, statement, nullptr) != SQLITE_OK) return Failed();
    }
    return OkStatus();
  }

  static void BindText(sqlite3_stmt* statement, int column, std::string_view text) {
    sqlite3_bind_text64(statement, column, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  Status Step(sqlite3_stmt* statement) {
    const bool done = sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_reset(statement);
    return done ? OkStatus() : Failed();
  }
  Status Exec(const std::string& sql) {
    return sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK ? OkStatus() : Failed();
  }
  Status Failed() { return InternalError(fmt::format("{}: {}", temp_.path(), sqlite3_errmsg(db_))); }
  void Close() {
    for (sqlite3_stmt** s : {&name_, &data_, &stack_, &node_}) sqlite3_finalize(std::exchange(*s, nullptr));
    sqlite3_close(std::exchange(db_, nullptr));
  }

  TempPath temp_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt *name_ = nullptr, *data_ = nullptr, *stack_ = nullptr, *node_ = nullptr;
  int64_t rows_ = 0;
  NameTable names_;
  std::vector<uint32_t> ids_;  // of the names of nodes
};

Status WriteInserts(const Input& in, const std::string& path) { return InsertedFile(path).Write(in); }

using Rows = std::vector<std::string>;

Rows Query(sqlite3* db, const std::string& sql) {
  Rows rows;
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr);
  while (sqlite3_step(statement) == SQLITE_ROW) {
    std::string row;
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
      row.append(i ? "|" : "").append(text ? text : "NULL");
    }
    rows.push_back(std::move(row));
  }
  if (sqlite3_finalize(statement) != SQLITE_OK) rows.emplace_back(sqlite3_errmsg(db));
  return rows;
}

/// Its tables, indexes and view with the SQL of each, what SQLite finds wrong, and of each table the number of rows and
/// a sum of hashes of the rows.
Rows Content(const std::string& path) {
  sqlite3* db = nullptr;
  if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) return {path + " cannot be opened"};
  Rows content = Query(db, "SELECT type, name, sql FROM sqlite_master ORDER BY name");
  for (std::string& line : Query(db, "PRAGMA integrity_check")) content.push_back(std::move(line));
  for (const std::string& table : Query(db, "SELECT name FROM sqlite_master WHERE type='table' ORDER BY name")) {
    sqlite3_stmt* read = nullptr;
    sqlite3_prepare_v2(db, ("SELECT rowid, * FROM " + table).c_str(), -1, &read, nullptr);
    uint64_t rows = 0, sum = 0;
    std::string row;
    for (; sqlite3_step(read) == SQLITE_ROW; ++rows) {
      row.clear();
      for (int i = 0; i < sqlite3_column_count(read); ++i) {
        row += static_cast<char>(sqlite3_column_type(read, i));
        const auto* bytes = static_cast<const char*>(sqlite3_column_blob(read, i));
        row.append(bytes ? bytes : "", static_cast<size_t>(sqlite3_column_bytes(read, i)));
      }
      sum += std::hash<std::string>()(row);
    }
    sqlite3_finalize(read);
    content.push_back(fmt::format("{}: {} rows, {:016x}", table, rows, sum));
  }
  sqlite3_close(db);
  return content;
}

using Writer = Status (*)(const Input&, const std::string&);

/// A folder of its own, gone at the end.
struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "vis_db_bench_XXXXXX").string();
    path = mkdtemp(name.data()) ? name : std::string();
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string File() const { return path + "/graph.vis.db"; }
  std::string path;
};

Rows ContentOf(Writer write, const Input& in) {
  const Folder folder;
  const Status status = write(in, folder.File());
  return status.ok() ? Content(folder.File()) : Rows{status.message()};
}

/// Empty when both ways give the same rows in a sound file.
const std::string& Difference(int64_t nodes) {
  static std::map<int64_t, std::string> kept;
  const auto [at, fresh] = kept.try_emplace(nodes);
  if (!fresh) return at->second;
  const Rows bulk = ContentOf(WriteBulk, InputOf(nodes)), inserted = ContentOf(WriteInserts, InputOf(nodes));
  const std::string count = fmt::format("msprobe_node: {} rows", nodes);
  bool found = false;
  for (const std::string& line : bulk) found = found || line.starts_with(count);
  if (bulk != inserted) at->second = "the files differ";
  if (!found) at->second = "rows are missing";
  for (size_t i = 0; i < std::max(bulk.size(), inserted.size()); ++i) {
    const std::string a = i < bulk.size() ? bulk[i] : "", b = i < inserted.size() ? inserted[i] : "";
    if (a != b) at->second += fmt::format("; \"{}\", inserted \"{}\"", a, b);
  }
  return at->second;
}

void Run(benchmark::State& state, Writer write) {
  const Input& in = InputOf(state.range(0));
  if (const std::string& difference = Difference(state.range(0)); !difference.empty()) {
    return state.SkipWithError(difference.c_str());
  }
  for (auto _ : state) {
    state.PauseTiming();
    auto folder = std::make_unique<Folder>();
    state.ResumeTiming();
    const Status status = write(in, folder->File());
    state.PauseTiming();
    if (!status.ok()) state.SkipWithError(status.message().c_str());
    state.counters["file_mb"] = static_cast<double>(std::filesystem::file_size(folder->File())) / 1e6;
    folder.reset();
    state.ResumeTiming();
    if (!status.ok()) break;
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void BM_VisDbBulk(benchmark::State& state) { Run(state, WriteBulk); }
void BM_VisDbInsert(benchmark::State& state) { Run(state, WriteInserts); }

void Sizes(benchmark::internal::Benchmark* bench) {
  bench->Arg(100'000)->Arg(1'000'000)->Iterations(1)->Repetitions(5)->UseRealTime()->MeasureProcessCPUTime()->Unit(
      benchmark::kMillisecond);
}
BENCHMARK(BM_VisDbBulk)->Apply(Sizes);
BENCHMARK(BM_VisDbInsert)->Apply(Sizes);

}  // namespace
}  // namespace msprobe
