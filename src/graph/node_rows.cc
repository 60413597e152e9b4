#include "graph/node_rows.h"

#include <fmt/format.h>

#include <cmath>

#include "base/slot_table.h"
#include "base/text.h"
#include "graph/merge_suspects.h"
#include "graph/name_index.h"
#include "graph/vis_schema.h"

namespace msprobe {
namespace {

constexpr std::string_view kLostStackText =
    "This backward node cannot find the forward node and cannot retrieve stack information.";

/// What one thread reuses from node to node.
struct Scratch {
  JsonDoc npu_doc, bench_doc;
  ParamList npu, bench;
  std::vector<Row> rows;
  std::deque<TensorDiff> tensors;  // of the rows, in tensor mode
  DistanceMeter meter;
  std::vector<const Row*> row_of;  // of each parameter
  MergeNotes npu_notes, bench_notes;
};

class TextWriter {
 public:
  explicit TextWriter(std::string* out) : out_(out), begin_(out->size()) {}
  NodeRows::Span Done() const { return {begin_, out_->size() - begin_}; }

 private:
  std::string* out_;
  size_t begin_;
};

void AppendKey(std::string& out, std::string_view key) {
  if (const char code = PackedKey(key)) {
    out += code;
    return;
  }
  out += "\", \"";
  AppendJsonBody(out, key);
  out += "\": \"";
}

/// Writes one parameter: `"NAME": {"KEY": "VALUE", ...}`, packed.
class ParamWriter {
 public:
  ParamWriter(std::string* out, std::string_view node, bool plain_node, const Param& p) : out_(*out) {
    std::string_view name = p.name;
    out_ += '"';
    if (plain_node && StartsWith(name, node)) {
      out_ += kPackName;
      name.remove_prefix(node.size());
    }
    AppendJsonBody(out_, name);
  }
  void Null() { out_ += kPackNull; }
  void Field(std::string_view key, const Value& v) {
    Key(key);
    AppendField(out_, v);
  }
  void Field(std::string_view key, const Difference& d) {
    Key(key);
    if (d.wide.empty()) {
      AppendField(out_, d.value);
    } else {
      out_ += d.wide;
    }
  }
  void Text(std::string_view key, std::string_view text) {
    Key(key);
    AppendJsonBody(out_, text);
  }
  void Percent(std::string_view key, const Value& v) {
    Key(key);
    if (v.kind != Value::Kind::kDouble) return AppendField(out_, v);
    std::string text = PyRepr(v.d);
    text += '%';
    RoundDecimalText(&text);
    out_ += text;
  }
  /// All fields from here to the end are these.
  void Tail(PackCode code) {
    if (empty_) out_ += "\": {\"";
    out_ += code;
    closed_ = true;
  }
  void Piece(PackCode code) { out_ += code; }
  /// The first two fields of a tensor, when they are the usual ones.
  bool TensorHead(const std::vector<msprobe::Field>& fields) {
    static constexpr std::string_view kPrefix = "torch.";
    if (fields.size() < 2 || fields[0].key != "type" || fields[1].key != "dtype") return false;
    const Value &type = fields[0].value, &dtype = fields[1].value;
    if (!type.is_text() || type.text != "torch.Tensor" || !dtype.is_text() || !StartsWith(dtype.text, kPrefix))
      return false;
    out_ += kPackTensor;
    empty_ = false;
    AppendField(out_, Value::Of(dtype.text.substr(kPrefix.size())));
    return true;
  }
  void Done() {
    if (closed_) return;
    out_ += empty_ ? "\": {}" : "\"}";
  }

 private:
  void Key(std::string_view key) {
    if (!empty_) return AppendKey(out_, key);
    empty_ = false;
    out_ += "\": {\"";
    AppendJsonBody(out_, key);
    out_ += "\": \"";
  }

  std::string& out_;
  bool empty_ = true, closed_ = false;
};

bool IsZero(const Difference& d) {
  return d.wide.empty() && d.value.kind == Value::Kind::kDouble && d.value.d == 0 && !std::signbit(d.value.d) &&
         d.relative.kind == Value::Kind::kDouble && d.relative.d == 0;
}

void AppendDifferences(const Row& row, ParamWriter* w) {
  if (IsZero(row.max) && IsZero(row.min) && IsZero(row.mean) && IsZero(row.norm)) return w->Piece(kPackEqual);
  w->Field("Max diff", row.max);
  w->Field("Min diff", row.min);
  w->Field("Mean diff", row.mean);
  w->Field("L2norm diff", row.norm);
  w->Percent("MaxRelativeErr", row.max.relative);
  w->Percent("MinRelativeErr", row.min.relative);
  w->Percent("MeanRelativeErr", row.mean.relative);
  w->Percent("NormRelativeErr", row.norm.relative);
}

void AppendMetrics(const TensorDiff& diff, ParamWriter* w) {
  std::string text;
  for (size_t k = 0; k < kMetricCount; ++k) {
    text.clear();
    diff.cells[k].AppendText(&text);
    w->Text(kMetricNames[k], text);
  }
}

void AppendVerdict(const Row& row, GraphMode mode, ParamWriter* w) {
  if (row.tensor) AppendMetrics(*row.tensor, w);
  if (mode == GraphMode::kSummary) {
    AppendDifferences(row, w);
    if (row.same_requires_grad && row.level == Level::kPass && row.messages.empty()) return w->Tail(kPackPass);
  }
  if (mode == GraphMode::kMd5) w->Text("Result", LevelName(row.level));
  w->Text("Requires_grad Consistent", row.same_requires_grad ? "True" : "False");
  if (mode != GraphMode::kMd5) w->Text("Result", LevelName(row.level));
  std::string list = "[";
  for (const char* message : row.messages) {
    if (list.size() > 1) list += ", ";
    AppendJsonString(list, message);
  }
  list += ']';
  w->Text("Err_message", list);
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
bool IsShownOfGroup(std::string_view key) {
  return key == "type" || key == "group_ranks" || key == "group_id" || key == "data_name";
}

void AppendParam(const Param& p, const Row* row, GraphMode mode, bool keep_md5, bool is_batch, ParamWriter* w) {
  const bool group = IsGroup(p);
  if (!group && (p.max.is_null() || (p.max.is_text() && FieldText(p.max) == "null"))) return w->Null();
  const size_t head = w->TensorHead(p.fields) ? 2 : 0;
  for (size_t i = head; i < p.fields.size(); ++i) {
    const Field& f = p.fields[i];
    if (group ? !IsShownOfGroup(f.key) : f.key == "md5" && !keep_md5) continue;
    if (!IsHidden(f.key, is_batch)) w->Field(f.key, f.value);
  }
  if (row && !group) AppendVerdict(*row, mode, w);
  w->Done();
}

class RowMaker {
 public:
  RowMaker(const GraphSide& side, const GraphSide* bench, const RowOptions& options, Scratch* scratch, NodeBlock* block)
      : side_(side), bench_(bench), options_(options), s_(*scratch), block_(*block), out_(block->rows.text) {}

  Status Add(uint32_t node_index, uint32_t order) {
    const Node& node = side_.rank->graph.nodes[node_index];
    NodeRows::Row row;
    row.node = node_index;
    row.order = order;
    row.stack = side_.stack_number[node_index];
    row.name_hash = HashName(node.name);
    row.distributed = StartsWith(node.name, "Distributed");
    MSP_RETURN_IF_ERROR(AddData(node_index, &row));
    // The golden side's rows are read together with their partners; what follows is about the target.
    if (side_.key.source == "NPU") {
      ReadFlowItems(s_.npu, &block_.items);
      if (options_.overflow_check) AddBadParameter();
    }
    block_.item_end.push_back(block_.items.size());
    block_.patterns.push_back(NamePatternHash(node.name));
    block_.rows.rows.push_back(row);
    return OkStatus();
  }

 private:
  Status ReadParams(const RankGraph& rank, uint32_t index, JsonDoc* doc, ParamList* params, MergeNotes* notes) {
    params->Clear();
    const Node& node = rank.graph.nodes[index];
    if (rank.merged) {
      MSP_RETURN_IF_ERROR(rank.merged->Read(rank, index, doc, notes));
      if (doc->IsObject()) params->Read(node.name, *doc);
      return OkStatus();
    }
    if (node.op == kNoIndex) {
      doc->SetNull();
      return OkStatus();
    }
    MSP_RETURN_IF_ERROR(rank.files.dump.ParseOp(node.op, doc));
    params->Read(node.name, *doc);
    return OkStatus();
  }

  Status AddData(uint32_t index, NodeRows::Row* row) {
    const Node& node = side_.rank->graph.nodes[index];
    const bool known = side_.done && (*side_.done)[index];
    if (known && !row->distributed && !side_.rank->merged) return OkStatus();
    MSP_RETURN_IF_ERROR(ReadParams(*side_.rank, index, &s_.npu_doc, &s_.npu, &s_.npu_notes));
    s_.rows.clear();
    s_.row_of.assign(s_.npu.size(), nullptr);
    if (bench_ && node.match != kNoIndex && s_.npu.size() > 0) MSP_RETURN_IF_ERROR(Compare(index, row));
    row->overflow = OverflowOf(node, s_.npu_doc);
    if (side_.rank->merged) AddMergeNotes(row);
    if (!known) {
      row->input = PutParams(node.name, s_.npu, false, options_.mode);
      row->output = PutParams(node.name, s_.npu, true, options_.mode);
    }
    if (row->distributed && !side_.rank->merged) AddCall(node, *row);
    return OkStatus();
  }

  Level Judge(std::string_view node) {
    if (!options_.tensors) return JudgeNode(options_.mode, node, &s_.rows, options_.merged, *options_.rules);
    MeasureTensors(*options_.tensors, &s_.rows, &s_.tensors, options_.log ? &block_.log : nullptr);
    const Level level = JudgeNode(options_.mode, node, &s_.rows, false, *options_.rules);
    return std::max(level, NoteNotMeasured(node, &s_.tensors, &s_.rows));
  }

  /// Up to the first difference two runs wrote the same: then what was read of one side stands for both.
  bool HasSameText(const Node& node, const Node& partner) const {
    if (options_.merged || options_.tensors || node.op == kNoIndex || partner.op == kNoIndex) return false;
    const DumpFile &a = side_.rank->files.dump, &b = bench_->rank->files.dump;
    const OpSpan x = a.ops()[node.op], y = b.ops()[partner.op];
    return x.length == y.length && node.name == partner.name &&
           a.file().text().substr(x.offset, x.length) == b.file().text().substr(y.offset, y.length);
  }

  void AddDistance(uint32_t index, const Node& node, const Node& partner, const JsonDoc& golden) {
    if (node.op == kNoIndex || partner.op == kNoIndex) return;
    const bool whole = !options_.merged;  // parts of tensors do not have the shapes of the whole
    block_.distances.push_back(s_.meter.Measure({options_.mode, whole}, whole ? node.op : index, node.name, s_.npu_doc,
                                                partner.name, golden, s_.rows));
    NodeDistance& added = block_.distances.back();
    added.row = static_cast<int64_t>(block_.rows.rows.size());
    // In another layout sizes and indices are others as well.
    if (!whole) added.distance.argument = added.distance.chosen = added.distance.shapes = false;
  }

  // The partner is at hand now, so its texts are written here and need no reading again.
  Status Compare(uint32_t index, NodeRows::Row* row) {
    const Node& node = side_.rank->graph.nodes[index];
    const Node& partner = bench_->rank->graph.nodes[node.match];
    const bool same = HasSameText(node, partner);
    if (!same) MSP_RETURN_IF_ERROR(ReadParams(*bench_->rank, node.match, &s_.bench_doc, &s_.bench, &s_.bench_notes));
    const JsonDoc& doc = same ? s_.npu_doc : s_.bench_doc;
    const ParamList& params = same ? s_.npu : s_.bench;
    row->has_partner = partner.match == index;
    if (row->has_partner) {
      row->partner_overflow = OverflowOf(partner, doc);
      row->partner_input = PutParams(partner.name, params, false, options_.mode);
      row->partner_output = PutParams(partner.name, params, true, options_.mode);
    }
    CompareParams(options_.mode, s_.npu, params, &s_.rows);
    if (s_.rows.empty()) return OkStatus();
    row->precision = static_cast<Precision>(Judge(node.name));
    if (options_.distances) AddDistance(index, node, partner, doc);
    for (const Row& r : s_.rows) s_.row_of[static_cast<size_t>(r.npu - &s_.npu[0])] = &r;
    return OkStatus();
  }

  Overflow OverflowOf(const Node& node, const JsonDoc& op) const {
    if (!options_.overflow_check || node.op == kNoIndex || node.type == NodeType::kCollection) return Overflow::kNone;
    return ClassifyOverflow(node.name, op);
  }

  // What was merged, what should be equal and is not, and whose part is to blame for a verdict.
  void AddMergeNotes(NodeRows::Row* row) {
    const size_t at = block_.rows.rows.size();
    MergeNotes& notes = s_.npu_notes;
    if (row->precision > Precision::kPass) {
      MergeFinding suspect = FindSuspect(side_.rank->graph.nodes[row->node].name, notes, s_.rows);
      for (int rank : suspect.ranks) notes.info.push_back(fmt::format("suspect: the part of rank {}", rank));
      if (!suspect.ranks.empty()) block_.merge.emplace_back(at, std::move(suspect));
    }
    for (MergeFinding& f : notes.findings) block_.merge.emplace_back(at, std::move(f));
    if (notes.info.empty()) return;
    TextWriter w(&out_);
    out_ += '[';
    for (size_t i = 0; i < notes.info.size(); ++i) {
      if (i) out_ += ", ";
      AppendJsonString(out_, notes.info[i]);
    }
    out_ += ']';
    row->merge_info = w.Done();
  }

  NodeRows::Span PutParams(std::string_view node, const ParamList& params, bool output, GraphMode mode) {
    const bool keep_md5 = options_.compare && mode == GraphMode::kMd5;
    const bool is_batch = Contains(node, "batch_isend_irecv");
    const bool plain = IsPlainJson(node);
    const bool verdicts = &params == &s_.npu;
    TextWriter w(&out_);
    for (size_t i = 0; i < params.size(); ++i) {
      const Param& p = params[i];
      if (p.is_output() != output) continue;
      out_ += w.Done().size == 0 ? "{" : ", ";
      ParamWriter param(&out_, node, plain, p);
      AppendParam(p, verdicts ? s_.row_of[i] : nullptr, mode, keep_md5, is_batch, &param);
    }
    if (w.Done().size > 0) out_ += '}';
    return w.Done();
  }

  /// The first one; the others of the module are mostly bad as well.
  void AddBadParameter() {
    for (size_t i = 0; i < s_.npu.size(); ++i) {
      const Param& p = s_.npu[i];
      if (p.state != ItemState::kParameter && p.state != ItemState::kParameterGrad) continue;
      for (const auto& [key, value] :
           {std::pair{"Max", &p.max}, std::pair{"Min", &p.min}, std::pair{"Mean", &p.mean}}) {
        if (!value->IsInfOrNan()) continue;
        const bool gradient = p.state == ItemState::kParameterGrad;
        const size_t at = gradient ? std::string::npos : p.name.rfind(".parameters.");
        std::string name = at == std::string::npos ? p.name : p.name.substr(at + 1);
        block_.bad.push_back(
            {block_.rows.rows.size(), gradient, std::move(name), fmt::format("{} {}", key, FieldText(*value))});
        return;
      }
    }
  }

  void AddCall(const Node& node, const NodeRows::Row& row) {
    NodeCall call = ReadNodeCall(node.name, s_.npu_doc, side_.key.rank);
    if (call.transfers.empty()) return;
    const std::vector<uint32_t>& line = side_.rank->line;
    call.line = row.node < line.size() ? line[row.node] : static_cast<uint32_t>(line.size()) + row.order;
    call.index = LinkIndex(options_.overflow_check, row.overflow, row.precision);
    call.row_id = static_cast<int64_t>(block_.rows.rows.size());
    block_.calls.push_back(std::move(call));
  }

  const GraphSide& side_;
  const GraphSide* bench_;
  const RowOptions& options_;
  Scratch& s_;
  NodeBlock& block_;
  std::string& out_;
};

}  // namespace

std::string LinkIndex(bool overflow_check, Overflow overflow, Precision precision) {
  static constexpr std::string_view kIndex[] = {"0", "0.5", "1"};
  if (overflow_check) return overflow == Overflow::kNone ? "Nan" : std::string(OverflowName(overflow));
  return precision == Precision::kNone ? "Nan" : std::string(kIndex[static_cast<size_t>(precision)]);
}

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
    for (const std::string& frame : rank.merged ? rank.merged->stacks[stack] : rank.files.stack.Frames(stack)) {
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
