#include "report/rows/row_columns.h"

#include <fmt/core.h>

#include <cmath>

#include "base/text.h"
#include "compare/round_off/ruler.h"
#include "report/rows/older_verdict.h"

namespace msprobe {
namespace {

// ---- where a column is shown

enum Where : unsigned {
  kStatistics = 1 << 0,
  kTensors = 1 << 1,
  kChecksums = 1 << 2,
  kTables = 1 << 3,    // csv, workbooks, the page of the HTML report
  kAnalysis = 1 << 4,  // the JSON of -da
  kNow = 1 << 5,       // our verdicts
  kOlder = 1 << 6,     // those of release 8.x
  kStacks = 1 << 7,    // from here on: only when asked for
  kRuler = 1 << 8,
  kReplays = 1 << 9,
  kGrads = 1 << 10,
};
constexpr unsigned kAnyMode = kStatistics | kTensors | kChecksums;
constexpr unsigned kAnyForm = kTables | kAnalysis, kAnyRelease = kNow | kOlder;
constexpr unsigned kAlways = kAnyMode | kAnyForm | kAnyRelease;
constexpr unsigned kExtras = kStacks | kRuler | kReplays | kGrads;

unsigned PlaceOf(const RowSettings& o) {
  unsigned out = o.mode == CompareMode::kStatistics ? kStatistics
                 : o.mode == CompareMode::kTensor   ? kTensors
                                                    : kChecksums;
  out |= o.analysis ? kAnalysis : kTables;
  out |= o.older ? kOlder : kNow;
  if (o.stacks) out |= kStacks;
  if (o.ruler) out |= kRuler;
  if (o.replays) out |= kReplays;
  if (o.grads) out |= kGrads;
  return out;
}

bool IsShown(unsigned where, unsigned place) {
  for (const unsigned one_of : {kAnyMode, kAnyForm, kAnyRelease}) {
    if (!(where & place & one_of)) return false;
  }
  return (where & kExtras & ~place) == 0;
}

// ---- the values of the cells; `part` tells columns with one getter apart

using OwnText = std::string*;  // holds a text that is made for the cell

Cell NotAvailable() { return Cell::Word(kNotAvailableCell); }

template <auto kMember>
Cell OfTarget(const RowView& r, size_t, OwnText) {
  return Cell::Text(r.target.*kMember);
}
template <auto kMember>
Cell OfGolden(const RowView& r, size_t, OwnText) {
  return r.golden ? Cell::Text(r.golden->*kMember) : NotAvailable();
}
Cell TargetGrad(const RowView& r, size_t, OwnText) { return Cell::Text(r.target.GradText()); }
Cell GoldenGrad(const RowView& r, size_t, OwnText) {
  return r.golden ? Cell::Text(r.golden->GradText()) : NotAvailable();
}

Cell TargetStat(const RowView& r, size_t stat, OwnText text) { return StatCell(r.target.stats[stat], text); }
Cell GoldenStat(const RowView& r, size_t stat, OwnText text) {
  return r.golden ? StatCell(r.golden->stats[stat], text) : NotAvailable();
}

/// What takes the place of a number in the cells of a difference.
Cell DifferenceCell(StatDiff::Cell cell) {
  switch (cell) {
    case StatDiff::Cell::kZero: return Cell::Figure(0, "0");
    case StatDiff::Cell::kNan: return Cell::Figure(NAN, "Nan");
    case StatDiff::Cell::kInf: return Cell::Figure(INFINITY, "inf");
    case StatDiff::Cell::kNegInf: return Cell::Figure(-INFINITY, "-inf");
    case StatDiff::Cell::kDiff: return Cell::Word("Diff");
    case StatDiff::Cell::kNumber:
    case StatDiff::Cell::kInteger:
    case StatDiff::Cell::kNA: break;
  }
  return NotAvailable();
}
Cell Difference(const RowView& r, size_t stat, OwnText) {
  const StatDiff& d = r.row.diff[stat];
  return d.diff_cell == StatDiff::Cell::kNumber ? Cell::Figure(d.diff) : DifferenceCell(d.diff_cell);
}
/// In release 8.x there is none against zero.
Cell RelativeError(const RowView& r, size_t stat, OwnText) {
  const StatDiff& d = r.row.diff[stat];
  const bool difference = d.diff_cell == StatDiff::Cell::kNumber || d.diff_cell == StatDiff::Cell::kZero;
  if (r.options.older && r.golden && difference) {
    const StatValue& golden = r.golden->stats[stat];
    if (golden.IsNumber() && golden.AsDouble() == 0) return NotAvailable();
  }
  return d.rel_cell == StatDiff::Cell::kNumber ? Cell::Percent(d.rel) : DifferenceCell(d.rel_cell);
}

Cell BuiltInMetric(const RowView& r, size_t metric, OwnText) {
  const MetricCell& cell = r.op.tensors[r.index].cells[metric];
  switch (cell.kind) {
    case MetricCell::Kind::kNumber: return Cell::Number(cell.value);
    case MetricCell::Kind::kNan: return Cell::Figure(NAN, "Nan");
    case MetricCell::Kind::kUnsupported: return Cell::Word("unsupported");
    case MetricCell::Kind::kShapeUnmatched: return Cell::Word("shape unmatched");
    case MetricCell::Kind::kNA: break;
  }
  return NotAvailable();
}
Cell CustomMetric(const RowView& r, size_t metric, OwnText text) {
  return StatCell(r.op.tensors[r.index].custom[metric].value, text);
}

Cell GradConsistent(const RowView& r, size_t, OwnText) { return Cell::Bool(r.row.grad_consistent); }

Cell Colored(Cell cell, Verdict verdict) {
  if (verdict != Verdict::kPass) cell.color = verdict == Verdict::kError ? Cell::Color::kRed : Cell::Color::kYellow;
  return cell;
}
Cell Result(const RowView& r, size_t, OwnText) {
  return Colored(Cell::Word(VerdictText(r.row.verdict)), r.row.verdict);
}
Cell OlderVerdictCell(const RowView& r, size_t, OwnText) {
  std::string_view said = OlderVerdict(r.op, r.index, r.options.mode);
  if (!r.options.grads && said == "Pass") said = "pass";  // as 8.1.1 spells it
  if (r.options.mode != CompareMode::kStatistics) return Colored(Cell::Word(said), r.row.verdict);
  return Colored(Cell::Word(said), said == "Warning" ? Verdict::kWarning : Verdict::kPass);
}
/// -da judges ops, and rows only by their checksums.
Cell AnalysisResult(const RowView& r, size_t, OwnText) {
  if (r.options.mode != CompareMode::kChecksum) return Cell::Word("");
  if (!r.golden) return NotAvailable();
  return Cell::Word(r.target.checksum == r.golden->checksum ? "pass" : "Different");
}

bool HasReasons(const RowView& r) { return r.highlight && !r.highlight->reasons.empty(); }
bool HasMessage(const RowView& r) { return r.row.findings || HasReasons(r); }
Cell Message(const RowView& r, size_t, OwnText text) {
  if (!HasMessage(r)) return Cell::Word("[]");
  *text = FindingsJson(r.op, r.index);
  if (HasReasons(r)) *text = WithReasons(std::move(*text), *r.highlight);
  return Cell::Text(*text);
}
Cell OlderMessage(const RowView& r, size_t part, OwnText text) {
  if (r.options.mode != CompareMode::kStatistics) {
    if (IsUnmatched(r.row) && !HasReasons(r)) return Cell::Word(kNoBenchData);
    return HasMessage(r) ? Message(r, part, text) : Cell::Word("");
  }
  *text = OlderStatistics(r.op, r.index).message;
  if (!r.highlight) return Cell::Text(*text);
  for (const std::string& reason : r.highlight->reasons) *text += (text->empty() ? "" : " ") + reason;
  return Cell::Text(*text);
}
Cell AnalysisMessage(const RowView& r, size_t, OwnText) {
  return r.options.mode == CompareMode::kChecksum ? Cell::Number(NAN) : Cell::Word("");
}

Cell Stack(const RowView& r, size_t, OwnText) { return r.stack < 0 ? NotAvailable() : Cell::Shared(r.stack); }

/// The two files of a row, as Python writes a list.
Cell DataName(const RowView& r, size_t, OwnText text) {
  *text = "[";
  AppendPyStrRepr(*text, r.target.data_name);
  *text += ", ";
  AppendPyStrRepr(*text, r.golden ? r.golden->data_name : kNotAvailableCell);
  *text += "]";
  return Cell::Text(*text);
}

/// In the colours of the ruler's verdict alone, whatever the older rules paint the row in.
Cell Ruled(Cell cell, const RulerCell& ruler) {
  cell.color = ruler.verdict == RulerVerdict::kBug          ? Cell::Color::kRed
               : ruler.verdict == RulerVerdict::kSuspicious ? Cell::Color::kYellow
                                                            : Cell::Color::kClear;
  return cell;
}

/// Three digits; nothing for rows that the ruler does not measure.
Cell Measured(double value, const RulerCell& cell, OwnText text) {
  if (cell.verdict == RulerVerdict::kNone) return Ruled(NotAvailable(), cell);
  *text = std::isinf(value) ? " inf" : fmt::format("{:.3g}", value);
  return Ruled(Cell::Number(value, *text), cell);
}
Cell RulerError(const RowView& r, size_t, OwnText text) {
  return Measured(r.op.ruler[r.index].error, r.op.ruler[r.index], text);
}
Cell RulerUnits(const RowView& r, size_t, OwnText text) {
  return Measured(r.op.ruler[r.index].units, r.op.ruler[r.index], text);
}
Cell RulerVerdictCell(const RowView& r, size_t, OwnText) {
  const RulerCell& cell = r.op.ruler[r.index];
  return Ruled(Cell::Word(RulerVerdictText(cell.verdict)), cell);
}
/// Where Result and the ruler disagree.
Cell RulerNote(const RowView& r, size_t, OwnText text) {
  const RulerCell& cell = r.op.ruler[r.index];
  *text = DisagreementText(r.row.verdict, cell);
  return Ruled(Cell::Text(*text), cell);  // it may hold a comma
}

Cell Replay(const RowView& r, size_t part, OwnText text) {
  *text = std::move(r.replays.Cells(r.op, r.index)[part]);
  return Cell::Word(*text);
}

Cell State(const RowView& r, size_t, OwnText) { return Cell::Word(ItemStateText(r.target.state)); }
Cell OpName(const RowView& r, size_t, OwnText) { return Cell::Text(r.op.op); }
Cell TargetPeer(const RowView& r, size_t, OwnText) { return Cell::Text(PeerOf(r.target)); }
Cell GoldenPeer(const RowView& r, size_t, OwnText) { return r.golden ? Cell::Text(PeerOf(*r.golden)) : NotAvailable(); }

}  // namespace

struct RowColumns::Column {
  std::string_view title;
  unsigned where;
  Cell (*get)(const RowView&, size_t part, OwnText);
  size_t part = 0;
  CurveOf curve = CurveOf::kNothing;
};

namespace {

constexpr unsigned kOfStatistics = kStatistics | kAnyForm | kAnyRelease, kOfTensors = kTensors | kAnyForm | kAnyRelease,
                   kOfChecksums = kChecksums | kAnyForm | kAnyRelease, kOfValues = kOfStatistics | kOfTensors;
constexpr unsigned kOfTables = kAnyMode | kTables | kAnyRelease, kOfAnalysis = kAnyMode | kAnalysis | kAnyRelease;

// In the place of titles: a column for each metric of metrics.def, and for each of the user's.
constexpr std::string_view kEachMetric = "*metric", kEachCustomMetric = "*custom";

/// Every column, in the order in which tables show them.
constexpr RowColumns::Column kColumns[] = {
    {"NPU Name", kAlways, OfTarget<&ItemView::name>},
    {"Bench Name", kAlways, OfGolden<&ItemView::name>},
    {"NPU Dtype", kAlways, OfTarget<&ItemView::dtype>},
    {"Bench Dtype", kAlways, OfGolden<&ItemView::dtype>},
    {"NPU Tensor Shape", kAlways, OfTarget<&ItemView::shape>},
    {"Bench Tensor Shape", kAlways, OfGolden<&ItemView::shape>},
    {"NPU Requires_grad", kAlways | kGrads, TargetGrad},
    {"Bench Requires_grad", kAlways | kGrads, GoldenGrad},
    // No curve is drawn of differences in a tensor's own units: layers have different scales.
    {"Max diff", kOfStatistics, Difference, kMax},
    {"Min diff", kOfStatistics, Difference, kMin},
    {"Mean diff", kOfStatistics, Difference, kMean},
    {"L2norm diff", kOfStatistics, Difference, kNorm},
    {"MaxRelativeErr", kOfStatistics, RelativeError, kMax, CurveOf::kError},
    {"MinRelativeErr", kOfStatistics, RelativeError, kMin, CurveOf::kError},
    {"MeanRelativeErr", kOfStatistics, RelativeError, kMean, CurveOf::kError},
    {"NormRelativeErr", kOfStatistics, RelativeError, kNorm, CurveOf::kError},
    {kEachMetric, kOfTensors, BuiltInMetric},
    {kEachCustomMetric, kOfTensors, CustomMetric},
    {"NPU MD5", kOfChecksums, OfTarget<&ItemView::checksum>},
    {"BENCH MD5", kOfChecksums, OfGolden<&ItemView::checksum>},
    {"NPU max", kOfValues, TargetStat, kMax},
    {"NPU min", kOfValues, TargetStat, kMin},
    {"NPU mean", kOfValues, TargetStat, kMean},
    {"NPU l2norm", kOfValues, TargetStat, kNorm},
    {"Bench max", kOfValues, GoldenStat, kMax},
    {"Bench min", kOfValues, GoldenStat, kMin},
    {"Bench mean", kOfValues, GoldenStat, kMean},
    {"Bench l2norm", kOfValues, GoldenStat, kNorm},
    {"Requires_grad Consistent", kAlways | kGrads, GradConsistent},
    {"Result", kOfTables & ~kOlder, Result},
    {"Result", kOfTables & ~kNow & ~kTensors, OlderVerdictCell},
    {"Accuracy Reached or Not", kOfTables & ~kNow & ~kStatistics & ~kChecksums, OlderVerdictCell},
    {"Result", kOfAnalysis, AnalysisResult},
    {"Err_message", kOfTables & ~kOlder, Message},
    {"Err_message", kOfTables & ~kNow & ~kChecksums, OlderMessage},
    {"Err_message", kOfAnalysis, AnalysisMessage},
    {"NPU_Stack_Info", kAlways | kStacks, Stack},
    {"Data_name", kOfTables & ~kStatistics & ~kChecksums, DataName},
    {"Ruler Error", kOfTables | kRuler, RulerError},
    {"Ruler Units", kOfTables | kRuler, RulerUnits},
    {"Ruler Verdict", kOfTables | kRuler, RulerVerdictCell},
    {"Ruler Note", kOfTables | kRuler, RulerNote},
    {"Replay Verdict", kOfTables | kReplays, Replay, 0},
    {"NPU Replay Error", kOfTables | kReplays, Replay, 1},
    {"Bench Replay Error", kOfTables | kReplays, Replay, 2},
    {"state", kOfAnalysis, State},
    {"api_origin_name", kOfAnalysis, OpName},
    {"NPU P2POp op", kOfAnalysis, OfTarget<&ItemView::p2p_op>},
    {"Bench P2POp op", kOfAnalysis, OfGolden<&ItemView::p2p_op>},
    {"NPU P2POp peer", kOfAnalysis, TargetPeer},
    {"Bench P2POp peer", kOfAnalysis, GoldenPeer},
};

}  // namespace

std::string_view ItemStateText(ItemState state) {
  switch (state) {
    case ItemState::kInput:
    case ItemState::kKwarg: return "input";
    case ItemState::kOutput: return "output";
    case ItemState::kParameter: return "parameters";
    case ItemState::kParameterGrad: return "parameters_grad";
    case ItemState::kDebug: return "debug";
  }
  return "";
}

std::string_view PeerOf(const ItemView& item) {
  return item.p2p_op == "None" ? std::string_view("None") : std::string_view(item.p2p_peer);
}

Cell StatCell(const StatValue& v, std::string* text) {
  switch (v.kind) {
    case StatValue::Kind::kInt: return Cell::Integer(v.i);
    case StatValue::Kind::kUInt: return Cell::Unsigned(v.u);
    case StatValue::Kind::kBool: return Cell::Bool(v.flag);
    case StatValue::Kind::kDouble: return std::isnan(v.d) ? Cell::Figure(v.d, "Nan") : Cell::Number(v.d);
    case StatValue::Kind::kNull: return Cell::Text("None");
    case StatValue::Kind::kJson:
      text->clear();
      v.AppendText(text);
      return Cell::Text(*text);
    case StatValue::Kind::kText: break;
  }
  const bool nan = v.IsNanOrInf() && (v.text[0] == 'n' || v.text[0] == 'N');
  return nan ? Cell::Word("Nan") : Cell::Text(v.text);
}

std::string DisagreementText(Verdict by_rules, const RulerCell& ruler) {
  switch (ruler.verdict) {
    case RulerVerdict::kBug:
    case RulerVerdict::kSuspicious:
      if (by_rules != Verdict::kPass) return {};
      return std::isfinite(ruler.error) ? fmt::format("passes the old rule, differs by {:.3g} %", 100 * ruler.error)
                                        : "passes the old rule, differs";
    case RulerVerdict::kBitEqual:
    case RulerVerdict::kRoundOff:
      if (by_rules == Verdict::kPass) return {};
      return fmt::format("{} by the old rule, {}", VerdictText(by_rules),
                         ruler.verdict == RulerVerdict::kBitEqual ? "bit-equal" : "within rounding");
    default: return {};
  }
}

RowColumns::RowColumns(const RowSettings& options) : options_(options), replays_(options.replays, options.target_dump) {
  const unsigned place = PlaceOf(options_);
  for (const Column& column : kColumns) {
    if (!IsShown(column.where, place)) continue;
    const auto show = [&](std::string_view title, size_t part, CurveOf curve) {
      shown_.push_back({&column, part, curve});
      titles_.emplace_back(title);
    };
    if (column.title == kEachMetric) {
      for (size_t i = 0; i < kMetricCount; ++i) show(kMetrics[i]->title, i, kMetrics[i]->curve);
    } else if (column.title == kEachCustomMetric) {
      for (size_t i = 0; i < options_.custom.size(); ++i) show(options_.custom[i], i, CurveOf::kNothing);
    } else {
      show(column.title, column.part, column.curve);
    }
  }
}

CurveOf RowColumns::curve(size_t column) const { return shown_[column].curve; }

void RowColumns::Fill(const OpDiff& op, size_t row, int stack, const Highlight* highlight, RowCells* out) const {
  const DiffRow& diff = op.rows[row];
  const ItemView* golden = diff.golden == kNoItem ? nullptr : &op.golden[static_cast<size_t>(diff.golden)];
  const RowView view{op, row, diff, op.target[row], golden, stack, options_, replays_, highlight};
  out->cells.resize(shown_.size());
  out->texts.resize(shown_.size());
  for (size_t i = 0; i < shown_.size(); ++i) {
    out->cells[i] = shown_[i].column->get(view, shown_[i].part, &out->texts[i]);
  }
}

}  // namespace msprobe
