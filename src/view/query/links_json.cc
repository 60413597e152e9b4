// The answers about whole ranks, and about what a node has to do with others.
#include <cmath>
#include <string_view>

#include "json/writer.h"
#include "view/query/json_parts.h"
#include "view/query/view_json.h"

namespace msprobe::view {
namespace {

// JSON has no infinity: it is the text "inf". What is not known is null.
void Measure(JsonWriter* json, std::string_view key, const std::optional<double>& value) {
  value&& std::isinf(*value) ? json->Member(key, "inf") : json->Member(key, value);
}

void WritePrecision(JsonWriter* json, const std::optional<NodePrecision>& p) {
  json->Key("precision");
  if (!p) return json->Null();
  json->BeginObject();
  json->Member("verdict", p->verdict);
  Measure(json, "error", p->error);
  Measure(json, "input_error", p->input_error);
  Measure(json, "units", p->units);
  Measure(json, "cosine", p->cosine);
  Measure(json, "max_abs_err", p->max_abs_err);
  json->EndObject();
}

void WriteLayer(JsonWriter* json, std::string_view key, const LayerCell& cell, const std::string& node) {
  json->Key(key);
  if (cell.nodes == 0) return json->Null();
  json->BeginObject();
  json->Key("level"), WriteLevel(json, cell.level);
  json->Member("nodes", cell.nodes);
  json->Member("errors", cell.errors);
  json->Member("warnings", cell.warnings);
  json->Member("unmatched", cell.unmatched);
  json->Member("overflows", cell.overflows);
  json->Key("verdict"), WriteRuling(json, cell.ruling);
  json->Member("begins", cell.begins);
  Measure(json, "error", cell.error);
  Measure(json, "units", cell.units);
  json->Member("node", node);
  json->EndObject();
}

void WriteFlow(JsonWriter* json, std::string_view key, const std::vector<FlowNeighbour>& list) {
  json->ArrayMember(key, list, [&](const FlowNeighbour& n) {
    json->BeginObject();
    json->Key("node"), WriteNode(json, n.node);
    json->Member("path", n.path);
    json->Member("input", n.input);
    json->Member("output", n.output);
    json->Member("confidence", n.confidence);
    json->EndObject();
  });
}

}  // namespace

void WriteMeasured(JsonWriter* json, const std::vector<ExchangePartner>& partners,
                   const std::optional<NodePrecision>& precision) {
  json->ArrayMember("partners", partners, [&](const ExchangePartner& p) {
    json->BeginObject();
    json->Member("step", p.step);
    json->Member("rank", p.rank);
    json->Member("name", p.name);
    json->Member("gives", p.gives);
    json->Member("takes", p.takes);
    json->EndObject();
  });
  WritePrecision(json, precision);
}

std::string ToJson(const SeekHit& hit) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Member("side", SideName(hit.side));
  json.Member("rank", hit.rank);
  WriteNode(&json, "node", hit.node);
  json.Member("index", hit.index);
  json.Member("total", hit.total);
  json.EndObject();
  return json.Take();
}

std::string ToJson(const std::vector<OverviewCell>& cells) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.ArrayMember("cells", cells, [&](const OverviewCell& c) {
    json.BeginObject();
    json.Member("step", c.step);
    json.Member("rank", c.rank);
    json.Member("nodes", c.nodes);
    json.Member("error", c.error);
    json.Member("warning", c.warning);
    json.Member("unmatched", c.unmatched);
    json.Member("medium", c.medium);
    json.Member("high", c.high);
    json.Member("critical", c.critical);
    json.Member("inherited", c.inherited);
    json.Member("suspicious", c.suspicious);
    json.Member("bug", c.bug);
    json.EndObject();
  });
  json.EndObject();
  return json.Take();
}

std::string ToJson(const NodeHistory& history) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Member("name", history.name);
  json.Member("side", SideName(history.side));
  json.ArrayMember("cells", history.cells, [&](const HistoryCell& c) {
    json.BeginObject();
    json.Member("step", c.step);
    json.Member("rank", c.rank);
    json.Member("matched", c.matched);
    json.Key("precision"), WriteLevel(&json, c.level);
    json.Key("overflow"), WriteOverflow(&json, c.overflow);
    json.Key("verdict"), WriteRuling(&json, c.ruling);
    Measure(&json, "error", c.error);
    Measure(&json, "units", c.units);
    json.EndObject();
  });
  json.EndObject();
  return json.Take();
}

std::string ToJson(const Findings& findings) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Member("known", findings.known);
  json.Member("total", findings.total);
  json.Member("inherited", findings.inherited);
  json.ArrayMember("findings", findings.list, [&](const FindingRow& f) {
    json.BeginObject();
    json.Member("kind", f.kind);
    json.Member("side", f.side == "Bench" ? "Bench" : "NPU");
    json.Member("name", f.name);
    json.Member("text", f.text);
    WritePrecision(&json, f.precision);
    json.EndObject();
  });
  json.EndObject();
  return json.Take();
}

std::string ToJson(const std::vector<LayerSummary>& layers) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.ArrayMember("layers", layers, [&](const LayerSummary& layer) {
    json.BeginObject();
    json.Member("label", layer.column.label);
    WriteLayer(&json, "forward", layer.column.forward, layer.forward_node);
    WriteLayer(&json, "backward", layer.column.backward, layer.backward_node);
    json.EndObject();
  });
  json.EndObject();
  return json.Take();
}

std::string ToJson(const LinkDetail& links) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  WriteNode(&json, "previous", links.previous);
  WriteNode(&json, "next", links.next);
  json.Member("flow_known", links.flow_known);
  WriteFlow(&json, "producers", links.producers);
  WriteFlow(&json, "consumers", links.consumers);
  json.Member("producers_total", links.producers_total);
  json.Member("consumers_total", links.consumers_total);
  WriteMeasured(&json, links.partners, links.precision);
  json.EndObject();
  return json.Take();
}

}  // namespace msprobe::view
