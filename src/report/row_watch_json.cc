// RowWatch as the data of the HTML report.
#include <algorithm>
#include <cmath>

#include "compare/first_difference/first_difference.h"
#include "json/writer.h"
#include "report/row_watch.h"

namespace msprobe {
namespace {

/// -1 is "no value", null "not finite".
void WriteMeasure(JsonWriter* json, float v) { std::isfinite(v) && v < 0 ? json->Int(-1) : json->Rounded(v, 5); }

}  // namespace

/// Into an open list.
void RowWatch::WritePoint(JsonWriter* json, const Point& point) const {
  json->Value(point.rows);
  json->Value(point.warnings);
  json->Value(point.errors);
  json->Value(point.worst_op);
  for (size_t m = 0; m < measures_.size(); ++m) WriteMeasure(json, point.worst[m]);
}

void RowWatch::WriteOps(JsonWriter* json, const std::vector<KeptOp>& ops) const {
  std::vector<KeptOp> sorted = ops;
  std::sort(sorted.begin(), sorted.end(), [](const KeptOp& a, const KeptOp& b) {
    return a.score != b.score ? a.score > b.score : a.index < b.index;
  });
  json->Array(sorted, [&](const KeptOp& op) {
    std::string frame, function;
    if (pair_.stacks) {
      if (const auto id = pair_.stacks->StackOf(op.name)) UserFrame(pair_.stacks->Frames(*id), &frame, &function);
    }
    json->BeginArray();
    json->Value(op.name);
    json->Value(op.ruler == RulerVerdict::kNone ? VerdictText(op.verdict) : RulerVerdictText(op.ruler));
    WriteMeasure(json, op.input);
    WriteMeasure(json, op.output);
    json->Value(op.index);
    json->Value(op.first_row);
    json->Value(op.rows);
    json->Value(frame);
    json->EndArray();
  });
}

void RowWatch::WriteCurves(JsonWriter* json) const {
  json->BeginObject();
  json->Member("stacks", stacks_);
  json->Member("parts", parts_);
  // stack, direction, layer, part, then the point
  json->ArrayMember("cells", cells_, [&](const auto& cell) {
    const auto& [key, point] = cell;
    json->BeginArray();
    json->Value(key.stack);
    json->Value(key.direction);
    json->Value(key.layer);
    json->Value(key.part);
    WritePoint(json, point);
    json->EndArray();
  });
  // direction, number of the bin, then the point
  json->Key("run");
  json->BeginArray();
  for (size_t direction = 0; direction < run_.size(); ++direction) {
    for (size_t i = 0; i < run_[direction].size(); ++i) {
      const Point& point = run_[direction][i];
      if (point.worst[0] < 0) continue;
      json->BeginArray();
      json->Value(direction);
      json->Value(i);
      WritePoint(json, point);
      json->EndArray();
    }
  }
  json->EndArray();
  json->Member("bins", options_.bins);
  json->EndObject();
}

void RowWatch::WriteRows(JsonWriter* json) const {
  std::vector<const KeptRow*> sorted;
  for (const KeptRow& row : rows_) sorted.push_back(&row);
  std::sort(sorted.begin(), sorted.end(), [](const KeptRow* a, const KeptRow* b) { return a->index < b->index; });
  // Few different stacks stand behind many rows.
  std::unordered_map<int, size_t> ids;
  std::vector<int> used;
  json->BeginObject();
  json->Member("columns", columns_ ? columns_->titles() : std::vector<std::string>());
  json->Member("total", next_row_);
  json->ArrayMember("rows", sorted, [&](const KeptRow* row) {
    int stack = -1;
    if (row->stack >= 0) {
      const auto [it, added] = ids.emplace(row->stack, used.size());
      if (added) used.push_back(row->stack);
      stack = static_cast<int>(it->second);
    }
    json->BeginArray();
    json->Value(row->index);
    WriteMeasure(json, row->error);
    json->Value(stack);
    json->Raw(row->cells);
    json->EndArray();
  });
  json->ArrayMember("stacks", used, [&](int id) { json->Value(pair_.stacks->Frames(static_cast<uint32_t>(id))); });
  json->EndObject();
}

std::string RowWatch::PageJson() const {
  std::vector<std::string_view> target_only, golden_only;
  for (size_t i = 0; i < pair_.plan.golden_of.size() && target_only.size() < options_.names; ++i) {
    if (pair_.plan.golden_of[i] == kNoOp && !pair_.plan.NotSeen(i)) target_only.push_back(pair_.target->ops()[i].name);
  }
  for (size_t i = 0; i < std::min(options_.names, pair_.plan.golden_only.size()); ++i) {
    golden_only.push_back(pair_.golden->ops()[pair_.plan.golden_only[i]].name);
  }
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Member("measures", measures_);
  json.Member("roundoff", roundoff_);
  json.Key("worst"), WriteOps(&json, worst_);
  json.Key("added"), WriteOps(&json, added_);
  json.Key("curves"), WriteCurves(&json);
  json.Key("table"), WriteRows(&json);
  json.Key("advice"), WriteAdvice(&json, advice_);
  json.Member("target_only", target_only);
  json.Member("golden_only", golden_only);
  json.EndObject();
  return json.Take();
}

}  // namespace msprobe
