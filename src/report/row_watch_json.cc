// RowWatch as the data of the HTML report.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/row_watch.h"

namespace msprobe {
namespace {

/// Separates the entries of a list.
class List {
 public:
  explicit List(std::string* out) : out_(out) { *out_ += '['; }
  std::string* Next() {
    if (!first_) *out_ += ',';
    first_ = false;
    return out_;
  }
  void Text(std::string_view s) { AppendJsonString(*Next(), s); }
  void Number(uint64_t v) { *Next() += std::to_string(v); }
  void End() { *out_ += ']'; }

 private:
  std::string* out_;
  bool first_ = true;
};

/// JSON knows no infinity: -1 is "no value", null "not finite".
void AppendMeasure(std::string* out, float v) {
  if (!std::isfinite(v)) {
    *out += "null";
  } else if (v < 0) {
    *out += "-1";
  } else {
    char text[32];
    *out += std::string_view(text, static_cast<size_t>(std::snprintf(text, sizeof text, "%.5g", double{v})));
  }
}

/// The fields of a csv line without their quotes.
void AppendCells(std::string* out, std::string_view line) {
  List cells(out);
  std::string cell;
  for (size_t at = 0; at <= line.size();) {
    cell.clear();
    bool quoted = false;
    for (; at < line.size() && (quoted || line[at] != ','); ++at) {
      if (line[at] != '"') {
        cell += line[at];
      } else if (quoted && at + 1 < line.size() && line[at + 1] == '"') {
        cell += line[at++];
      } else {
        quoted = !quoted;
      }
    }
    ++at;
    cells.Text(cell);
  }
  cells.End();
}

}  // namespace

std::string RowWatch::MeasuresJson() const {
  std::string out;
  List list(&out);
  for (const std::string_view name : measures_) list.Text(name);
  list.End();
  return out;
}

std::string RowWatch::PointJson(const Point& point) const {
  std::string out =
      std::to_string(point.rows) + "," + std::to_string(point.warnings) + "," + std::to_string(point.errors) + ",";
  AppendJsonString(out, point.worst_op);
  for (size_t m = 0; m < measures_.size(); ++m) {
    out += ',';
    AppendMeasure(&out, point.worst[m]);
  }
  return out;
}

std::string RowWatch::OpsJson(const std::vector<KeptOp>& ops) const {
  std::vector<KeptOp> sorted = ops;
  std::sort(sorted.begin(), sorted.end(), [](const KeptOp& a, const KeptOp& b) {
    return a.score != b.score ? a.score > b.score : a.index < b.index;
  });
  std::string out;
  List list(&out);
  for (const KeptOp& op : sorted) {
    List entry(list.Next());
    entry.Text(op.name);
    entry.Text(VerdictText(op.verdict));
    AppendMeasure(entry.Next(), op.input);
    AppendMeasure(entry.Next(), op.output);
    entry.Number(op.index);
    entry.Number(op.first_row);
    entry.Number(op.rows);
    std::string frame, function;
    if (pair_.stacks) {
      if (const auto id = pair_.stacks->StackOf(op.name)) UserFrame(pair_.stacks->Frames(*id), &frame, &function);
    }
    entry.Text(frame);
    entry.End();
  }
  list.End();
  return out;
}

std::string RowWatch::CurvesJson() const {
  std::string out = "{\"stacks\":";
  List stacks(&out);
  for (const std::string_view s : stacks_) stacks.Text(s);
  stacks.End();
  out += ",\"parts\":";
  List parts(&out);
  for (const std::string_view s : parts_) parts.Text(s);
  parts.End();
  // stack, direction, layer, part, then the point
  out += ",\"cells\":";
  List cells(&out);
  for (const auto& [key, point] : cells_) {
    *cells.Next() += "[" + std::to_string(key.stack) + "," + std::to_string(key.direction) + "," +
                     std::to_string(key.layer) + "," + std::to_string(key.part) + "," + PointJson(point) + "]";
  }
  cells.End();
  // direction, number of the bin, then the point
  out += ",\"run\":";
  List run(&out);
  for (size_t direction = 0; direction < run_.size(); ++direction) {
    for (size_t i = 0; i < run_[direction].size(); ++i) {
      const Point& point = run_[direction][i];
      if (point.worst[0] < 0) continue;
      *run.Next() += "[" + std::to_string(direction) + "," + std::to_string(i) + "," + PointJson(point) + "]";
    }
  }
  run.End();
  return out + ",\"bins\":" + std::to_string(options_.bins) + "}";
}

std::string RowWatch::RowsJson() const {
  std::vector<const KeptRow*> sorted;
  for (const KeptRow& row : rows_) sorted.push_back(&row);
  std::sort(sorted.begin(), sorted.end(), [](const KeptRow* a, const KeptRow* b) { return a->index < b->index; });
  // Few different stacks stand behind many rows.
  std::unordered_map<int, size_t> ids;
  std::vector<int> used;
  std::string out = "{\"columns\":";
  List columns(&out);
  for (const std::string_view c : columns_) columns.Text(c);
  columns.End();
  out += ",\"total\":" + std::to_string(next_row_) + ",\"rows\":";
  List list(&out);
  for (const KeptRow* row : sorted) {
    List entry(list.Next());
    entry.Number(row->index);
    AppendMeasure(entry.Next(), row->error);
    int stack = -1;
    if (row->stack >= 0) {
      const auto [it, added] = ids.emplace(row->stack, used.size());
      if (added) used.push_back(row->stack);
      stack = static_cast<int>(it->second);
    }
    *entry.Next() += std::to_string(stack);
    AppendCells(entry.Next(), row->text);
    entry.End();
  }
  list.End();
  out += ",\"stacks\":";
  List stacks(&out);
  for (const int id : used) {
    List frames(stacks.Next());
    for (const std::string& frame : pair_.stacks->Frames(static_cast<uint32_t>(id))) frames.Text(frame);
    frames.End();
  }
  stacks.End();
  return out + "}";
}

std::string RowWatch::PageJson() const {
  std::string out = "{\"measures\":" + MeasuresJson() + ",\"roundoff\":" + PyRepr(roundoff_) +
                    ",\"worst\":" + OpsJson(worst_) + ",\"added\":" + OpsJson(added_) + ",\"curves\":" + CurvesJson() +
                    ",\"table\":" + RowsJson() + ",\"advice\":" + AdviceJson(advice_) + ",\"target_only\":";
  List mine(&out);
  for (size_t i = 0, kept = 0; i < pair_.plan.golden_of.size() && kept < options_.names; ++i) {
    if (pair_.plan.golden_of[i] != kNoOp) continue;
    mine.Text(pair_.target->ops()[i].name);
    ++kept;
  }
  mine.End();
  out += ",\"golden_only\":";
  List theirs(&out);
  for (size_t i = 0; i < std::min(options_.names, pair_.plan.golden_only.size()); ++i) {
    theirs.Text(pair_.golden->ops()[pair_.plan.golden_only[i]].name);
  }
  theirs.End();
  return out + "}";
}

}  // namespace msprobe
