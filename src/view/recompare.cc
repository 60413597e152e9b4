#include "view/recompare.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "graph/tensor_rows.h"
#include "view/tensor_view.h"

namespace msprobe::view {
namespace {

// Of this tool and of the earlier ones.
constexpr std::array<std::string_view, 21> kComparison{"Max diff",
                                                       "Min diff",
                                                       "Mean diff",
                                                       "L2norm diff",
                                                       "Norm diff",
                                                       "MaxRelativeErr",
                                                       "MinRelativeErr",
                                                       "MeanRelativeErr",
                                                       "NormRelativeErr",
                                                       "MaxAbsErr",
                                                       "MinAbsErr",
                                                       "MeanAbsErr",
                                                       "NormAbsErr",
                                                       "Cosine",
                                                       "EucDist",
                                                       "One Thousandth Err Ratio",
                                                       "Five Thousandths Err Ratio",
                                                       "Five Thousandth Err Ratio",
                                                       "Requires_grad Consistent",
                                                       "Result",
                                                       "Err_message"};

using Fields = std::vector<std::pair<std::string, std::string>>;

// Texts of the file as the values they were.
Value ValueOf(std::string_view text) {
  if (text == "null" || text == "None") return Value::Null();
  const char* end = text.data() + text.size();
  int64_t whole = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, whole); error == std::errc() && at == end)
    return Value::Of(whole);
  uint64_t large = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, large); error == std::errc() && at == end) {
    Value v;
    v.kind = Value::Kind::kUInt;
    v.u = large;
    return v;
  }
  double number = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, number); error == std::errc() && at == end)
    return Value::Of(number);
  return Value::Of(text);
}

Value TextOf(std::string_view text) { return text == "null" ? Value::Null() : Value::Of(text); }

ItemState StateOf(std::string_view node, std::string_view row, bool output) {
  if (output) return ItemState::kOutput;
  if (Contains(node, ".parameters_grad")) return ItemState::kParameterGrad;
  if (StartsWith(row, node)) row.remove_prefix(node.size());
  return Contains(row, ".parameters.") ? ItemState::kParameter : ItemState::kInput;
}

Param MakeParam(std::string_view node, const ViewRow& row, bool output) {
  Param p;
  p.name = row.name;
  p.state = StateOf(node, row.name, output);
  p.fields.clear();
  bool text_value = false;  // which may look like a number
  bool tensor = false;
  const auto figure = [&](std::string_view text) { return text_value ? TextOf(text) : ValueOf(text); };
  for (const auto& [key, text] : row.values) {
    if (key == "type") {
      text_value = text == "str";
      tensor = Contains(text, "Tensor");
    }
    if (key == "type" || key == "data_name") p.fields.push_back({key, TextOf(text)});
    if (key == "Max") p.max = figure(text);
    if (key == "Min") p.min = figure(text);
    if (key == "Mean") p.mean = figure(text);
    if (key == "Norm") p.norm = figure(text);
    if (key == "dtype") p.dtype = TextOf(text);
    // The list of a tensor without dimensions is not the text of a number.
    if (key == "shape") p.shape = tensor && text == "[]" ? Value::Of(std::string_view("a list")) : TextOf(text);
    if (key == "requires_grad") p.requires_grad = TextOf(text);
    if (key == "md5") p.md5 = TextOf(text);
  }
  return p;
}

void ReadParams(std::string_view node, const NodeRecord& record, ParamList* params) {
  for (const ViewRow& row : record.inputs) params->Append(MakeParam(node, row, false));
  for (const ViewRow& row : record.outputs) params->Append(MakeParam(node, row, true));
}

std::string Percent(const Value& v) {
  if (v.kind != Value::Kind::kDouble) return FieldText(v);
  std::string text = PyRepr(v.d) + "%";
  RoundDecimalText(&text);
  return text;
}

void AddVerdict(const Row& row, GraphMode mode, Fields* out) {
  for (size_t k = 0; row.tensor && k < kMetricCount; ++k) {
    std::string text;
    row.tensor->cells[k].AppendText(&text);
    out->emplace_back(kMetricNames[k], std::move(text));
  }
  if (mode == GraphMode::kSummary) {
    const auto add = [&](std::string_view key, const Difference& d) {
      out->emplace_back(key, d.wide.empty() ? FieldText(d.value) : d.wide);
    };
    add("Max diff", row.max);
    add("Min diff", row.min);
    add("Mean diff", row.mean);
    add("L2norm diff", row.norm);
    out->emplace_back("MaxRelativeErr", Percent(row.max.relative));
    out->emplace_back("MinRelativeErr", Percent(row.min.relative));
    out->emplace_back("MeanRelativeErr", Percent(row.mean.relative));
    out->emplace_back("NormRelativeErr", Percent(row.norm.relative));
  }
  if (mode == GraphMode::kMd5) out->emplace_back("Result", LevelName(row.level));
  out->emplace_back("Requires_grad Consistent", row.same_requires_grad ? "True" : "False");
  if (mode != GraphMode::kMd5) out->emplace_back("Result", LevelName(row.level));
  std::string list = "[";
  for (const char* message : row.messages) {
    if (list.size() > 1) list += ", ";
    AppendJsonString(list, message);
  }
  out->emplace_back("Err_message", list + "]");
}

ReadTensors WhatWasRead(const std::deque<TensorDiff>& diffs) {
  ReadTensors out;
  for (const TensorDiff& diff : diffs) {
    const TensorOutcome outcome = diff.outcome;
    if (outcome == TensorOutcome::kUnreadable && out.unread++ == 0) out.why = diff.note;
    out.read += outcome == TensorOutcome::kCompared || outcome == TensorOutcome::kNanInf ||
                outcome == TensorOutcome::kShape || outcome == TensorOutcome::kEmpty;
  }
  return out;
}

Level LevelOf(msprobe::Level level) {
  switch (level) {
    case msprobe::Level::kPass: return Level::kPass;
    case msprobe::Level::kWarning: return Level::kWarning;
    case msprobe::Level::kError: return Level::kError;
  }
  return Level::kNone;
}

}  // namespace

std::optional<GraphMode> MatchingMode(const VisConfig& config) {
  for (const GraphMode mode : {GraphMode::kSummary, GraphMode::kMd5, GraphMode::kTensor, GraphMode::kStructure}) {
    if (config.task == ModeName(mode)) return mode;
  }
  return std::nullopt;
}

void DropComparison(NodeRecord* record) {
  for (std::vector<ViewRow>* rows : {&record->inputs, &record->outputs}) {
    for (ViewRow& row : *rows) {
      std::erase_if(row.values, [](const auto& field) {
        return std::find(kComparison.begin(), kComparison.end(), field.first) != kComparison.end();
      });
    }
  }
}

Level Recompare(GraphMode mode, std::string_view node, NodeRecord* npu, const NodeRecord& bench,
                const MeasureRows& measure, ReadTensors* tensors) {
  DropComparison(npu);
  // The golden rows are read by their names' suffixes only, which the names of both sides share.
  ParamList ours, theirs;
  ReadParams(node, *npu, &ours);
  ReadParams(node, bench, &theirs);
  if (ours.size() == 0) return Level::kPass;  // a collection: only its children have values
  std::vector<Row> rows;
  CompareParams(mode, ours, theirs, &rows);
  if (rows.empty()) return Level::kPass;
  const bool merged = mode != GraphMode::kTensor && (!npu->merge_info.empty() || !bench.merge_info.empty());
  std::deque<TensorDiff> diffs;
  if (measure) measure(&rows, &diffs);
  msprobe::Level judged = JudgeNode(mode, node, &rows, merged);
  if (measure) judged = std::max(judged, NoteNotMeasured(node, &diffs, &rows));
  if (tensors) *tensors = WhatWasRead(diffs);
  const Level level = LevelOf(judged);
  std::vector<std::pair<ViewRow*, Fields>> added;
  for (const Row& row : rows) {
    const auto at = static_cast<size_t>(row.npu - &ours[0]);
    ViewRow& into = at < npu->inputs.size() ? npu->inputs[at] : npu->outputs[at - npu->inputs.size()];
    if (row.npu->max.is_null()) continue;  // shown as a single null
    added.emplace_back(&into, Fields());
    AddVerdict(row, mode, &added.back().second);
  }
  // The parameters point into the rows, so these grow last.
  for (auto& [row, fields] : added) std::move(fields.begin(), fields.end(), std::back_inserter(row->values));
  return level;
}

StatusOr<Level> RecomparePair(const VisFile& file, const RankGraph& graph, uint32_t npu, uint32_t bench,
                              TensorMeter* meter, NodeRecord* record, ReadTensors* tensors) {
  const std::optional<GraphMode> mode = MatchingMode(file.config());
  if (!mode) return Level::kNone;
  MSP_ASSIGN_OR_RETURN(const NodeRecord theirs, file.LoadRecord(graph.bench[bench].rowid));
  const std::string_view name = graph.npu.Name(npu);
  if (*mode != GraphMode::kTensor) return Recompare(*mode, name, record, theirs);
  const auto place = [&](bool of_npu, int64_t rowid) {
    auto found = TensorDirectory(file, graph.step, graph.rank, of_npu, rowid);
    return found.ok() ? *std::move(found) : std::string();
  };
  const TensorPlaces places{place(true, graph.npu[npu].rowid), place(false, graph.bench[bench].rowid)};
  const MeasureRows measure = [&](std::vector<Row>* rows, std::deque<TensorDiff>* diffs) {
    meter->Measure(places, rows, diffs);
  };
  return Recompare(*mode, name, record, theirs, measure, tensors);
}

StatusOr<NodeRecord> LoadEditedRecord(const VisFile& file, const RankGraph& graph, bool npu, uint32_t node,
                                      TensorMeter* meter) {
  const Tree& tree = npu ? graph.npu : graph.bench;
  MSP_ASSIGN_OR_RETURN(NodeRecord record, file.LoadRecord(tree[node].rowid));
  if (!npu || graph.edits == nullptr) return record;
  const std::string_view name = tree.Name(node);
  const uint32_t partner = tree[node].partner;
  if (partner != kNoNode && graph.edits->made.find(name) != graph.edits->made.end()) {
    MSP_RETURN_IF_ERROR(RecomparePair(file, graph, node, partner, meter, &record).status());
  } else if (graph.edits->cancelled.find(name) != graph.edits->cancelled.end()) {
    DropComparison(&record);
  }
  return record;
}

Status ApplyEdits(const VisFile& file, const std::shared_ptr<const MatchEdits>& edits, TensorMeter* meter,
                  RankGraph* graph) {
  if (!graph->compared || !MatchingMode(file.config())) return OkStatus();
  for (const std::string& name : edits->cancelled) {
    const uint32_t node = graph->npu.Find(name);
    const uint32_t partner = node == kNoNode ? kNoNode : graph->npu[node].partner;
    if (partner == kNoNode) continue;
    graph->npu.SetPartner(node, kNoNode);
    graph->npu.SetLevel(node, Level::kNone);
    if (graph->bench[partner].partner == node) graph->bench.SetPartner(partner, kNoNode);
  }
  for (const auto& [npu_name, bench_name] : edits->made) {
    const uint32_t npu = graph->npu.Find(npu_name), bench = graph->bench.Find(bench_name);
    if (npu == kNoNode || bench == kNoNode || graph->npu[npu].partner != kNoNode ||
        graph->bench[bench].partner != kNoNode) {
      continue;
    }
    MSP_ASSIGN_OR_RETURN(NodeRecord ours, file.LoadRecord(graph->npu[npu].rowid));
    MSP_ASSIGN_OR_RETURN(const Level level, RecomparePair(file, *graph, npu, bench, meter, &ours));
    graph->npu.SetPartner(npu, bench);
    graph->bench.SetPartner(bench, npu);
    graph->npu.SetLevel(npu, level);
  }
  graph->npu.Count(graph->compared);
  graph->bench.Count(graph->compared);
  graph->edits = edits;
  return OkStatus();
}

}  // namespace msprobe::view
