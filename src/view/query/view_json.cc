#include "view/query/view_json.h"

#include <string_view>

#include "json/writer.h"
#include "view/query/json_parts.h"

namespace msprobe::view {
namespace {

void WriteRows(JsonWriter* json, std::string_view key, const std::vector<ViewRow>& rows) {
  json->ArrayMember(key, rows, [&](const ViewRow& row) {
    json->BeginObject();
    json->Member("name", row.name);
    json->ObjectMember("values", [&] {
      for (const auto& [name, value] : row.values) json->Member(name, value);
    });
    json->EndObject();
  });
}

void WriteItems(JsonWriter* json, const NodeRecord& record) {
  WriteRows(json, "inputs", record.inputs);
  WriteRows(json, "outputs", record.outputs);
  json->Member("stack", record.stack);
  json->Member("merge_info", record.merge_info);
}

void WriteCounts(JsonWriter* json, const SideSummary& s) {
  json->BeginObject();
  json->Member("nodes", s.nodes);
  json->Member("pass", s.pass);
  json->Member("warning", s.warning);
  json->Member("error", s.error);
  json->Member("unmatched", s.unmatched);
  json->Member("none", s.none);
  json->EndObject();
}

void WriteRulings(JsonWriter* json, const std::optional<RulerCounts>& counts) {
  if (!counts) return json->Null();
  json->BeginObject();
  json->Member("bug", counts->bug);
  json->Member("suspicious", counts->suspicious);
  json->Member("inherited", counts->inherited);
  json->Member("round-off", counts->round_off);
  json->Member("rewritten", counts->rewritten);
  json->Member("bit-equal", counts->bit_equal);
  json->Member("unjudged", counts->none);
  json->EndObject();
}

void WriteFiles(JsonWriter* json, std::string_view key, const std::vector<FoundFile>& files) {
  json->ArrayMember(key, files, [&](const FoundFile& f) {
    json->BeginObject();
    json->Member("file", f.file);
    json->Member("size", f.stamp.size);
    json->Member("mtime", f.stamp.mtime_s);
    json->EndObject();
  });
}

void RawOrNull(JsonWriter* json, std::string_view key, const std::string& text) {
  json->RawMember(key, text.empty() ? std::string_view("null") : text);
}

}  // namespace

void WriteRecord(JsonWriter* json, const NodeRecord& record) {
  WriteItems(json, record);
  RawOrNull(json, "communication", record.communication_json);
}

std::string ToJson(const FileList& list) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Member("root", list.root);
  WriteFiles(&json, "files", list.files);
  WriteFiles(&json, "trends", list.trends);
  json.ArrayMember("runs", list.runs, [&](const FoundRun& run) {
    json.BeginObject();
    json.Member("file", run.directory);
    json.Member("ranks", run.ranks);
    json.Member("size", run.size);
    json.Member("mtime", run.changed);
    json.EndObject();
  });
  WriteFiles(&json, "checks", list.checks);
  json.ArrayMember("reports", list.reports, [&](const FoundReport& report) {
    json.BeginObject();
    json.Member("file", report.file);
    json.Member("size", report.stamp.size);
    json.Member("mtime", report.stamp.mtime_s);
    json.Member("kind", report.head.kind);
    json.Member("outcome", report.head.outcome);
    json.ObjectMember("headline", [&] {
      json.Member("en", report.head.en);
      json.Member("zh", report.head.zh);
    });
    json.EndObject();
  });
  json.ArrayMember("dumps", list.dumps, [&](const FoundDump& dump) {
    json.BeginObject();
    json.Member("file", dump.directory);
    json.Member("size", 0);
    json.Member("mtime", dump.changed);
    json.Member("steps", dump.steps);
    json.Member("ranks", dump.ranks);
    json.EndObject();
  });
  json.ArrayMember("skipped", list.skipped, [&](const SkippedFile& f) {
    json.BeginObject();
    json.Member("file", f.file);
    json.Member("reason", f.reason);
    json.EndObject();
  });
  json.EndObject();
  return json.Take();
}

std::string ToJson(const VisSettings& config) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Member("graph_type", config.compared ? "compare" : "build");
  json.Member("task", config.task);
  json.Member("micro_steps", config.micro_steps);
  json.Member("overflow_check", config.overflow_check);
  json.Member("verdicts", config.verdicts);
  RawOrNull(&json, "colors", config.colors_json);
  RawOrNull(&json, "tool_tip", config.tool_tip_json);
  json.Member("ranks", config.ranks);
  json.Member("steps", config.steps);
  json.Member("target", config.target);
  json.Member("golden", config.golden);
  json.EndObject();
  return json.Take();
}

std::string ToJson(const GraphCounts& summary) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Key("npu"), WriteCounts(&json, summary.target);
  json.Key("bench");
  summary.golden ? WriteCounts(&json, *summary.golden) : json.Null();
  json.Key("verdicts"), WriteRulings(&json, summary.rulings);
  WriteNode(&json, "first_error", summary.first_error);
  WriteNode(&json, "first_warning", summary.first_warning);
  json.ObjectMember("overflow", [&] {
    json.Member("medium", summary.medium);
    json.Member("high", summary.high);
    json.Member("critical", summary.critical);
  });
  WriteNode(&json, "first_overflow", summary.first_overflow);
  json.EndObject();
  return json.Take();
}

std::string ToJson(const ChildList& list, bool rows) {
  std::string out;
  out.reserve(256 + list.children.size() * (rows ? 120 : 320));
  JsonWriter json(&out, kJsonPage);
  json.BeginObject();
  json.Key("node"), WriteNode(&json, list.node);
  json.Member("total", list.total);
  json.ArrayMember("children", list.children,
                   [&](const NodeSummary& n) { rows ? WriteNodeList(&json, n) : WriteNode(&json, n); });
  json.EndObject();
  return out;
}

std::string PathToJson(const std::vector<std::string>& path) {
  JsonWriter json(kJsonPage);
  json.Object([&] { json.Member("path", path); });
  return json.Take();
}

std::string ToJson(const NodeDetail& detail) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Key("node"), WriteNode(&json, detail.node);
  WriteRecord(&json, detail.record);
  json.Key("partner");
  if (detail.partner) {
    json.BeginObject();
    json.Member("side", SideName(detail.partner->side));
    json.Key("node"), WriteNode(&json, detail.partner->node);
    WriteItems(&json, detail.partner->record);
    json.EndObject();
  } else {
    json.Null();
  }
  json.EndObject();
  return json.Take();
}

std::string ToJson(const SearchHits& hits) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Member("side", SideName(hits.side));
  json.Member("rank", hits.rank);
  json.Member("total", hits.total);
  json.ArrayMember("hits", hits.hits, [&](const SearchHit& hit) {
    json.BeginObject();
    WriteNodeMembers(&json, hit.node);
    json.Key("module"), hit.module.empty() ? json.Null() : json.String(hit.module);
    json.EndObject();
  });
  json.Member("words", hits.words);
  json.EndObject();
  return json.Take();
}

std::string ErrorJson(std::string_view text) {
  JsonWriter json(kJsonPage);
  json.Object([&] { json.Member("error", text); });
  return json.Take();
}

}  // namespace msprobe::view
