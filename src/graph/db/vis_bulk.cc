#include "graph/db/vis_bulk.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/interrupt.h"
#include "base/joined_threads.h"
#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "graph/db/text_order.h"
#include "graph/db/vis_schema.h"

namespace msprobe {
namespace {

constexpr uint64_t kMostText = 1'000'000'000;                    // what SQLite takes in one row
constexpr size_t kAhead = 8, kMostAhead = 256, kLineBytes = 64;  // entries, bytes of text and of a cache line
constexpr size_t kEntriesBetweenLooks = 64 << 10;                // at Ctrl-C

Status LookAtInterrupt(size_t entry) {
  return entry % kEntriesBetweenLooks == 0 && InterruptRequested() ? Interrupted() : OkStatus();
}

void AddText(const NodeRows& batch, NodeRows::Span span, SqlRecord* record) {
  if (span.size == 0) return record->Null();
  record->TailText(std::string_view(batch.text).substr(span.begin, span.size));
}

}  // namespace

StatusOr<std::unique_ptr<VisBulk>> VisBulk::Start(const std::string& path, const std::string& shown, uint32_t pages,
                                                  RootPages roots) {
  MSP_ASSIGN_OR_RETURN(std::unique_ptr<PageFile> file, PageFile::Open(path, shown, pages));
  return std::unique_ptr<VisBulk>(new VisBulk(std::move(file), shown, std::move(roots)));
}

VisBulk::VisBulk(std::unique_ptr<PageFile> file, std::string shown, RootPages roots)
    : file_(std::move(file)), shown_(std::move(shown)), roots_(std::move(roots)) {
  node_ = Table("msprobe_node");
  data_ = Table("msprobe_data");
  name_ = Table("msprobe_name");
  path_ = Table("msprobe_path");
  stack_ = Table("tb_stack");
  NameId("", HashName(""));  // the parent of the root is name 0
}

BTreeWriter* VisBulk::Table(std::string_view name) {
  const auto root = roots_.find(name);
  if (root == roots_.end()) return nullptr;
  return &tables_.try_emplace(std::string(name), file_.get(), BTreeWriter::Kind::kTable, root->second).first->second;
}

uint32_t VisBulk::NameId(std::string_view name, uint32_t hash) {
  bool fresh = false;
  const uint32_t id = names_.Add(name, hash, &fresh);
  if (!fresh) return id;
  NoteSize(name.size());
  record_.Clear();
  record_.Null();
  record_.TailText(name);
  name_->AddRow(id, &record_);
  return id;
}

uint32_t VisBulk::NameOf(uint32_t node) {
  uint32_t& id = node_names_[node];
  if (id == kNoIndex) id = NameId(graph_->nodes[node].name, HashName(graph_->nodes[node].name));
  return id;
}

uint32_t VisBulk::NameOfOther(uint32_t node) {
  uint32_t& id = other_names_[node];
  if (id == kNoIndex) id = NameId(other_->nodes[node].name, HashName(other_->nodes[node].name));
  return id;
}

// The ancestors of a partner, root first, as the beginning of a JSON list. Brothers share it, and so do all ranks.
uint32_t VisBulk::PathOf(uint32_t parent) {
  const std::vector<uint32_t> chain = other_->PathTo(parent);
  std::string text = "[";
  uint64_t key = 0;
  for (size_t i = 0;; ++i) {
    const auto [it, fresh] = paths_.try_emplace(key, static_cast<uint32_t>(paths_.size()));
    const uint32_t path = it->second;
    if (fresh) {
      NoteSize(text.size());
      record_.Clear();
      record_.Null();
      record_.TailText(text);
      path_->AddRow(path, &record_);
    }
    if (i == chain.size()) return path;
    key = (uint64_t{path} + 1) << 32 | NameOfOther(chain[i]);
    AppendJsonString(text, other_->nodes[chain[i]].name);
    text += ", ";
  }
}

void VisBulk::Expect(const NodeRows& batch) const {
  for (const NodeRows::Row& row : batch.rows) {
    if (node_names_[row.node] == kNoIndex) names_.Prefetch(row.name_hash);
  }
}

void VisBulk::BeginGraph(const NodeGraph& graph, const NodeGraph* other) {
  graph_ = &graph;
  other_ = other;
  node_names_.assign(graph.nodes.size(), kNoIndex);
  names_.Reserve(graph.nodes.size());  // other graphs mostly have the same names
  other_names_.assign(other ? other->nodes.size() : 0, kNoIndex);
  other_paths_.assign(other ? other->nodes.size() : 0, kNoIndex);
}

Status VisBulk::Check() const {
  if (longest_ > kMostText) {
    return BadInput(
        Msg("a node of the graph needs a text of {} bytes, more than {} can hold: check the dump", longest_, shown_));
  }
  return file_->Check();
}

StatusOr<int64_t> VisBulk::AddData(const NodeRows& batch, NodeRows::Span input, NodeRows::Span output) {
  if (input.size == 0 && output.size == 0) return 0;
  NoteSize(input.size + output.size);
  record_.Clear();
  record_.Null();
  AddText(batch, input, &record_);
  AddText(batch, output, &record_);
  MSP_RETURN_IF_ERROR(Check());
  data_->AddRow(++data_rows_, &record_);
  return data_rows_;
}

Status VisBulk::AddNode(const NodeRows& batch, const NodeRows::Row& row, int64_t data) {
  const Node& node = graph_->nodes[row.node];
  NoteSize(row.merge_info.size);
  if (row.name_hash != 0 && node_names_[row.node] == kNoIndex) {
    node_names_[row.node] = NameId(node.name, row.name_hash);
  }
  const uint32_t name = NameOf(row.node), up = node.parent == kNoIndex ? 0 : NameOf(node.parent);
  const bool matched = node.match != kNoIndex && other_;
  const uint32_t partner = matched ? NameOfOther(node.match) : 0;
  uint32_t path = 0;
  if (matched) {
    const uint32_t above = other_->nodes[node.match].parent;
    path = above == kNoIndex ? kNoIndex : other_paths_[above];
    if (path == kNoIndex) path = PathOf(above);
    if (above != kNoIndex) other_paths_[above] = path;
  }
  name_of_row_.push_back(name);
  up_of_row_.push_back(up);
  record_.Clear();
  record_.Null();
  record_.Int(name);
  record_.Int(up);
  record_.Int(static_cast<int64_t>(node.children.size()));
  record_.Int(static_cast<int>(node.type));
  record_.Int(std::max(node.micro_step, 0));
  record_.Int(row.stack);
  record_.Int(row.distributed ? 1 : 0);
  record_.Int(0);  // modified
  row.verdict == Verdict::kNone ? record_.Null() : record_.Real(PrecisionIndex(row.verdict));
  row.overflow == Overflow::kNone ? record_.Null() : record_.Text(OverflowName(row.overflow));
  matched ? record_.Int(partner) : record_.Null();
  matched ? record_.Int(path) : record_.Null();
  data == 0 ? record_.Null() : record_.Int(data);
  record_.Null();  // link
  record_.Null();  // communication
  AddText(batch, row.merge_info, &record_);
  MSP_RETURN_IF_ERROR(Check());
  node_->AddRow(rows(), &record_);
  return OkStatus();
}

Status VisBulk::AddStack(const std::string& id, const std::string& frames_json) {
  NoteSize(id.size() + frames_json.size());
  MSP_RETURN_IF_ERROR(Check());
  stack_ids_.push_back(id);
  record_.Clear();
  record_.Text(id);
  record_.TailText(frames_json);
  stack_->AddRow(static_cast<int64_t>(stack_ids_.size()), &record_);
  return OkStatus();
}

/// By the value of each row, then by the row.
Status VisBulk::WriteNodeIndex(std::string_view name, const BigArray<uint32_t>& keys) {
  const auto root = roots_.find(name);
  if (root == roots_.end()) return OkStatus();
  BigArray<uint32_t> place(names_.size() + 1, 0);  // where the rows of a value are in `order`
  for (const uint32_t key : keys) ++place[key + size_t{1}];
  for (size_t key = 1; key < place.size(); ++key) place[key] += place[key - 1];
  BigArray<uint32_t> order(keys.size());
  for (uint32_t row = 0; row < keys.size(); ++row) order[place[keys[row]]++] = row;
  BTreeWriter index(file_.get(), BTreeWriter::Kind::kIndex, root->second);
  for (size_t i = 0; i < order.size(); ++i) {
    MSP_RETURN_IF_ERROR(LookAtInterrupt(i));
    record_.Clear();
    record_.Int(keys[order[i]]);
    record_.Int(int64_t{order[i]} + 1);
    index.AddEntry(&record_);
  }
  index.Finish();
  return OkStatus();
}

Status VisBulk::WriteTextIndex(std::string_view name, const std::vector<std::string_view>& texts,
                               const std::vector<uint32_t>& order, int64_t first_row) {
  const auto root = roots_.find(name);
  if (root == roots_.end()) return OkStatus();
  BTreeWriter index(file_.get(), BTreeWriter::Kind::kIndex, root->second);
  for (size_t i = 0; i < order.size(); ++i) {
    MSP_RETURN_IF_ERROR(LookAtInterrupt(i));
    // In this order texts lie anywhere.
    if (i + 2 * kAhead < order.size()) __builtin_prefetch(&texts[order[i + 2 * kAhead]]);
    if (i + kAhead < order.size()) {
      const std::string_view soon = texts[order[i + kAhead]];
      for (size_t at = 0; at < std::min(soon.size(), kMostAhead); at += kLineBytes)
        __builtin_prefetch(soon.data() + at);
    }
    record_.Clear();
    record_.Text(texts[order[i]]);
    record_.Int(first_row + order[i]);
    index.AddEntry(&record_);
  }
  index.Finish();
  return OkStatus();
}

Status VisBulk::Finish() {
  MSP_RETURN_IF_ERROR(Check());
  for (auto& [name, table] : tables_) table.Finish();
  const std::vector<std::string_view> stacks(stack_ids_.begin(), stack_ids_.end());
  std::vector<std::string_view> names;
  std::vector<uint32_t> order;
  JoinedThreads sorting;
  const auto sort = [&] { order = OrderOfTexts(names); };
  if (roots_.contains("msprobe_name1")) {
    names.reserve(names_.size());
    for (uint32_t id = 0; id < names_.size(); ++id) names.push_back(names_[id]);
    sorting.Start(StartThreads(1, sort));
    if (sorting.empty()) sort();
  }
  Status status = WriteNodeIndex("msprobe_node1", name_of_row_);
  if (status.ok()) status = WriteNodeIndex("msprobe_node2", up_of_row_);
  if (status.ok()) status = WriteTextIndex("sqlite_autoindex_tb_stack_1", stacks, OrderOfTexts(stacks), 1);
  sorting.Join();
  if (status.ok()) status = WriteTextIndex("msprobe_name1", names, order, 0);
  MSP_RETURN_IF_ERROR(status);
  return file_->Finish();
}

}  // namespace msprobe
