// The questions that the page asks, and their answers, as plain structs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "view/file/directory.h"
#include "view/file/tree.h"
#include "view/file/vis_file.h"
#include "view/run/run_cache.h"
#include "view/search/hit_order.h"
#include "view/search/node_filter.h"

namespace msprobe::view {

enum class Side : uint8_t { kTarget, kGolden };

/// Which graph a question is about.
struct GraphAddress {
  std::string file;
  int64_t step = 0, rank = 0;
};

struct FileList {
  std::string root;
  std::vector<FoundFile> files;
  std::vector<FoundFile> trends;  ///< .trend.db, not looked into
  std::vector<FoundRun> runs;     ///< of a monitor, not looked into
  std::vector<FoundFile> checks;  ///< tables of acc_check, not looked into
  std::vector<FoundReport> reports;
  std::vector<FoundDump> dumps;
  std::vector<SkippedFile> skipped;
};

struct NodeSummary {
  std::string name, label;
  int type = 0;
  uint32_t children = 0;
  int64_t order = 0, micro_step = 0;
  Verdict level = Verdict::kNone;
  Overflow overflow = Overflow::kNone;
  RulerVerdict ruling = RulerVerdict::kNone;
  std::optional<std::string> matched;
  SubtreeCounts counts;
};

struct SideSummary {
  uint64_t nodes = 0, pass = 0, warning = 0, error = 0, unmatched = 0, none = 0;
};

struct GraphCounts {
  SideSummary target;
  std::optional<RulerCounts> rulings;  ///< of the target's nodes that have a partner; where the file judges
  std::optional<SideSummary> golden;
  std::optional<NodeSummary> first_error, first_warning, first_overflow;
  uint64_t medium = 0, high = 0, critical = 0;
};

struct ChildList {
  NodeSummary node;
  uint64_t total = 0;
  std::vector<NodeSummary> children;
};

struct PartnerDetail {
  Side side = Side::kGolden;
  NodeSummary node;
  NodeRecord record;
};

struct NodeDetail {
  NodeSummary node;
  NodeRecord record;
  std::optional<PartnerDetail> partner;
};

struct SearchQuery {
  std::string text;  ///< as it was typed; view/search/search_terms.h reads it
  NodeFilter filter = NodeFilter::kAny;
  bool leaves_only = false;
  uint64_t offset = 0, limit = 200;
  HitSort sort = HitSort::kExecution;
};

struct SearchHit {
  NodeSummary node;
  std::string module;  ///< of an op the nearest module around it; "" of a module, and of what no module calls
};

struct SearchHits {
  Side side = Side::kTarget;  ///< the one that was asked for, unless the search names another
  int64_t rank = 0;           ///< likewise
  uint64_t total = 0;
  std::vector<SearchHit> hits;
  std::vector<std::string> words;  ///< what to mark in the names, in lower case
};

/// The next or previous node that a filter keeps, and which of them it is.
struct SeekHit {
  Side side = Side::kTarget;  ///< as of a search
  int64_t rank = 0;           ///< likewise
  std::optional<NodeSummary> node;
  uint64_t index = 0, total = 0;
};

/// Counts over the graph of a rank at a step, of the side looked at.
struct OverviewCell {
  int64_t step = 0, rank = 0;
  uint64_t nodes = 0, error = 0, warning = 0, unmatched = 0, medium = 0, high = 0, critical = 0;
  uint64_t inherited = 0, suspicious = 0, bug = 0;  ///< by the ruler
};

/// One node in the graph of a rank at a step.
struct HistoryCell {
  int64_t step = 0, rank = 0;
  Verdict level = Verdict::kNone;
  Overflow overflow = Overflow::kNone;
  RulerVerdict ruling = RulerVerdict::kNone;
  bool matched = false;
  std::optional<double> error = std::nullopt, units = std::nullopt;
};

/// By step, then rank; graphs that do not have the node are left out.
struct NodeHistory {
  std::string name;
  Side side = Side::kTarget;
  std::vector<HistoryCell> cells;
};

/// A call on another rank, or another one of this rank, that takes part in the same exchange.
struct ExchangePartner {
  int64_t exchange = 0, step = 0, rank = 0;
  std::string name;
  bool gives = false, takes = false;
};

/// A row of msprobe_precision.
struct NodePrecision {
  std::string verdict;
  std::optional<double> error, input_error, units, cosine, max_abs_err;
};

/// A row of msprobe_findings, or "origin": the first node that is to blame itself by msprobe_precision.
struct FindingRow {
  std::string kind, side, name, text;
  std::optional<NodePrecision> precision;
};

struct Findings {
  uint64_t total = 0;
  std::vector<FindingRow> list;  ///< the most telling first, at most kMostFindings
  uint64_t inherited = 0;        ///< nodes that only pass on what they got
  bool known = false;            ///< false: the file was not written with findings
};
/// One direction of a layer.
struct LayerCell {
  uint32_t nodes = 0, errors = 0, warnings = 0, unmatched = 0, overflows = 0;
  Verdict level = Verdict::kNone;
  RulerVerdict ruling = RulerVerdict::kNone;  ///< the worst
  uint32_t begins = 0;                        ///< nodes that begin a difference by the ruler
  std::optional<double> error, units;         ///< the largest of its nodes
  uint32_t node = kNoNode;                    ///< where to look: the first of the worst
};

struct LayerColumn {
  std::string label;  ///< "model.layers.3", "lm_head"
  LayerCell forward, backward;
};
/// A layer and the names of the nodes to look at.
struct LayerSummary {
  LayerColumn column;
  std::string forward_node, backward_node;
};

/// The other end of an edge of the flow of values.
struct FlowNeighbour {
  NodeSummary node;
  std::vector<std::string> path;   ///< its ancestors, without the root: one of them is drawn where the node is not
  uint16_t input = 0, output = 0;  ///< positions: of the taker's inputs, of the giver's outputs
  int confidence = 0;              ///< in percent
};

struct LinkDetail {
  std::optional<NodeSummary> previous, next;
  bool flow_known = false;
  std::vector<FlowNeighbour> producers, consumers;
  uint64_t producers_total = 0, consumers_total = 0;
  std::vector<ExchangePartner> partners;
  std::optional<NodePrecision> precision;
};

/// What a page holds of the tensors of its graphs; a pair counts once.
struct ExportedTensors {
  uint64_t saved = 0, held = 0;
  uint64_t unread = 0;  ///< not there, no tensors, or larger than kMostExportedTensor
  std::string problem;  ///< of the first of them
};

/// What an exported page holds. Empty lists: all.
struct ExportChoice {
  std::vector<int64_t> steps, ranks;
  uint64_t details_bytes = 0;  ///< for the figures of nodes; the graphs themselves are always whole
  uint64_t tensor_bytes = 0;   ///< for previews of tensors
};

struct ExportedGraphs {
  std::string json;
  uint64_t graphs = 0, nodes = 0, details = 0;  ///< nodes of both sides, those whose figures are there
  ExportedTensors tensors;
};

/// Whose values are asked for.
struct TensorQuery {
  std::string node, item;
  std::string partner_item;  ///< of the matched node, "" for none
  int64_t slice = 0;
};

}  // namespace msprobe::view
