// The answers about whole ranks, and about what a node has to do with others.
#include <cmath>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "view/json_parts.h"
#include "view/view_json.h"

namespace msprobe::view {
namespace {

// JSON has no infinity: it is the text "inf". What is not known is null.
void Measure(std::string& out, std::string_view key, const std::optional<double>& value) {
  Key(out, key);
  if (!value || std::isnan(*value)) {
    out += "null";
  } else if (std::isinf(*value)) {
    out += "\"inf\"";
  } else {
    AppendJsonNumber(out, *value);
  }
}

void Count(std::string& out, std::string_view key, uint64_t value) {
  Key(out, key);
  AppendInt(out, static_cast<int64_t>(value));
}

void Flag(std::string& out, std::string_view key, bool value) {
  Key(out, key);
  out += value ? "true" : "false";
}

void Precision(std::string& out, const std::optional<NodePrecision>& p) {
  Key(out, "precision");
  if (!p) {
    out += "null";
    return;
  }
  out += "{\"verdict\":";
  Text(out, p->verdict);
  Measure(out, "error", p->error);
  Measure(out, "input_error", p->input_error);
  Measure(out, "units", p->units);
  Measure(out, "cosine", p->cosine);
  Measure(out, "max_abs_err", p->max_abs_err);
  out += '}';
}

void Layer(std::string& out, std::string_view key, const LayerCell& cell, const std::string& node) {
  Key(out, key);
  if (cell.nodes == 0) {
    out += "null";
    return;
  }
  out += "{\"level\":";
  out += LevelNumber(cell.level);
  Count(out, "nodes", cell.nodes);
  Count(out, "errors", cell.errors);
  Count(out, "warnings", cell.warnings);
  Count(out, "unmatched", cell.unmatched);
  Count(out, "overflows", cell.overflows);
  Measure(out, "error", cell.error);
  Measure(out, "units", cell.units);
  Key(out, "node");
  Text(out, node);
  out += '}';
}

void Flow(std::string& out, std::string_view key, const std::vector<FlowNeighbour>& list) {
  Key(out, key);
  Array(out, list, [&](const FlowNeighbour& n) {
    out += "{\"node\":";
    Node(out, n.node);
    Key(out, "path");
    Array(out, n.path, [&](const std::string& name) { Text(out, name); });
    Count(out, "input", n.input);
    Count(out, "output", n.output);
    Count(out, "confidence", static_cast<uint64_t>(n.confidence));
    out += '}';
  });
}

}  // namespace

void AppendMeasured(std::string& out, const std::vector<ExchangePartner>& partners,
                    const std::optional<NodePrecision>& precision) {
  Key(out, "partners");
  Array(out, partners, [&](const ExchangePartner& p) {
    out += "{\"step\":";
    AppendInt(out, p.step);
    Key(out, "rank");
    AppendInt(out, p.rank);
    Key(out, "name");
    Text(out, p.name);
    Flag(out, "gives", p.gives);
    Flag(out, "takes", p.takes);
    out += '}';
  });
  Precision(out, precision);
}

std::string ToJson(const SeekHit& hit) {
  std::string out = "{\"node\":";
  OptionalNode(out, hit.node);
  Count(out, "index", hit.index);
  Count(out, "total", hit.total);
  return out + "}";
}

std::string ToJson(const std::vector<OverviewCell>& cells) {
  std::string out = "{\"cells\":";
  Array(out, cells, [&](const OverviewCell& c) {
    out += "{\"step\":";
    AppendInt(out, c.step);
    Key(out, "rank");
    AppendInt(out, c.rank);
    Count(out, "nodes", c.nodes);
    Count(out, "error", c.error);
    Count(out, "warning", c.warning);
    Count(out, "unmatched", c.unmatched);
    Count(out, "medium", c.medium);
    Count(out, "high", c.high);
    Count(out, "critical", c.critical);
    out += '}';
  });
  return out + "}";
}

std::string ToJson(const Findings& findings) {
  std::string out = "{";
  Flag(out, "known", findings.known);
  Count(out, "total", findings.total);
  Count(out, "inherited", findings.inherited);
  Key(out, "findings");
  Array(out, findings.list, [&](const Finding& f) {
    out += "{\"kind\":";
    Text(out, f.kind);
    Key(out, "side");
    Text(out, f.side == "Bench" ? "Bench" : "NPU");
    Key(out, "name");
    Text(out, f.name);
    Key(out, "text");
    Text(out, f.text);
    Precision(out, f.precision);
    out += '}';
  });
  return out + "}";
}

std::string ToJson(const std::vector<LayerSummary>& layers) {
  std::string out = "{\"layers\":";
  Array(out, layers, [&](const LayerSummary& layer) {
    out += "{\"label\":";
    Text(out, layer.column.label);
    Layer(out, "forward", layer.column.forward, layer.forward_node);
    Layer(out, "backward", layer.column.backward, layer.backward_node);
    out += '}';
  });
  return out + "}";
}

std::string ToJson(const LinkDetail& links) {
  std::string out = "{\"previous\":";
  OptionalNode(out, links.previous);
  Key(out, "next");
  OptionalNode(out, links.next);
  Flag(out, "flow_known", links.flow_known);
  Flow(out, "producers", links.producers);
  Flow(out, "consumers", links.consumers);
  Count(out, "producers_total", links.producers_total);
  Count(out, "consumers_total", links.consumers_total);
  AppendMeasured(out, links.partners, links.precision);
  return out + "}";
}

}  // namespace msprobe::view
