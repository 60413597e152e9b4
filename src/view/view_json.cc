#include "view/view_json.h"

#include <string_view>
#include <utility>

#include "base/text.h"
#include "view/json_parts.h"

namespace msprobe::view {
namespace {

void Rows(std::string& out, const std::vector<ViewRow>& rows) {
  Array(out, rows, [&](const ViewRow& row) {
    out += "{\"name\":";
    Text(out, row.name);
    out += ",\"values\":{";
    bool first = true;
    for (const auto& [key, value] : row.values) {
      if (!std::exchange(first, false)) out += ',';
      Text(out, key);
      out += ':';
      Text(out, value);
    }
    out += "}}";
  });
}

void Record(std::string& out, const NodeRecord& record) {
  Key(out, "inputs");
  Rows(out, record.inputs);
  Key(out, "outputs");
  Rows(out, record.outputs);
  Key(out, "stack");
  Texts(out, record.stack);
}

void Counts(std::string& out, const SideSummary& s) {
  Numbers(out, {{"nodes", s.nodes},
                {"pass", s.pass},
                {"warning", s.warning},
                {"error", s.error},
                {"unmatched", s.unmatched},
                {"none", s.none}});
}

void FoundFiles(std::string& out, const std::vector<FoundFile>& files) {
  Array(out, files, [&](const FoundFile& f) {
    out += "{\"file\":";
    Text(out, f.file);
    Key(out, "size");
    AppendInt(out, static_cast<int64_t>(f.stamp.size));
    Key(out, "mtime");
    AppendInt(out, f.stamp.mtime_s);
    out += '}';
  });
}

std::string_view OrNull(const std::string& json) { return json.empty() ? std::string_view("null") : json; }

}  // namespace

void AppendRecord(std::string& out, const NodeRecord& record) {
  Record(out, record);
  Key(out, "merge_info");
  Texts(out, record.merge_info);
  Key(out, "communication");
  out += OrNull(record.communication_json);
}

std::string ToJson(const FileList& list) {
  std::string out = "{\"root\":";
  Text(out, list.root);
  Key(out, "files");
  FoundFiles(out, list.files);
  Key(out, "trends");
  FoundFiles(out, list.trends);
  Key(out, "skipped");
  Array(out, list.skipped, [&](const SkippedFile& f) {
    out += "{\"file\":";
    Text(out, f.file);
    Key(out, "reason");
    Text(out, f.reason);
    out += '}';
  });
  return out + "}";
}

std::string ToJson(const VisConfig& config) {
  std::string out = "{";
  Key(out, "graph_type");
  out += config.compared ? "\"compare\"" : "\"build\"";
  Key(out, "task");
  Text(out, config.task);
  Key(out, "micro_steps");
  AppendInt(out, config.micro_steps);
  Key(out, "overflow_check");
  out += config.overflow_check ? "true" : "false";
  Key(out, "colors");
  out += OrNull(config.colors_json);
  Key(out, "tool_tip");
  out += OrNull(config.tool_tip_json);
  Key(out, "ranks");
  Array(out, config.ranks, [&](int64_t v) { AppendInt(out, v); });
  Key(out, "steps");
  Array(out, config.steps, [&](int64_t v) { AppendInt(out, v); });
  return out + "}";
}

std::string ToJson(const GraphSummary& summary) {
  std::string out = "{\"npu\":";
  Counts(out, summary.npu);
  Key(out, "bench");
  if (summary.bench) {
    Counts(out, *summary.bench);
  } else {
    out += "null";
  }
  Key(out, "first_error");
  OptionalNode(out, summary.first_error);
  Key(out, "first_warning");
  OptionalNode(out, summary.first_warning);
  Key(out, "overflow");
  Numbers(out, {{"medium", summary.medium}, {"high", summary.high}, {"critical", summary.critical}});
  Key(out, "first_overflow");
  OptionalNode(out, summary.first_overflow);
  return out + "}";
}

std::string ToJson(const ChildList& list, bool rows) {
  std::string out = "{\"node\":";
  out.reserve(256 + list.children.size() * (rows ? 120 : 320));
  Node(out, list.node);
  Key(out, "total");
  AppendInt(out, static_cast<int64_t>(list.total));
  Key(out, "children");
  Array(out, list.children, [&](const NodeSummary& n) { rows ? NodeList(out, n) : Node(out, n); });
  return out + "}";
}

std::string PathToJson(const std::vector<std::string>& path) {
  std::string out = "{\"path\":";
  Texts(out, path);
  return out + "}";
}

std::string ToJson(const NodeDetail& detail) {
  std::string out = "{\"node\":";
  Node(out, detail.node);
  AppendRecord(out, detail.record);
  Key(out, "partner");
  if (detail.partner) {
    out += "{\"side\":";
    out += detail.partner->side == view::Side::kNpu ? "\"NPU\"" : "\"Bench\"";
    Key(out, "node");
    Node(out, detail.partner->node);
    Record(out, detail.partner->record);
    Key(out, "merge_info");
    Texts(out, detail.partner->record.merge_info);
    out += '}';
  } else {
    out += "null";
  }
  return out + "}";
}

std::string ToJson(const SearchHits& hits) {
  std::string out = "{\"total\":";
  AppendInt(out, static_cast<int64_t>(hits.total));
  Key(out, "hits");
  Array(out, hits.hits, [&](const NodeSummary& n) { Node(out, n); });
  return out + "}";
}

std::string ErrorJson(std::string_view text) {
  std::string out = "{\"error\":";
  Text(out, text);
  return out + "}";
}

}  // namespace msprobe::view
