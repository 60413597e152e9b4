#include "diagnose/replay_result.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/message.h"
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

Message FiguresText(const ReplayFigures& f) {
  if (f.ulp == 0) return KnownText("exact");
  if (!(f.ulp < std::numeric_limits<double>::infinity())) return Msg("a different kind of value");
  return Message(fmt::format("{:.2g} ulp of {}", f.ulp, f.dtype));
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

Message ReplayText(const ReplayedOp& op) {
  if (op.items.empty()) {
    return op.why.empty() ? KnownText(ReplayVerdictText(op.verdict)) : Msg("cannot be replayed: {}", OneLined(op.why));
  }
  const ReplayedItem& item = op.items.front();
  const Message figures =
      Msg("{}: target {}, golden {}", OneLine(item.item), FiguresText(item.target), FiguresText(item.golden));
  std::vector<Message> out;
  switch (op.verdict) {
    case ReplayVerdict::kTargetNearer: out.push_back(Msg("target nearer ({})", figures)); break;
    case ReplayVerdict::kGoldenNearer: out.push_back(Msg("golden nearer ({})", figures)); break;
    case ReplayVerdict::kBothFar: out.push_back(Msg("both far ({})", figures)); break;
    default: out.push_back(Msg("{} ({})", KnownText(ReplayVerdictText(op.verdict)), figures));
  }
  for (const Message& note : op.notes) out.push_back(OneLined(note));
  return Joined(out, Msg("; "));
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

Message ReplayCountsText(const std::vector<ReplayedOp>& ops) {
  const auto count = [&](ReplayVerdict v) {
    return std::count_if(ops.begin(), ops.end(), [&](const ReplayedOp& op) { return op.verdict == v; });
  };
  std::vector<Message> parts;
  const auto add = [&](std::ptrdiff_t n, const Message& text) {
    if (n > 0) parts.push_back(text);
  };
  const auto round_off = count(ReplayVerdict::kBothRoundOff), target = count(ReplayVerdict::kTargetNearer),
             golden = count(ReplayVerdict::kGoldenNearer), far = count(ReplayVerdict::kBothFar),
             none = count(ReplayVerdict::kNotReplayed);
  add(round_off, Msg("{} both within round-off", round_off));
  add(target, Msg("{} target nearer", target));
  add(golden, Msg("{} golden nearer", golden));
  add(far, Msg("{} both far", far));
  add(none, Msg("{} cannot be replayed", none));
  const Message all = ops.size() == 1 ? Msg("{} op", ops.size()) : Msg("{} ops", ops.size());
  return parts.empty() ? all : Msg("{}: {}", all, Joined(parts, Msg(", ")));
}

}  // namespace msprobe
