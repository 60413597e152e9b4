#include "diagnose/replay_result.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "json/writer.h"

namespace msprobe {
namespace {

// Errors that differ by less are the same finding on both sides.
constexpr double kAlike = 2;

double Excess(const ReplayFigures& f) {
  return f.ulp == 0 ? 0 : f.limit > 0 ? f.ulp / f.limit : std::numeric_limits<double>::infinity();
}
double Excess(const ReplayedItem& item) { return std::max(Excess(item.target), Excess(item.golden)); }

ReplayVerdict VerdictOf(const ReplayedItem& item) {
  const ReplayFigures &t = item.target, &g = item.golden;
  if (t.IsRoundOff() && g.IsRoundOff()) return ReplayVerdict::kBothRoundOff;
  // As good as its dtype allows is nearer than anything that is not.
  if (t.IsRoundOff()) return ReplayVerdict::kTargetNearer;
  if (g.IsRoundOff()) return ReplayVerdict::kGoldenNearer;
  if (t.error == g.error || std::max(t.error, g.error) < kAlike * std::min(t.error, g.error))
    return ReplayVerdict::kBothFar;
  return t.error < g.error ? ReplayVerdict::kTargetNearer : ReplayVerdict::kGoldenNearer;
}

std::string FiguresText(const ReplayFigures& f) {
  if (f.ulp == 0) return "exact";
  if (!(f.ulp < std::numeric_limits<double>::infinity())) return "a different kind of value";
  return fmt::format("{:.2g} ulp of {}", f.ulp, f.dtype);
}

/// null for a number that is not known (negative, NaN); JSON has no infinity, so that is the text "inf".
void Figure(JsonWriter* json, std::string_view key, double v) {
  json->Key(key);
  v < 0 || std::isnan(v) ? json->Null() : std::isinf(v) ? json->String("inf") : json->Rounded(v, 6);
}

void WriteFigures(JsonWriter* json, const ReplayFigures& f) {
  json->BeginObject();
  json->Member("dtype", f.dtype);
  Figure(json, "error", f.error);
  Figure(json, "ulp", f.ulp);
  Figure(json, "round_off_ulp", f.limit);
  json->EndObject();
}

void WriteItem(JsonWriter* json, const ReplayedItem& item) {
  json->BeginObject();
  json->Member("item", item.item);
  json->Member("verdict", ReplayVerdictText(item.verdict));
  json->Key("target"), WriteFigures(json, item.target);
  json->Key("golden"), WriteFigures(json, item.golden);
  Figure(json, "inputs", item.inputs);
  json->EndObject();
}

}  // namespace

std::string_view ReplayVerdictText(ReplayVerdict v) {
  switch (v) {
    case ReplayVerdict::kNotReplayed: return "cannot be replayed";
    case ReplayVerdict::kBothRoundOff: return "both within round-off";
    case ReplayVerdict::kTargetNearer: return "target nearer";
    case ReplayVerdict::kGoldenNearer: return "golden nearer";
    case ReplayVerdict::kBothFar: return "both far";
  }
  return "";
}

void JudgeReplay(ReplayedOp* op) {
  if (op->items.empty()) return;
  for (ReplayedItem& item : op->items) item.verdict = VerdictOf(item);
  const auto worst =
      std::max_element(op->items.begin(), op->items.end(),
                       [](const ReplayedItem& a, const ReplayedItem& b) { return Excess(a) < Excess(b); });
  std::rotate(op->items.begin(), worst, worst + 1);
  op->verdict = op->items.front().verdict;
}

std::string ReplayText(const ReplayedOp& op) {
  std::string out(ReplayVerdictText(op.verdict));
  if (op.items.empty()) return op.why.empty() ? out : out + ": " + OneLine(op.why);
  const ReplayedItem& item = op.items.front();
  out += fmt::format(" ({}: target {}, golden {})", OneLine(item.item), FiguresText(item.target),
                     FiguresText(item.golden));
  for (const std::string& note : op.notes) out += "; " + OneLine(note);
  return out;
}

void WriteReplay(JsonWriter* json, const ReplayedOp& op) {
  json->BeginObject();
  json->Member("label", op.label);
  json->Member("op", op.name);
  json->Member("golden_op", op.golden_name);
  json->Member("verdict", ReplayVerdictText(op.verdict));
  json->Member("why", op.why);
  json->ArrayMember("items", op.items, [&](const ReplayedItem& item) { WriteItem(json, item); });
  json->Member("notes", op.notes);
  json->EndObject();
}

void WriteReplays(JsonWriter* json, const std::vector<ReplayedOp>& ops) {
  json->Array(ops, [&](const ReplayedOp& op) { WriteReplay(json, op); });
}

std::string ReplayCountsText(const std::vector<ReplayedOp>& ops) {
  static constexpr std::array kOrder{ReplayVerdict::kBothRoundOff, ReplayVerdict::kTargetNearer,
                                     ReplayVerdict::kGoldenNearer, ReplayVerdict::kBothFar,
                                     ReplayVerdict::kNotReplayed};
  std::string out = fmt::format("{} op{}", ops.size(), ops.size() == 1 ? "" : "s");
  std::string_view before = ": ";
  for (const ReplayVerdict v : kOrder) {
    const auto n = std::count_if(ops.begin(), ops.end(), [&](const ReplayedOp& op) { return op.verdict == v; });
    if (n == 0) continue;
    out += fmt::format("{}{} {}", before, n, ReplayVerdictText(v));
    before = ", ";
  }
  return out;
}

}  // namespace msprobe
