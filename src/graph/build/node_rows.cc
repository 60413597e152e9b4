#include "graph/build/node_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/slot_table.h"
#include "base/text.h"
#include "compare/pair/op_at.h"
#include "graph/build/once_measured.h"
#include "graph/build/tied_gradient.h"
#include "graph/build/whole_dumps.h"
#include "graph/db/vis_schema.h"
#include "graph/flow/name_index.h"
#include "graph/node/field_text.h"
#include "graph/node/item_fields.h"
#include "json/writer.h"
#include "ops/collective.h"
#include "parallel/merge_fit.h"
#include "parallel/merge_suspects.h"

namespace msprobe {
namespace {

constexpr std::string_view kLostStackText =
    "This backward node cannot find the forward node and cannot retrieve stack information.";

/// What one thread reuses from node to node.
struct Scratch {
  JsonDoc target_doc, golden_doc;
  OpDiff diff;
  OpDiff joined;  // of layers that one side computes as one
  std::vector<ItemField> fields;
  MergeNotes target_notes, golden_notes;
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

/// Writes one item: `"NAME": {"KEY": "VALUE", ...}`, packed: codes that stand for pieces of JSON, so no JsonWriter.
class ItemWriter {
 public:
  ItemWriter(std::string* out, std::string_view node, bool plain_node, const ItemView& item) : out_(*out) {
    std::string_view name = item.name;
    out_ += '"';
    if (plain_node && StartsWith(name, node)) {
      out_ += kPackName;
      name.remove_prefix(node.size());
    }
    AppendJsonBody(out_, name);
  }
  void Null() { out_ += kPackNull; }
  void Field(std::string_view key, const StatValue& v) {
    Key(key);
    AppendField(out_, v);
  }
  /// A difference; null where the row has no partner.
  void Diff(std::string_view key, const StatDiff* d) {
    Key(key);
    if (!d) {
      out_ += kNoDiffText;
    } else if (d->diff_cell == StatDiff::Cell::kInf || d->diff_cell == StatDiff::Cell::kNegInf) {
      std::string text;
      AppendDiffText(text, *d);
      AppendJsonBody(out_, text);
    } else {
      AppendDiffText(out_, *d);
    }
  }
  void Relative(std::string_view key, const StatDiff* d) {
    Key(key);
    if (d) {
      AppendRelText(out_, *d);
    } else {
      out_ += kNoDiffText;
    }
  }
  void Text(std::string_view key, std::string_view text) {
    Key(key);
    AppendJsonBody(out_, text);
  }
  /// All fields from here to the end are these.
  void Tail(PackCode code) {
    if (empty_) out_ += "\": {\"";
    out_ += code;
    closed_ = true;
  }
  void Piece(PackCode code) { out_ += code; }
  /// The first two fields of a tensor, when they are the usual ones.
  bool TensorHead(const std::vector<ItemField>& fields) {
    static constexpr std::string_view kPrefix = "torch.";
    if (fields.size() < 2 || fields[0].key != "type" || fields[1].key != "dtype") return false;
    const StatValue &type = fields[0].value, &dtype = fields[1].value;
    if (!type.IsText() || type.text != "torch.Tensor" || !dtype.IsText() || !StartsWith(dtype.text, kPrefix))
      return false;
    out_ += kPackTensor;
    empty_ = false;
    AppendField(out_, StatValue::Of(dtype.text.substr(kPrefix.size())));
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

bool IsZero(const StatDiff& d) {
  using Cell = StatDiff::Cell;
  return d.diff_cell == Cell::kNumber && d.diff == 0 && !std::signbit(d.diff) && d.rel_cell == Cell::kNumber &&
         d.rel == 0;
}

void AppendDifferences(const DiffRow& row, ItemWriter* w) {
  const bool alone = row.golden == kNoItem;
  if (!alone && std::all_of(row.diff.begin(), row.diff.end(), IsZero)) return w->Piece(kPackEqual);
  for (size_t k = 0; k < kStatCount; ++k) w->Diff(kDiffTitles[k], alone ? nullptr : &row.diff[k]);
  for (size_t k = 0; k < kStatCount; ++k) w->Relative(kRelativeTitles[k], alone ? nullptr : &row.diff[k]);
}

void AppendMetrics(const TensorDiff& diff, ItemWriter* w) {
  std::string text;
  for (size_t k = 0; k < kMetricCount; ++k) {
    text.clear();
    diff.cells[k].AppendText(&text);
    w->Text(kMetrics[k]->title, text);
  }
}

void AppendVerdict(const OpDiff& op, size_t at, CompareMode mode, ItemWriter* w) {
  const DiffRow& row = op.rows[at];
  if (mode == CompareMode::kTensor) AppendMetrics(op.tensors[at], w);
  if (mode == CompareMode::kStatistics) {
    AppendDifferences(row, w);
    if (row.grad_consistent && row.findings == 0) return w->Tail(kPackPass);
  }
  if (mode == CompareMode::kChecksum) w->Text("Result", VerdictText(row.verdict));
  w->Text("Requires_grad Consistent", row.grad_consistent ? "True" : "False");
  if (mode != CompareMode::kChecksum) w->Text("Result", VerdictText(row.verdict));
  w->Text("Err_message", FindingsJson(op, at));
}

// What linking needs of a batch is not shown.
bool IsHidden(std::string_view key, bool is_batch) {
  return is_batch && (key == "op" || key == "peer" || key == "tag" || key == "group_id");
}

// A process group shows who is in it and nothing else.
bool IsShownOfGroup(std::string_view key) {
  return key == "type" || key == "group_ranks" || key == "group_id" || key == "data_name";
}

class RowMaker {
 public:
  RowMaker(const GraphSide& side, const GraphSide* golden, const RowOptions& options, Scratch* scratch,
           NodeBlock* block)
      : side_(side), golden_(golden), options_(options), s_(*scratch), block_(*block), out_(block->rows.text) {}

  Status Add(uint32_t node_index, uint32_t order) {
    const Node& node = side_.rank->graph.nodes[node_index];
    NodeRows::Row row;
    row.node = node_index;
    row.order = order;
    row.stack = side_.stack_number[node_index];
    row.name_hash = HashName(node.name);
    row.distributed = IsCommunication(node.name);
    MSP_RETURN_IF_ERROR(AddData(node_index, &row));
    // The golden side's rows are read together with their partners; what follows is about the target.
    if (side_.key.source == "NPU") {
      ReadFlowItems(s_.diff.target, s_.diff.rows_used, &block_.items);
      if (options_.overflow_check) AddBadParameter();
    }
    block_.item_end.push_back(block_.items.size());
    block_.patterns.push_back(NamePatternHash(node.name));
    block_.rows.rows.push_back(row);
    return OkStatus();
  }

 private:
  Status ReadItems(const RankGraph& rank, uint32_t index, JsonDoc* doc, std::vector<ItemView>* items, size_t* count,
                   MergeNotes* notes) {
    *count = 0;
    const Node& node = rank.graph.nodes[index];
    if (rank.merged) {
      MSP_RETURN_IF_ERROR(rank.merged->Read(rank, index, doc, notes));
      if (!doc->IsObject()) return OkStatus();
    } else if (node.op == kNoIndex) {
      doc->SetNull();
      return OkStatus();
    } else {
      MSP_RETURN_IF_ERROR(rank.files.dump.ParseOp(node.op, doc));
    }
    DescribeNode(node.name, *doc, options_.mode, &s_.diff.scratch, items, count);
    return OkStatus();
  }

  Status AddData(uint32_t index, NodeRows::Row* row) {
    const Node& node = side_.rank->graph.nodes[index];
    const bool known = side_.done && (*side_.done)[index];
    if (known && !row->distributed && !side_.rank->merged) return OkStatus();
    OpDiff& diff = s_.diff;
    MSP_RETURN_IF_ERROR(ReadItems(*side_.rank, index, &s_.target_doc, &diff.target, &diff.rows_used, &s_.target_notes));
    judged_ = golden_ && node.match != kNoIndex && diff.rows_used > 0;
    if (judged_) {
      MSP_RETURN_IF_ERROR(Compare(index, row));
      judged_ = options_.mode != CompareMode::kStructure;
    }
    row->overflow = OverflowOf(node, s_.target_doc);
    if (side_.rank->merged) AddMergeNotes(row);
    if (!known) {
      row->input = PutItems(node.name, diff.target, diff.rows_used, false, judged_);
      row->output = PutItems(node.name, diff.target, diff.rows_used, true, judged_);
    }
    if (row->distributed && !side_.rank->merged) AddCall(node, *row);
    return OkStatus();
  }

  /// Up to the first difference two runs wrote the same: then what was read of one side stands for both.
  bool HasSameText(const Node& node, const Node& partner) const {
    if (options_.merged || options_.tensors || node.op == kNoIndex || partner.op == kNoIndex) return false;
    const DumpFile &a = side_.rank->files.dump, &b = golden_->rank->files.dump;
    const OpSpan x = a.ops()[node.op], y = b.ops()[partner.op];
    return x.length == y.length && node.name == partner.name &&
           a.file().text().substr(x.offset, x.length) == b.file().text().substr(y.offset, y.length);
  }

  // The partner is at hand now, so its texts are written here and need no reading again.
  Status Compare(uint32_t index, NodeRows::Row* row) {
    const Node& node = side_.rank->graph.nodes[index];
    const Node& partner = golden_->rank->graph.nodes[node.match];
    const bool same = HasSameText(node, partner);
    OpDiff& diff = s_.diff;
    if (same) {
      diff.golden_used = diff.rows_used;
      if (diff.golden.size() < diff.rows_used) diff.golden.resize(diff.rows_used);
      std::copy_n(diff.target.begin(), diff.rows_used, diff.golden.begin());
    } else {
      MSP_RETURN_IF_ERROR(
          ReadItems(*golden_->rank, node.match, &s_.golden_doc, &diff.golden, &diff.golden_used, &s_.golden_notes));
    }
    row->has_partner = partner.match == index;
    if (row->has_partner) {
      row->partner_overflow = OverflowOf(partner, same ? s_.target_doc : s_.golden_doc);
      row->partner_input = PutItems(partner.name, diff.golden, diff.golden_used, false, false);
      row->partner_output = PutItems(partner.name, diff.golden, diff.golden_used, true, false);
    }
    if (options_.mode == CompareMode::kStructure) return OkStatus();
    MSP_ASSIGN_OR_RETURN(OpDiff * pair, FindItems(index));
    return Judge(node, partner, row, pair);
  }

  /// What is compared: the items of the two nodes, or what a plan across frameworks puts against them.
  StatusOr<OpDiff*> FindItems(uint32_t index) {
    const Node& node = side_.rank->graph.nodes[index];
    const WholeDumps* whole = options_.whole;
    if (!options_.kin.cross || !options_.links || node.op == kNoIndex) return &s_.diff;
    if (golden_->rank->graph.nodes[node.match].op == kNoIndex) return &s_.diff;
    const uint32_t op = whole ? whole->target_op[index] : node.op;
    const auto found = options_.links->find(op);
    if (found == options_.links->end()) return &s_.diff;
    const LinkedDumps dumps{whole ? *whole->target : side_.rank->files.dump,
                            whole ? *whole->golden : golden_->rank->files.dump, options_.mode};
    if (found->second.joined.empty()) {
      MSP_RETURN_IF_ERROR(GatherPartners(dumps, found->second, &s_.diff));
      return &s_.diff;
    }
    MSP_RETURN_IF_ERROR(DescribeJoined(dumps, op, found->second, &s_.joined));
    return s_.joined.rows_used == s_.diff.rows_used ? &s_.joined : &s_.diff;
  }

  Status Judge(const Node& node, const Node& partner, NodeRows::Row* row, OpDiff* pair) {
    judgment_ = pair;
    OpDiff& diff = *pair;
    DiffOptions how;
    how.mode = options_.mode;
    how.dialect = kGraphDialect;
    // Of two frameworks the plan says what stands where, and one may have an operand that the other has not.
    how.dialect.by_place = how.dialect.judges_alone = !options_.kin.cross;
    how.check_shape = !options_.merged;
    how.layouts = how.resplit = options_.layouts.divided;
    how.cross = options_.kin.cross;
    how.implementations = options_.kin.implementations;
    how.check_dtype = false;  // the nodes are paired: their items are too
    std::optional<OnceMeasured> tensors;
    if (options_.tensors) how.tensors = &tensors.emplace(*options_.tensors);
    how.thresholds = options_.thresholds;
    diff.op = node.name;
    diff.thresholds = options_.thresholds;
    diff.matched = true;
    const bool measured = options_.distances && node.op != kNoIndex && partner.op != kNoIndex;
    const bool whole = !options_.merged;  // parts of tensors do not have the shapes of the whole
    if (options_.layouts.divided) {
      FitParts(options_.layouts, &s_.target_notes, &s_.golden_notes, &diff);
      MSP_RETURN_IF_ERROR(FitTiedGradients({*side_.rank, side_.lone_gradients},
                                           {*golden_->rank, golden_->lone_gradients}, options_.mode, &diff));
    }
    NodeDistance distance;
    if (measured)
      distance = MeasureDistance({options_.mode, whole, options_.layouts.divided, options_.kin, how.tensors},
                                 whole ? node.op : row->node, &diff);
    if (side_.rank->merged && golden_->rank->merged && (distance.distance.input > 0 || distance.distance.output > 0))
      distance.wrong = FindWrongParts(s_.target_notes, s_.golden_notes, diff);
    DiffItems(how, &diff);
    row->verdict = VerdictOf(diff);
    for (size_t i = 0; options_.tensors && i < diff.rows_used; ++i) {
      const TensorDiff& tensor = diff.tensors[i];
      if (tensor.outcome == TensorOutcome::kUnreadable && block_.unread++ == 0) block_.first_unread = tensor.note;
    }
    for (size_t i = 0; options_.log && options_.tensors && i < diff.rows_used; ++i) {
      block_.log += TensorLogLine(diff.target[i].name, diff.tensors[i]);
    }
    if (!measured) return OkStatus();
    distance.row = static_cast<int64_t>(block_.rows.rows.size());
    if (!whole) LeaveOutIndices(diff, &distance.distance);
    block_.distances.push_back(std::move(distance));
    return OkStatus();
  }

  Overflow OverflowOf(const Node& node, const JsonDoc& op) const {
    if (!options_.overflow_check || node.op == kNoIndex || node.type == NodeType::kCollection) return Overflow::kNone;
    return ClassifyOverflow(node.name, op);
  }

  // What was merged, what should be equal and is not, and whose part is to blame for a verdict.
  void AddMergeNotes(NodeRows::Row* row) {
    const size_t at = block_.rows.rows.size();
    MergeNotes& notes = s_.target_notes;
    if (row->verdict > Verdict::kPass) {
      MergeFinding suspect = FindSuspect(notes, s_.diff);
      for (int rank : suspect.ranks) notes.info.push_back(fmt::format("suspect: the part of rank {}", rank));
      if (!suspect.ranks.empty()) block_.merge.emplace_back(at, std::move(suspect));
    }
    for (MergeFinding& f : notes.findings) block_.merge.emplace_back(at, std::move(f));
    if (notes.info.empty()) return;
    TextWriter w(&out_);
    JsonWriter(&out_).Value(notes.info);
    row->merge_info = w.Done();
  }

  NodeRows::Span PutItems(std::string_view node, const std::vector<ItemView>& items, size_t count, bool output,
                          bool verdicts) {
    const bool is_batch = Contains(node, "batch_isend_irecv");
    const bool plain = IsPlainJson(node);
    TextWriter w(&out_);
    for (size_t i = 0; i < count; ++i) {
      const ItemView& item = items[i];
      if ((item.state == ItemState::kOutput) != output) continue;
      out_ += w.Done().size == 0 ? "{" : ", ";
      ItemWriter writer(&out_, node, plain, item);
      PutItem(item, i, is_batch, verdicts, &writer);
    }
    if (w.Done().size > 0) out_ += '}';
    return w.Done();
  }

  void PutItem(const ItemView& item, size_t row, bool is_batch, bool verdicts, ItemWriter* w) {
    const bool group = !item.tensor && item.IsProcessGroup();
    if (!group && IsShownAsNull(item)) return w->Null();
    std::vector<ItemField>& fields = s_.fields;
    ListFields(item, options_.compare && options_.mode == CompareMode::kChecksum, &fields);
    const size_t head = w->TensorHead(fields) ? 2 : 0;
    for (size_t i = head; i < fields.size(); ++i) {
      const ItemField& f = fields[i];
      if (group ? IsShownOfGroup(f.key) : !IsHidden(f.key, is_batch)) w->Field(f.key, f.value);
    }
    if (verdicts && !group) AppendVerdict(*judgment_, row, options_.mode, w);
    w->Done();
  }

  /// The first one; the others of the module are mostly bad as well.
  void AddBadParameter() {
    static constexpr std::array<std::pair<Stat, const char*>, 3> kLooked{
        {{kMax, "Max"}, {kMin, "Min"}, {kMean, "Mean"}}};
    for (size_t i = 0; i < s_.diff.rows_used; ++i) {
      const ItemView& item = s_.diff.target[i];
      if (item.state != ItemState::kParameter && item.state != ItemState::kParameterGrad) continue;
      for (const auto& [stat, key] : kLooked) {
        const StatValue& value = item.stats[stat];
        if (!value.IsNanOrInf()) continue;
        const bool gradient = item.state == ItemState::kParameterGrad;
        const size_t at = gradient ? std::string::npos : item.name.rfind(".parameters.");
        std::string name = at == std::string::npos ? item.name : item.name.substr(at + 1);
        block_.bad.push_back(
            {block_.rows.rows.size(), gradient, std::move(name), fmt::format("{} {}", key, FieldText(value))});
        return;
      }
    }
  }

  void AddCall(const Node& node, const NodeRows::Row& row) {
    NodeCall call = ReadNodeCall(node.name, s_.target_doc, side_.key.rank);
    if (call.transfers.empty()) return;
    const std::vector<uint32_t>& line = side_.rank->line;
    call.line = row.node < line.size() ? line[row.node] : static_cast<uint32_t>(line.size()) + row.order;
    call.index = LinkIndex(options_.overflow_check, row.overflow, row.verdict);
    call.row_id = static_cast<int64_t>(block_.rows.rows.size());
    block_.calls.push_back(std::move(call));
  }

  const GraphSide& side_;
  const GraphSide* golden_;
  const RowOptions& options_;
  Scratch& s_;
  NodeBlock& block_;
  std::string& out_;
  bool judged_ = false;               // the rows of the comparison are those of the node at hand
  const OpDiff* judgment_ = nullptr;  // which those are
};

}  // namespace

std::string LinkIndex(bool overflow_check, Overflow overflow, Verdict verdict) {
  if (overflow_check) return overflow == Overflow::kNone ? "Nan" : std::string(OverflowName(overflow));
  switch (verdict) {
    case Verdict::kNone: return "Nan";
    case Verdict::kPass: return "0";
    case Verdict::kWarning: return "0.5";
    case Verdict::kError: return "1";
  }
  return {};
}

void PrepareSide(GraphSide* side) {
  const NodeGraph& graph = side->rank->graph;
  side->lone_gradients = LoneGradients(*side->rank);
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
  JsonWriter json;
  json.BeginArray();
  if (stack == kLostStack) {
    json.String(kLostStackText);
  } else if (stack != kNoIndex) {
    for (const std::string& frame : rank.merged ? rank.merged->stacks[stack] : rank.files.stack.Frames(stack)) {
      json.String(frame);
    }
  }
  json.EndArray();
  return json.Take();
}

StatusOr<NodeBlock> MakeRows(const GraphSide& side, const GraphSide* golden, const RowOptions& options, size_t begin,
                             size_t end) {
  thread_local Scratch scratch;
  NodeBlock block;
  RowMaker maker(side, golden, options, &scratch, &block);
  for (size_t i = begin; i < end; ++i) {
    MSP_RETURN_IF_ERROR(maker.Add(side.rank->graph.order[i], static_cast<uint32_t>(i)));
  }
  return block;
}

}  // namespace msprobe
