#include "view/query/recompare.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compare/values/op_diff.h"
#include "graph/node/field_text.h"
#include "tensor/kernels/dtype.h"
#include "view/query/tensor_view.h"

namespace msprobe::view {
namespace {

// Columns of earlier tools, and those that are neither a statistic's nor a metric's.
constexpr std::array<std::string_view, 8> kOtherComparison{
    "Norm diff", "MinAbsErr",  "MeanAbsErr", "NormAbsErr", "Five Thousandth Err Ratio", "Requires_grad Consistent",
    "Result",    "Err_message"};

/// Whether a column says how far two runs are apart.
bool IsComparison(std::string_view title) {
  const auto is = [title](std::string_view known) { return known == title; };
  return std::any_of(kMetrics.begin(), kMetrics.end(), [&](const Metric* metric) { return is(metric->title); }) ||
         std::any_of(kDiffTitles.begin(), kDiffTitles.end(), is) ||
         std::any_of(kRelativeTitles.begin(), kRelativeTitles.end(), is) ||
         std::any_of(kOtherComparison.begin(), kOtherComparison.end(), is);
}

using Fields = std::vector<std::pair<std::string, std::string>>;

// Texts of the file as the values they were.
StatValue ValueOf(std::string_view text) {
  if (text == "null" || text == "None") return StatValue::Null();
  const char* end = text.data() + text.size();
  int64_t whole = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, whole); error == std::errc() && at == end)
    return StatValue::Of(whole);
  uint64_t large = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, large); error == std::errc() && at == end)
    return StatValue::Of(large);
  double number = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, number); error == std::errc() && at == end)
    return StatValue::Of(number);
  return StatValue::Of(text);
}

ItemState StateOf(std::string_view node, std::string_view row, bool output) {
  if (output) return ItemState::kOutput;
  if (Contains(node, ".parameters_grad")) return ItemState::kParameterGrad;
  if (StartsWith(row, node)) row.remove_prefix(node.size());
  return Contains(row, ".parameters.") ? ItemState::kParameter : ItemState::kInput;
}

ItemView MakeItem(std::string_view node, const ViewRow& row, bool output) {
  ItemView out;
  out.name = row.name;
  out.state = StateOf(node, row.name, output);
  out.shape = out.checksum = kNotAvailableText;
  out.dtype = kNotAvailableText;  // not of out.shape, which moves away
  out.data_name = kNoDataName;
  std::string_view type;
  const auto figure = [&](std::string_view text) {
    if (type != "str") return ValueOf(text);  // a text may look like a number
    return text == "null" ? StatValue::Null() : StatValue::Of(text);
  };
  for (const auto& [key, text] : row.values) {
    if (key == "type") type = text;
    if (key == "Max") out.stats[kMax] = figure(text);
    if (key == "Min") out.stats[kMin] = figure(text);
    if (key == "Mean") out.stats[kMean] = figure(text);
    if (key == "Norm") out.stats[kNorm] = figure(text);
    if (key == "requires_grad" && (text == "True" || text == "False")) {
      out.requires_grad = text == "True" ? ItemView::Grad::kTrue : ItemView::Grad::kFalse;
    }
    if (text == "null") continue;
    if (key == "dtype") out.dtype = text;
    if (key == "shape") out.shape = text;
    if (key == "md5") out.checksum = text;
    if (key == "data_name") out.data_name = text;
  }
  // Values that are not tensors have the name of their type ("int") or class as dtype.
  out.tensor = ParseDType(out.dtype) != DType::kUnknown && type != out.dtype;
  return out;
}

/// The rows of a record as the items of an op. They point into the record.
struct RecordItems {
  std::vector<ItemView> items;
  std::vector<size_t> place;  // of each: its row among inputs and outputs
};

RecordItems ReadItems(std::string_view node, const NodeRecord& record) {
  std::vector<ItemView> all;
  for (const ViewRow& row : record.inputs) all.push_back(MakeItem(node, row, false));
  for (const ViewRow& row : record.outputs) all.push_back(MakeItem(node, row, true));
  RecordItems out;
  out.place.resize(all.size());
  std::iota(out.place.begin(), out.place.end(), size_t{0});
  std::stable_sort(out.place.begin(), out.place.end(),
                   [&](size_t a, size_t b) { return KindOrder(all[a].state) < KindOrder(all[b].state); });
  for (const size_t i : out.place) out.items.push_back(std::move(all[i]));
  return out;
}

void AddVerdict(const OpDiff& op, size_t at, CompareMode mode, Fields* out) {
  const DiffRow& row = op.rows[at];
  for (size_t k = 0; mode == CompareMode::kTensor && at < op.tensors.size() && k < kMetricCount; ++k) {
    std::string text;
    op.tensors[at].cells[k].AppendText(&text);
    out->emplace_back(kMetrics[k]->title, std::move(text));
  }
  const auto add = [&](std::string_view key, void (*append)(std::string&, const StatDiff&), const StatDiff& d) {
    std::string text;
    row.golden == kNoItem ? void(text = kNoDiffText) : append(text, d);
    out->emplace_back(key, std::move(text));
  };
  if (mode == CompareMode::kStatistics) {
    for (size_t k = 0; k < kStatCount; ++k) add(kDiffTitles[k], AppendDiffText, row.diff[k]);
    for (size_t k = 0; k < kStatCount; ++k) add(kRelativeTitles[k], AppendRelText, row.diff[k]);
  }
  if (mode == CompareMode::kChecksum) out->emplace_back("Result", VerdictText(row.verdict));
  out->emplace_back("Requires_grad Consistent", row.grad_consistent ? "True" : "False");
  if (mode != CompareMode::kChecksum) out->emplace_back("Result", VerdictText(row.verdict));
  out->emplace_back("Err_message", FindingsJson(op, at));
}

ReadTensors WhatWasRead(const std::vector<TensorDiff>& diffs) {
  ReadTensors out;
  for (const TensorDiff& diff : diffs) {
    const TensorOutcome outcome = diff.outcome;
    if (outcome == TensorOutcome::kUnreadable && out.unread++ == 0) out.why = diff.note;
    out.read += outcome == TensorOutcome::kCompared || outcome == TensorOutcome::kNanInf ||
                outcome == TensorOutcome::kShape || outcome == TensorOutcome::kEmpty;
  }
  return out;
}

}  // namespace

std::optional<CompareMode> MatchingMode(const VisSettings& config) {
  for (const CompareMode mode :
       {CompareMode::kStatistics, CompareMode::kChecksum, CompareMode::kTensor, CompareMode::kStructure}) {
    if (config.task == GraphTaskName(mode)) return mode;
  }
  return std::nullopt;
}

void DropComparison(NodeRecord* record) {
  for (std::vector<ViewRow>* rows : {&record->inputs, &record->outputs}) {
    for (ViewRow& row : *rows) {
      std::erase_if(row.values, [](const auto& field) { return IsComparison(field.first); });
    }
  }
}

Verdict Recompare(CompareMode mode, std::string_view node, NodeRecord* target, const NodeRecord& golden,
                  const TensorSource* source, ReadTensors* tensors) {
  DropComparison(target);
  // The golden rows are read by their names' suffixes only, which the names of both sides share.
  RecordItems rows = ReadItems(node, *target);
  if (rows.items.empty() || mode == CompareMode::kStructure) return Verdict::kPass;  // only its children have values
  OpDiff op;
  op.op = node;
  op.matched = true;
  op.target = std::move(rows.items);
  op.golden = ReadItems(node, golden).items;
  op.rows_used = op.target.size();
  op.golden_used = op.golden.size();
  DiffOptions options;
  options.mode = mode;
  options.dialect = kGraphDialect;
  options.check_dtype = false;
  options.check_shape = mode == CompareMode::kTensor || (target->merge_info.empty() && golden.merge_info.empty());
  options.tensors = source;
  DiffItems(options, &op);
  if (tensors) *tensors = WhatWasRead(op.tensors);
  const Verdict verdict = VerdictOf(op);
  std::vector<std::pair<ViewRow*, Fields>> added;
  for (size_t i = 0; i < op.rows_used; ++i) {
    const size_t at = rows.place[i];
    ViewRow& into = at < target->inputs.size() ? target->inputs[at] : target->outputs[at - target->inputs.size()];
    if (op.target[i].stats[kMax].kind == StatValue::Kind::kNull) continue;  // shown as a single null
    added.emplace_back(&into, Fields());
    AddVerdict(op, i, mode, &added.back().second);
  }
  // The items point into the rows, so these grow last.
  for (auto& [row, fields] : added) std::move(fields.begin(), fields.end(), std::back_inserter(row->values));
  return verdict;
}

StatusOr<Verdict> RecomparePair(const VisFile& file, const GraphSides& graph, uint32_t target, uint32_t golden,
                                ManualPairMetrics* meter, NodeRecord* record, ReadTensors* tensors) {
  const std::optional<CompareMode> mode = MatchingMode(file.config());
  if (!mode) return Verdict::kNone;
  MSP_ASSIGN_OR_RETURN(const NodeRecord golden_record, file.LoadRecord(graph.golden[golden].rowid));
  const std::string_view name = graph.target.Name(target);
  if (*mode != CompareMode::kTensor) return Recompare(*mode, name, record, golden_record);
  const auto place = [&](bool of_target, int64_t rowid) {
    auto found = TensorDirectory(file, graph.step, graph.rank, of_target, rowid);
    return found.ok() ? *std::move(found) : std::string();
  };
  const TensorPlaces places{place(true, graph.target[target].rowid), place(false, graph.golden[golden].rowid)};
  const std::unique_ptr<TensorSource> source = meter->Source(places);
  return Recompare(*mode, name, record, golden_record, source.get(), tensors);
}

StatusOr<NodeRecord> LoadEditedRecord(const VisFile& file, const GraphSides& graph, bool target, uint32_t node,
                                      ManualPairMetrics* meter) {
  const Tree& tree = target ? graph.target : graph.golden;
  MSP_ASSIGN_OR_RETURN(NodeRecord record, file.LoadRecord(tree[node].rowid));
  if (!target || graph.edits == nullptr) return record;
  const std::string_view name = tree.Name(node);
  const uint32_t partner = tree[node].partner;
  if (partner != kNoNode && graph.edits->made.find(name) != graph.edits->made.end()) {
    MSP_RETURN_IF_ERROR(RecomparePair(file, graph, node, partner, meter, &record).status());
  } else if (graph.edits->cancelled.find(name) != graph.edits->cancelled.end()) {
    DropComparison(&record);
  }
  return record;
}

Status ApplyEdits(const VisFile& file, const std::shared_ptr<const MatchEdits>& edits, ManualPairMetrics* meter,
                  GraphSides* graph) {
  if (!graph->compared || !MatchingMode(file.config())) return OkStatus();
  for (const std::string& name : edits->cancelled) {
    const uint32_t node = graph->target.Find(name);
    const uint32_t partner = node == kNoNode ? kNoNode : graph->target[node].partner;
    if (partner == kNoNode) continue;
    graph->target.SetPartner(node, kNoNode);
    graph->target.SetLevel(node, Verdict::kNone);
    graph->target.SetRuling(node, RulerVerdict::kNone);
    if (graph->golden[partner].partner == node) graph->golden.SetPartner(partner, kNoNode);
  }
  for (const auto& [target_name, golden_name] : edits->made) {
    const uint32_t target = graph->target.Find(target_name), golden = graph->golden.Find(golden_name);
    if (target == kNoNode || golden == kNoNode || graph->target[target].partner != kNoNode ||
        graph->golden[golden].partner != kNoNode) {
      continue;
    }
    MSP_ASSIGN_OR_RETURN(NodeRecord record, file.LoadRecord(graph->target[target].rowid));
    MSP_ASSIGN_OR_RETURN(const Verdict level, RecomparePair(file, *graph, target, golden, meter, &record));
    graph->target.SetPartner(target, golden);
    graph->golden.SetPartner(golden, target);
    graph->target.SetLevel(target, level);
    graph->target.SetRuling(target, RulerVerdict::kNone);  // that of another pair
  }
  graph->target.Count(graph->compared);
  graph->golden.Count(graph->compared);
  graph->edits = edits;
  return OkStatus();
}

}  // namespace msprobe::view
