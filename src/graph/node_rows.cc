#include "graph/node_rows.h"

#include "base/text.h"

namespace msprobe {
namespace {

constexpr std::string_view kLostStackText =
    "This backward node cannot find the forward node and cannot retrieve stack information.";

/// What one thread reuses from node to node.
struct Scratch {
  JsonDoc npu_doc, bench_doc;
  ParamList npu, bench;
  std::vector<Row> rows;
  std::vector<const Row*> row_of;  // of each parameter
};

class TextWriter {
 public:
  explicit TextWriter(std::string* out) : out_(out), begin_(out->size()) {}
  NodeRows::Span Done() const { return {begin_, out_->size() - begin_}; }

 private:
  std::string* out_;
  size_t begin_;
};

void AppendEntry(std::string& out, std::string_view key, const Value& v) {
  out += ", ";
  AppendJsonString(out, key);
  out += ": ";
  AppendField(out, v);
}

// Literal keys need no escaping.
template <size_t N>
void AppendLiteralKey(std::string& out, const char (&key)[N]) {
  out.append(", \"", 3);
  out.append(key, N - 1);
  out.append("\": ", 3);
}

void AppendPercent(std::string& out, const Value& v) {
  if (v.kind != Value::Kind::kDouble) return AppendField(out, v);
  std::string text = PyRepr(v.d);
  text += '%';
  RoundDecimalText(&text);
  out += '"';
  out += text;
  out += '"';
}

void AppendDiff(std::string& out, const Difference& d) {
  if (d.wide.empty()) return AppendField(out, d.value);
  out += '"';
  out += d.wide;
  out += '"';
}

void AppendVerdict(std::string& out, const Row& row, GraphMode mode) {
  if (mode == GraphMode::kSummary) {
    AppendLiteralKey(out, "Max diff"), AppendDiff(out, row.max);
    AppendLiteralKey(out, "Min diff"), AppendDiff(out, row.min);
    AppendLiteralKey(out, "Mean diff"), AppendDiff(out, row.mean);
    AppendLiteralKey(out, "L2norm diff"), AppendDiff(out, row.norm);
    AppendLiteralKey(out, "MaxRelativeErr"), AppendPercent(out, row.max.relative);
    AppendLiteralKey(out, "MinRelativeErr"), AppendPercent(out, row.min.relative);
    AppendLiteralKey(out, "MeanRelativeErr"), AppendPercent(out, row.mean.relative);
    AppendLiteralKey(out, "NormRelativeErr"), AppendPercent(out, row.norm.relative);
  }
  if (mode == GraphMode::kMd5) {
    AppendLiteralKey(out, "Result");
    AppendField(out, Value::Of(LevelName(row.level)));
  }
  AppendLiteralKey(out, "Requires_grad Consistent");
  out += row.same_requires_grad ? "\"True\"" : "\"False\"";
  if (mode == GraphMode::kSummary) {
    AppendLiteralKey(out, "Result");
    AppendField(out, Value::Of(LevelName(row.level)));
  }
  AppendLiteralKey(out, "Err_message");
  std::string list = "[";
  for (const char* message : row.messages) {
    if (list.size() > 1) list += ", ";
    AppendJsonString(list, message);
  }
  list += ']';
  AppendJsonString(out, list);
}

bool IsGroup(const Param& p) {
  for (const Field& f : p.fields)
    if (f.key == "type") return f.value.is_text() && f.value.text == "torch.ProcessGroup";
  return false;
}

// What linking needs of a batch is not shown.
bool IsHidden(std::string_view key, bool is_batch) {
  return is_batch && (key == "op" || key == "peer" || key == "tag" || key == "group_id");
}

// A process group shows who is in it and nothing else.
void AppendGroup(std::string& out, const Param& p, bool is_batch) {
  const size_t begin = out.size();
  for (const Field& f : p.fields) {
    const bool shown = f.key == "type" || f.key == "group_ranks" || f.key == "group_id" || f.key == "data_name";
    if (shown && !IsHidden(f.key, is_batch)) AppendEntry(out, f.key, f.value);
  }
  out.replace(begin, out.size() > begin ? 2 : 0, "{");
  out += '}';
}

void AppendParam(std::string& out, const Param& p, const Row* row, GraphMode mode, bool keep_md5, bool is_batch) {
  AppendJsonString(out, p.name);
  out += ": ";
  if (IsGroup(p)) return AppendGroup(out, p, is_batch);
  if (p.max.is_null() || (p.max.is_text() && FieldText(p.max) == "null")) {
    out += "{\"value\": \"null\"}";
    return;
  }
  const size_t begin = out.size();
  for (const Field& f : p.fields) {
    if ((f.key == "md5" && !keep_md5) || IsHidden(f.key, is_batch)) continue;
    AppendEntry(out, f.key, f.value);
  }
  if (row) AppendVerdict(out, *row, mode);
  out.replace(begin, out.size() > begin ? 2 : 0, "{");
  out += '}';
}

class RowMaker {
 public:
  RowMaker(const GraphSide& side, const GraphSide* bench, const RowOptions& options, Scratch* scratch, NodeBlock* block)
      : side_(side), bench_(bench), options_(options), s_(*scratch), block_(*block), out_(block->rows.text) {}

  Status Add(uint32_t node_index, uint32_t order) {
    const NodeGraph& graph = side_.rank->graph;
    const Node& node = graph.nodes[node_index];
    NodeRows::Row row;
    row.node = node_index;
    row.order = order;
    row.type = node.type;
    row.micro_step = std::max(node.micro_step, 0);
    row.distributed = StartsWith(node.name, "Distributed");
    row.id = Put(graph_id_ + "_", node.name);
    row.name = Put("", node.name);
    if (node.parent != kNoIndex) row.up_node = Put("", graph.nodes[node.parent].name);
    row.sub_nodes = PutChildren(node);
    row.link = PutLink(node);
    row.stack_id = Put(graph_id_ + "_", std::to_string(side_.stack_number[node_index]));
    MSP_RETURN_IF_ERROR(AddData(node, &row));
    block_.rows.rows.push_back(row);
    return OkStatus();
  }

 private:
  NodeRows::Span Put(std::string_view a, std::string_view b) {
    TextWriter w(&out_);
    out_ += a;
    out_ += b;
    return w.Done();
  }

  NodeRows::Span PutNames(const NodeGraph& graph, const std::vector<uint32_t>& nodes) {
    TextWriter w(&out_);
    out_ += '[';
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (i) out_ += ", ";
      AppendJsonString(out_, graph.nodes[nodes[i]].name);
    }
    out_ += ']';
    return w.Done();
  }

  NodeRows::Span PutChildren(const Node& node) {
    return node.children.empty() ? NodeRows::Span() : PutNames(side_.rank->graph, node.children);
  }

  NodeRows::Span PutLink(const Node& node) {
    if (node.match == kNoIndex || !side_.other) return Put("", "[]");
    return PutNames(*side_.other, side_.other->PathTo(node.match));
  }

  Status ReadParams(const RankGraph& rank, const Node& node, JsonDoc* doc, ParamList* params) {
    params->Clear();
    if (node.op == kNoIndex) {
      doc->SetNull();
      return OkStatus();
    }
    MSP_RETURN_IF_ERROR(rank.files.dump.ParseOp(node.op, doc));
    params->Read(node.name, *doc);
    return OkStatus();
  }

  Status AddData(const Node& node, NodeRows::Row* row) {
    MSP_RETURN_IF_ERROR(ReadParams(*side_.rank, node, &s_.npu_doc, &s_.npu));
    s_.rows.clear();
    s_.row_of.assign(s_.npu.size(), nullptr);
    if (bench_ && node.match != kNoIndex && s_.npu.size() > 0) {
      const Node& partner = bench_->rank->graph.nodes[node.match];
      MSP_RETURN_IF_ERROR(ReadParams(*bench_->rank, partner, &s_.bench_doc, &s_.bench));
      CompareParams(options_.mode, s_.npu, s_.bench, &s_.rows);
      if (!s_.rows.empty()) {
        row->precision = static_cast<Precision>(JudgeNode(options_.mode, node.name, &s_.rows));
        for (const Row& r : s_.rows) s_.row_of[static_cast<size_t>(r.npu - &s_.npu[0])] = &r;
      }
    }
    if (options_.overflow_check && node.op != kNoIndex && node.type != NodeType::kCollection) {
      row->overflow = ClassifyOverflow(node.name, s_.npu_doc);
    }
    row->input = PutParams(node, false);
    row->output = PutParams(node, true);
    if (row->distributed) AddCall(node, *row);
    return OkStatus();
  }

  NodeRows::Span PutParams(const Node& node, bool output) {
    const bool keep_md5 = options_.compare && options_.mode == GraphMode::kMd5;
    const bool is_batch = Contains(node.name, "batch_isend_irecv");
    TextWriter w(&out_);
    out_ += '{';
    const char* comma = "";
    for (size_t i = 0; i < s_.npu.size(); ++i) {
      const Param& p = s_.npu[i];
      if (p.is_output() != output) continue;
      out_ += comma;
      comma = ", ";
      AppendParam(out_, p, s_.row_of[i], options_.mode, keep_md5, is_batch);
    }
    out_ += '}';
    return w.Done();
  }

  void AddCall(const Node& node, const NodeRows::Row& row) {
    LinkedCall call = ReadLinkedCall(node.name, s_.npu, s_.npu_doc);
    static constexpr std::string_view kIndex[] = {"0", "0.5", "1"};
    if (options_.overflow_check) {
      if (row.overflow != Overflow::kNone) call.index = OverflowName(row.overflow);
    } else if (row.precision != Precision::kNone) {
      call.index = kIndex[static_cast<size_t>(row.precision)];
    }
    call.row_id = static_cast<int64_t>(block_.rows.rows.size());
    block_.calls.push_back(std::move(call));
  }

  const GraphSide& side_;
  const GraphSide* bench_;
  const RowOptions& options_;
  Scratch& s_;
  NodeBlock& block_;
  std::string& out_;
  const std::string graph_id_ = side_.key.id();
};

}  // namespace

void NumberStacks(GraphSide* side) {
  const NodeGraph& graph = side->rank->graph;
  side->stack_number.assign(graph.nodes.size(), 0);
  std::unordered_map<uint32_t, uint32_t> number;
  for (uint32_t id : graph.order) {
    const uint32_t stack = graph.nodes[id].stack;
    const auto [it, fresh] = number.try_emplace(stack, static_cast<uint32_t>(side->stack_ids.size()));
    if (fresh) side->stack_ids.push_back(stack);
    side->stack_number[id] = it->second;
  }
}

std::string StackJson(const RankGraph& rank, uint32_t stack) {
  std::string out = "[";
  if (stack == kLostStack) {
    AppendJsonString(out, kLostStackText);
  } else if (stack != kNoIndex) {
    for (const std::string& frame : rank.files.stack.Frames(stack)) {
      if (out.size() > 1) out += ", ";
      AppendJsonString(out, frame);
    }
  }
  return out + "]";
}

StatusOr<NodeBlock> MakeRows(const GraphSide& side, const GraphSide* bench, const RowOptions& options, size_t begin,
                             size_t end) {
  thread_local Scratch scratch;
  NodeBlock block;
  RowMaker maker(side, bench, options, &scratch, &block);
  for (size_t i = begin; i < end; ++i) {
    MSP_RETURN_IF_ERROR(maker.Add(side.rank->graph.order[i], static_cast<uint32_t>(i)));
  }
  return block;
}

}  // namespace msprobe
