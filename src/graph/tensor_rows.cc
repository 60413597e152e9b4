#include "graph/tensor_rows.h"

#include <algorithm>

#include "base/text.h"
#include "tensor/dtype.h"

namespace msprobe {
namespace {

StatValue Statistic(const Value& v) {
  StatValue out;
  switch (v.kind) {
    case Value::Kind::kInt:
      out.kind = StatValue::Kind::kInt;
      out.i = v.i;
      break;
    case Value::Kind::kUInt:
      out.kind = StatValue::Kind::kUInt;
      out.u = v.u;
      break;
    case Value::Kind::kDouble:
      out.kind = StatValue::Kind::kDouble;
      out.d = v.d;
      break;
    default: break;  // only numbers matter: the size of the values
  }
  return out;
}

/// Values that are no tensors have the name of their type ("int") or class as dtype.
bool IsTensor(const Param& p) {
  if (!p.dtype.is_text() || ParseDType(p.dtype.text) == DType::kUnknown) return false;
  const auto type = std::find_if(p.fields.begin(), p.fields.end(), [](const Field& f) { return f.key == "type"; });
  return type == p.fields.end() || !SameValue(type->value, p.dtype);
}

/// What measuring needs to know of a parameter.
ItemView ItemOf(const Param& p) {
  ItemView out;
  out.state = p.state;
  out.dtype = p.dtype.is_text() ? p.dtype.text : std::string_view("N/A");
  AppendPyStr(out.shape, p.shape);
  out.tensor = IsTensor(p);
  out.data_name = kNoDataName;
  for (const Field& f : p.fields) {
    if (f.key == "data_name" && f.value.is_text()) out.data_name = f.value.text;
  }
  out.stats[kMax] = Statistic(p.max);
  out.stats[kMin] = Statistic(p.min);
  return out;
}

}  // namespace

void MeasureTensors(const TensorPairs& pairs, std::vector<Row>* rows, std::deque<TensorDiff>* diffs, std::string* log) {
  const MeasurePair measure = [&pairs](const ItemView& target, const ItemView* golden, TensorDiff* out) {
    pairs.Diff(target, golden, out);
  };
  MeasureTensors(measure, rows, diffs, log);
}

void MeasureTensors(const MeasurePair& measure, std::vector<Row>* rows, std::deque<TensorDiff>* diffs,
                    std::string* log) {
  diffs->resize(rows->size());
  for (size_t i = 0; i < rows->size(); ++i) {
    Row& row = (*rows)[i];
    TensorDiff& diff = (*diffs)[i];
    const ItemView target = ItemOf(*row.npu);
    if (row.bench) {
      const ItemView golden = ItemOf(*row.bench);
      measure(target, &golden, &diff);
    } else {
      measure(target, nullptr, &diff);
    }
    row.tensor = &diff;
    if (log) *log += "[" + OneLine(row.npu->name) + "] Compare result: " + TensorLogText(diff) + "\n";
  }
}

Level NoteNotMeasured(std::string_view node, std::deque<TensorDiff>* diffs, std::vector<Row>* rows) {
  const bool outputs_only = HasPlaceholderInputs(node);
  Level worst = Level::kPass;
  if (IsIgnoredNode(node)) return worst;
  for (size_t i = 0; i < rows->size(); ++i) {
    Row& row = (*rows)[i];
    TensorDiff& diff = (*diffs)[i];
    if (!row.messages.empty() || (outputs_only && !row.npu->is_output())) continue;
    const TensorOutcome outcome = diff.outcome;
    const bool no_file = outcome == TensorOutcome::kNoData || outcome == TensorOutcome::kNoGoldenData;
    const bool measured = outcome == TensorOutcome::kCompared || outcome == TensorOutcome::kEmpty ||
                          outcome == TensorOutcome::kShape || (no_file && !IsTensor(*row.npu));
    if (measured && row.bench) continue;
    row.level = std::max(row.level, outcome == TensorOutcome::kNanInf ? Level::kError : Level::kWarning);
    diff.finding = std::string(LevelName(row.level)) + ": " + diff.note;
    row.messages.push_back(diff.finding.c_str());
    worst = std::max(worst, row.level);
  }
  return worst;
}

}  // namespace msprobe
