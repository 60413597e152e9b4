#include "graph/build/graph_part.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <iterator>

#include "base/message.h"

namespace msprobe {
namespace {

/// Numbers as 8 bytes and texts with their length. Reading is the same walk over the fields as writing.
class Codec {
 public:
  explicit Codec(std::string* out) : out_(out) {}
  explicit Codec(std::string_view in) : in_(in) {}
  bool reading() const { return out_ == nullptr; }
  void Fail() { bad_ = true; }
  bool bad() const { return bad_ || (reading() && !in_.empty()); }

  template <typename T>
  void Number(T& v) {
    int64_t wide = static_cast<int64_t>(v);
    if (out_) {
      out_->append(reinterpret_cast<const char*>(&wide), sizeof wide);
      return;
    }
    const std::string_view bytes = Take(sizeof wide);
    if (bytes.empty()) return;
    bytes.copy(reinterpret_cast<char*>(&wide), sizeof wide);
    v = static_cast<T>(wide);
  }
  void Real(double& v) {
    int64_t bits = __builtin_bit_cast(int64_t, v);
    Number(bits);
    v = __builtin_bit_cast(double, bits);
  }
  /// Of which `last` is the last one.
  template <typename T>
  void Kind(T& kind, T last) {
    Number(kind);
    if (kind > last) Fail();
  }
  void Name(SharedName& name) {
    std::string text = name.text();
    Text(text);
    name = SharedName(text);
  }
  void Text(std::string& text) {
    size_t size = text.size();
    Number(size);
    if (out_) {
      *out_ += text;
    } else {
      text = Take(size);
    }
  }
  template <typename T, typename Field>
  void List(std::vector<T>& list, const Field& field) {
    size_t size = list.size();
    Number(size);
    if (reading()) {
      if (bad_ || size > in_.size() / sizeof size) return Fail();  // an entry has a number at least
      list.resize(size);
    }
    for (T& entry : list) {
      field(entry);
      if (bad_) return;
    }
  }
  template <typename T, typename Field>
  void Maybe(std::optional<T>& value, const Field& field) {
    bool there = value.has_value();
    Number(there);
    if (!there || bad_) return;
    if (!value) value.emplace();
    field(*value);
  }

 private:
  std::string_view Take(size_t size) {
    if (bad_ || size > in_.size()) {
      Fail();
      return {};
    }
    const std::string_view out = in_.substr(0, size);
    in_.remove_prefix(size);
    return out;
  }

  std::string* out_ = nullptr;
  std::string_view in_;
  bool bad_ = false;
};

void Walk(Codec& c, CommTransfer& t) {
  c.Kind(t.kind, CommTransfer::Kind::kGroup);
  c.Number(t.gives);
  c.Number(t.takes);
  c.Number(t.peer);
  c.Number(t.tag);
  c.Number(t.root);
  c.List(t.group, [&](int& rank) { c.Number(rank); });
  c.Text(t.group_name);
}

void Walk(Codec& c, NodeCall& call) {
  c.Text(call.node);
  c.Text(call.api);
  c.Text(call.index);
  c.Number(call.line);
  c.Number(call.row_id);
  c.Number(call.shown);
  c.List(call.transfers, [&](CommTransfer& transfer) { Walk(c, transfer); });
  c.List(call.data, [&](CommData& d) {
    c.Text(d.dtype);
    c.Text(d.shape);
    c.Number(d.elements);
    c.Text(d.reduction);
  });
}

void Walk(Codec& c, RecordingGap& gap) {
  c.Kind(gap.side, DumpSide::kB);
  c.Number(gap.step);
  c.Number(gap.rank);
  c.Text(gap.path);
  Wholeness& what = gap.what;
  c.Kind(what.state, Wholeness::State::kUnknown);
  for (uint64_t* count : {&what.ops, &what.ops_lost, &what.tensors_lost}) c.Number(*count);
  c.Number(what.ops_end);
  c.Text(what.why);
}

void Walk(Codec& c, GraphSummary& s) {
  c.Text(s.task);
  c.Number(s.graphs);
  c.Number(s.target_nodes);
  c.Number(s.golden_nodes);
  for (size_t& n : s.levels) c.Number(n);
  c.Number(s.no_data);
  c.Number(s.unmatched);
  c.Number(s.golden_unmatched);
  for (size_t& n : s.overflows) c.Number(n);
  c.Maybe(s.first_error, [&](FirstError& e) {
    c.Number(e.step);
    c.Number(e.rank);
    c.Number(e.order);
    c.Text(e.node);
  });
  c.List(s.first_error_suspects, [&](int& rank) { c.Number(rank); });
  c.List(s.damaged, [&](DamagedRank& d) {
    c.Number(d.step);
    c.Number(d.rank);
    std::string why = d.why.message();
    c.Text(why);
    if (!c.reading()) return;
    if (why.empty()) return c.Fail();
    d.why = BadInput(std::move(why));
  });
  c.List(s.gaps, [&](RecordingGap& gap) { Walk(c, gap); });
  c.Number(s.unread);
  c.Text(s.first_unread);
  c.List(s.findings, [&](GraphFinding& f) {
    c.Kind(f.kind, FindingKind::kSuspectRank);
    c.Text(f.source);
    c.Number(f.step);
    c.Number(f.rank);
    c.Number(f.row_id);
    c.Text(f.node);
    std::string text(f.text);
    c.Text(text);
    if (c.reading()) f.text = Message(std::move(text));
    c.List(f.ranks, [&](int& rank) { c.Number(rank); });
  });
}

void Walk(Codec& c, FirstDifference& d) {
  c.Kind(d.kind, FirstDifference::Kind::kDraw);
  c.Number(d.op);
  c.Number(d.golden_op);
  c.Kind(d.verdict, RulerVerdict::kBug);
  for (std::string* text :
       {&d.name, &d.golden_name, &d.frame, &d.function, &d.module, &d.inside, &d.after, &d.item, &d.parameter,
        &d.difference.what, &d.difference.target, &d.difference.golden, &d.detail, &d.inputs, &d.owner, &d.drawn}) {
    c.Text(*text);
  }
  for (bool* flag : {&d.buffer, &d.alone, &d.pieces, &d.recomputed, &d.hidden, &d.state}) c.Number(*flag);
  c.List(d.ranks, [&](int& rank) { c.Number(rank); });
  for (double* number : {&d.factor, &d.difference.percent, &d.input_error, &d.output_error, &d.units}) c.Real(*number);
}

void Walk(Codec& c, RankCalls& calls) {
  c.Number(calls.rank.rank);
  c.Number(calls.rank.ops);
  c.List(calls.rank.calls, [&](CommCall& call) {
    c.Number(call.op);
    c.Text(call.name);
    c.Text(call.api);
  });
  c.List(calls.transfers,
         [&](std::vector<CommTransfer>& list) { c.List(list, [&](CommTransfer& transfer) { Walk(c, transfer); }); });
  if (calls.transfers.size() != calls.rank.calls.size()) c.Fail();
}

void Walk(Codec& c, FilePair& files) {
  c.Text(files.target);
  c.Text(files.golden);
  c.Number(files.step);
  c.Number(files.rank);
}

void Walk(Codec& c, OpText& op) {
  c.Text(op.name);
  c.Text(op.json);
}

void Walk(Codec& c, OriginEvidence& evidence) {
  Walk(c, evidence.files);
  for (OpText* op : {&evidence.target, &evidence.golden, &evidence.lone}) Walk(c, *op);
  c.Text(evidence.item);
  for (bool* flag : {&evidence.results, &evidence.both, &evidence.tensors, &evidence.lone_in_golden}) c.Number(*flag);
  c.List(evidence.calls, [&](OpText& op) { Walk(c, op); });
  c.List(evidence.tokens, [&](TokenItem& item) {
    c.Text(item.data_name);
    c.Text(item.dtype);
    c.List(item.shape, [&](int64_t& size) { c.Number(size); });
  });
}

void Walk(Codec& c, RankFindings& found) {
  c.Number(found.rank);
  Walk(c, found.files);
  std::optional<OriginEvidence> evidence;
  if (found.evidence) evidence = *found.evidence;
  c.Maybe(evidence, [&](OriginEvidence& e) { Walk(c, e); });
  if (c.reading() && evidence) found.evidence = std::make_shared<const OriginEvidence>(std::move(*evidence));
  Walk(c, found.differences.first);
  Walk(c, found.differences.source);
  Walk(c, found.differences.dtype);
  c.List(found.differences.others, [&](FirstDifference& other) { Walk(c, other); });
  for (auto* modules : {&found.differences.target_modules, &found.differences.golden_modules}) {
    c.List(*modules, [&](std::string& module) { c.Text(module); });
  }
  c.Number(found.differences.unrecorded);
  c.Text(found.differences.first_unrecorded);
  c.Number(found.differences.divided);
  c.Number(found.differences.rounds_parameters);
  c.Number(found.differences.draws_alike);
  RulerCounts& n = found.differences.ruler;
  for (uint64_t* count : {&n.none, &n.bit_equal, &n.round_off, &n.inherited, &n.suspicious, &n.bug, &n.rewritten,
                          &found.target_only, &found.golden_only, &found.unseen}) {
    c.Number(*count);
  }
  Walk(c, found.calls);
  std::string marks(reinterpret_cast<const char*>(found.marks.data()), found.marks.size());
  c.Text(marks);
  if (c.reading()) {
    found.marks.resize(marks.size());
    std::copy(marks.begin(), marks.end(), found.marks.begin());
  }
  c.List(found.begun, [&](BegunOp& begun) {
    c.Number(begun.op);
    c.Number(begun.row);
    c.Kind(begun.verdict, RulerVerdict::kBug);
    c.Number(begun.group);
  });
  c.List(found.infected, [&](InfectedGroup& group) {
    c.Number(group.rank);
    c.Name(group.module);
    c.Number(group.backward);
    c.Number(group.first_op);
    c.Name(group.first);
    c.Number(group.ops);
  });
  for (const BegunOp& begun : found.begun) {
    if (begun.group >= found.infected.size()) c.Fail();
  }
}

void Walk(Codec& c, GraphPart& part) {
  c.Number(part.step);
  c.Number(part.rank);
  c.Kind(part.mode, CompareMode::kStructure);
  Walk(c, part.summary);
  for (auto& side : part.calls) {
    c.List(side, [&](RankNodeCalls& calls) {
      c.Number(calls.rank);
      c.Number(calls.truncated);
      c.List(calls.calls, [&](NodeCall& call) { Walk(c, call); });
    });
  }
  c.Maybe(part.found, [&](RankFindings& found) { Walk(c, found); });
}

}  // namespace

std::string PackGraphPart(const GraphPart& part) {
  GraphPart copy = part;  // the walk is the same in both directions
  std::string bytes;
  Codec codec(&bytes);
  Walk(codec, copy);
  return bytes;
}

StatusOr<GraphPart> UnpackGraphPart(std::string_view bytes) {
  GraphPart part;
  Codec codec(bytes);
  Walk(codec, part);
  if (codec.bad()) return BadInput(Msg("it is not part of a graph, or not a whole one: build the graph again"));
  return part;
}

Status WriteGraphPart(const GraphPart& part, VisDb* db) {
  const std::string bytes = PackGraphPart(part);
  MSP_ASSIGN_OR_RETURN(SideTable * table, db->MakeTable("part", "content BLOB"));
  return table->Blob(bytes).Add();
}

StatusOr<GraphPart> ReadGraphPart(const std::string& path, int step, int rank) {
  sqlite3* db = nullptr;
  sqlite3_stmt* read = nullptr;
  StatusOr<GraphPart> part = BadInput(Msg("it cannot be read: build the graph again"));
  const bool fine = sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK &&
                    sqlite3_prepare_v2(db, "SELECT content FROM msprobe_part", -1, &read, nullptr) == SQLITE_OK &&
                    sqlite3_step(read) == SQLITE_ROW;
  if (fine) {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(read, 0));
    const auto size = static_cast<size_t>(sqlite3_column_bytes(read, 0));
    part = UnpackGraphPart({bytes ? bytes : "", bytes ? size : 0});
  }
  sqlite3_finalize(read);
  sqlite3_close(db);
  if (part.ok() && (part->step != step || part->rank != rank)) {
    return BadInput(
        Msg("a task built step {} rank {} where step {} rank {} was to be built: all machines must see the same dumps",
            part->step, part->rank, step, rank));
  }
  if (part.ok()) return part;
  if (access(path.c_str(), F_OK) != 0) {
    return BadInput(Msg("{} is not there although a task wrote it: all machines must see the output directory", path));
  }
  return BadInput(Msg("{}: {}", path, part.status().text()));
}

void ShiftRows(int64_t rows, GraphPart* part) {
  for (auto& side : part->calls) {
    for (RankNodeCalls& rank : side) {
      for (NodeCall& call : rank.calls) call.row_id += call.row_id > 0 ? rows : 0;
    }
  }
  for (GraphFinding& f : part->summary.findings) {
    if (f.row_id > 0) f.row_id += rows;
  }
  if (!part->found) return;
  for (BegunOp& begun : part->found->begun) begun.row += begun.row > 0 ? rows : 0;
}

void AddSummary(GraphSummary more, GraphSummary* sum) {
  if (sum->task.empty()) sum->task = more.task;
  sum->graphs += more.graphs;
  sum->target_nodes += more.target_nodes;
  sum->golden_nodes += more.golden_nodes;
  for (size_t i = 0; i < more.levels.size(); ++i) sum->levels[i] += more.levels[i];
  sum->no_data += more.no_data;
  sum->unmatched += more.unmatched;
  sum->golden_unmatched += more.golden_unmatched;
  for (size_t i = 0; i < more.overflows.size(); ++i) sum->overflows[i] += more.overflows[i];
  if (!sum->first_error) {
    sum->first_error = std::move(more.first_error);
    sum->first_error_suspects = std::move(more.first_error_suspects);
  }
  std::move(more.damaged.begin(), more.damaged.end(), std::back_inserter(sum->damaged));
  std::move(more.gaps.begin(), more.gaps.end(), std::back_inserter(sum->gaps));
  if (sum->unread == 0) sum->first_unread = std::move(more.first_unread);
  sum->unread += more.unread;
  std::move(more.findings.begin(), more.findings.end(), std::back_inserter(sum->findings));
}

}  // namespace msprobe
