#include "weights/fingerprint/print_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/message.h"
#include "base/text.h"
#include "judgement/judgement_json.h"

namespace msprobe {
namespace {

constexpr size_t kMostLines = 30, kMostInLine = 3;

/// With the heads that the range fills, if it does.
Message RowsText(const PrintDiff& diff, const PrintRange& rows) {
  Message out = rows.end - rows.begin == 1 ? Msg("row {}", rows.begin) : Msg("rows {} to {}", rows.begin, rows.end - 1);
  if (diff.head_rows == 0 || rows.begin % diff.head_rows != 0 || rows.end % diff.head_rows != 0) return out;
  const int64_t first = rows.begin / diff.head_rows, last = rows.end / diff.head_rows - 1;
  out += first == last ? Msg(" (head {})", first) : Msg(" (heads {} to {})", first, last);
  return out;
}

Message MovedText(const PrintDiff& diff) {
  std::vector<Message> parts;
  for (const MovedRows& moved : diff.moved) {
    if (parts.size() == kMostInLine) break;
    const PrintRange from{moved.from_row, moved.from_row + moved.rows.end - moved.rows.begin};
    const Message here = RowsText(diff, moved.rows);
    const Message there = RowsText(diff, from);
    parts.push_back(moved.from == diff.a ? Msg("{} are {} of A", here, there)
                                         : Msg("{} are {} of {} of A", here, there, OneLine(moved.from)));
  }
  return Joined(parts, Message(", "));
}

Message DifferText(const PrintDiff& diff) {
  std::vector<Message> parts;
  for (const PrintRange& rows : diff.ranges) {
    if (parts.size() == kMostInLine) break;
    parts.push_back(RowsText(diff, rows));
  }
  const bool more = diff.ranges.size() > parts.size();
  Message out = diff.differ == diff.rows ? Msg("all {} rows differ", diff.rows)
                                         : Msg("{} of {} rows differ: {}{}", diff.differ, diff.rows,
                                               Joined(parts, Message(", ")), Message(more ? ", ..." : ""));
  if (!diff.earlier.empty()) out += Msg("; B is as in {}", OneLine(diff.earlier));
  if (!diff.moved.empty()) out += Msg("; {}", MovedText(diff));
  return out;
}

Message WhyText(NoPrint none) {
  switch (none) {
    case NoPrint::kCutInWord: return Msg("its shards are cut inside of 8 bytes");
    case NoPrint::kScattered: return Msg("its shards are no rectangles of rows and columns");
    case NoPrint::kNoValues: return Msg("its values were not there");
    case NoPrint::kNoHeads:
      return Msg("its shards fuse q, k and v, and nothing says how many heads there are (config=)");
    case NoPrint::kNone: break;
  }
  return {};
}

JudgementKind KindOf(PrintVerdict v) {
  switch (v) {
    case PrintVerdict::kEqual: return JudgementKind::kBitEqual;
    case PrintVerdict::kOtherPrecision:
    case PrintVerdict::kCannot: return JudgementKind::kCannotSay;
    case PrintVerdict::kNotSeen: return JudgementKind::kNotSeen;
    case PrintVerdict::kOnlyA:
    case PrintVerdict::kOnlyB:
    case PrintVerdict::kShape: return JudgementKind::kSuspicious;
    case PrintVerdict::kCopies:
    case PrintVerdict::kDiffers: return JudgementKind::kBug;
  }
  return JudgementKind::kCannotSay;
}

Message LabelOf(const PrintDiff& diff) {
  const std::string a = OneLine(diff.a), b = OneLine(diff.b);
  return Message(a.empty() ? b : b.empty() || a == b ? a : a + " | " + b);
}

void WriteRange(const PrintRange& rows, JsonWriter* json) {
  json->BeginArray();
  json->Int(rows.begin);
  json->Int(rows.end);
  json->EndArray();
}

void WriteWeight(const PrintDiff& d, JsonWriter* json) {
  json->BeginObject();
  json->Member("role", d.role);
  json->Member("a", d.a);
  json->Member("b", d.b);
  json->Member("verdict", PrintVerdictText(d.verdict));
  json->Member("dtype_a", DTypeName(d.dtype_a));
  json->Member("dtype_b", DTypeName(d.dtype_b));
  json->Member("shape_a", d.shape_a);
  json->Member("shape_b", d.shape_b);
  json->Member("rows", d.rows);
  json->Member("seen", d.seen);
  json->Member("differ", d.differ);
  json->ArrayMember("ranges", d.ranges, [&](const PrintRange& rows) { WriteRange(rows, json); });
  json->ArrayMember("moved", d.moved, [&](const MovedRows& moved) {
    json->BeginObject();
    json->Key("rows");
    WriteRange(moved.rows, json);
    json->Member("from", moved.from);
    json->Member("from_row", moved.from_row);
    json->EndObject();
  });
  json->Member("earlier", d.earlier);
  json->Member("sentence", SentenceOf(d));
  json->EndObject();
}

void WriteSide(std::string_view key, const WholeModel& m, JsonWriter* json) {
  json->ObjectMember(key, [&] {
    json->Member("path", m.path);
    json->Member("name", m.name);
    json->Member("kind", m.kind);
    if (m.step >= 0) json->Member("step", m.step);
    json->Member("ranks", m.ranks);
    json->Member("world", m.world);
    json->Member("weights", m.weights.size());
  });
}

}  // namespace

Message SentenceOf(const PrintDiff& diff) {
  std::vector<Message> parts;
  switch (diff.verdict) {
    case PrintVerdict::kEqual: parts.push_back(Msg("bit-equal")); break;
    case PrintVerdict::kOtherPrecision:
      parts.push_back(
          Msg("other precision: {} and {}, of which bits say nothing; make the fingerprint of one with the type "
              "of the other (dtype=, --dtype)",
              DTypeName(diff.dtype_a), DTypeName(diff.dtype_b)));
      break;
    case PrintVerdict::kCannot: parts.push_back(Msg("cannot be compared")); break;
    case PrintVerdict::kNotSeen:
      parts.push_back(diff.a.empty() || diff.b.empty()
                          ? Msg("not seen: it is not in what was given of {}", diff.a.empty() ? "A" : "B")
                          : Msg("not seen: {} of {} rows can be compared, and they are equal; give all ranks",
                                diff.seen, diff.rows));
      break;
    case PrintVerdict::kOnlyA: parts.push_back(Msg("only in {}", "A")); break;
    case PrintVerdict::kOnlyB: parts.push_back(Msg("only in {}", "B")); break;
    case PrintVerdict::kShape:
      parts.push_back(Msg("shape {} against {}", ShapeText(diff.shape_a), ShapeText(diff.shape_b)));
      break;
    case PrintVerdict::kCopies:
      parts.push_back(Msg("ranks {} and {} hold different copies of row {}", diff.copies->rank_a, diff.copies->rank_b,
                          diff.copies->row));
      break;
    case PrintVerdict::kDiffers: parts.push_back(DifferText(diff)); break;
  }
  if (const Message why = WhyText(diff.none); !why.empty()) parts.push_back(why);
  for (const Message& note : diff.notes) parts.push_back(note);
  return Joined(parts, Message("; "));
}

std::vector<Judgement> JudgementsOf(const PrintComparison& comparison) {
  std::vector<Judgement> out;
  for (const PrintDiff& diff : comparison.weights) {
    Judgement& one = out.emplace_back();
    one.kind = KindOf(diff.verdict);
    one.about = LabelOf(diff);
    one.evidence.push_back(SentenceOf(diff));
    one.basis = Msg("a copy has the same bits");
    if (diff.verdict == PrintVerdict::kNotSeen) one.not_seen.push_back(SentenceOf(diff));
  }
  return out;
}

Message PrintsText(const WholeModel& a, const WholeModel& b, const PrintComparison& comparison, bool all) {
  Message out;
  for (const auto& [side, m] : {std::pair{"A", &a}, {"B", &b}}) {
    out += Msg("{} {}: {} weights, {} of {} ranks\n", side, OneLine(m->path), m->weights.size(), m->ranks, m->world);
  }
  const Conclusion conclusion = Conclude(JudgementsOf(comparison));
  if (conclusion.kind != JudgementKind::kBitEqual) out += Msg("{}\n", HeadlineOf(conclusion));
  std::vector<const PrintDiff*> shown;
  for (const PrintDiff& diff : comparison.weights) {
    if (all || diff.verdict != PrintVerdict::kEqual) shown.push_back(&diff);
  }
  std::stable_sort(shown.begin(), shown.end(), [](const PrintDiff* x, const PrintDiff* y) {
    return IsFinding(x->verdict) > IsFinding(y->verdict);
  });
  out += Msg("{} of {} weights are bit-equal\n", comparison.Count(PrintVerdict::kEqual), comparison.weights.size());
  for (size_t i = 0; i < shown.size() && (all || i < kMostLines); ++i) {
    out += Msg("  {}: {}\n", LabelOf(*shown[i]), SentenceOf(*shown[i]));
  }
  if (!all && shown.size() > kMostLines) out += Msg("  ... {} more: --all, or -o FILE\n", shown.size() - kMostLines);
  if (!comparison.left_out.empty()) {
    out += Msg("note: {} buffers are on one side only, {} among them: they are no weights\n",
               comparison.left_out.size(), OneLine(comparison.left_out[0]));
  }
  return out;
}

std::string PrintsJson(const WholeModel& a, const WholeModel& b, const PrintComparison& comparison) {
  std::string out;
  JsonWriter json(&out, kJsonIndented);
  json.BeginObject();
  WriteSide("a", a, &json);
  WriteSide("b", b, &json);
  size_t findings = 0, open = 0;
  for (const PrintDiff& d : comparison.weights) {
    findings += IsFinding(d.verdict) ? 1 : 0;
    open += !IsFinding(d.verdict) && d.verdict != PrintVerdict::kEqual ? 1 : 0;
  }
  json.Member("equal", comparison.Count(PrintVerdict::kEqual));
  json.Member("different", findings);
  json.Member("undecided", open);
  json.ArrayMember("weights", comparison.weights, [&](const PrintDiff& d) { WriteWeight(d, &json); });
  json.Member("left_out", comparison.left_out);
  WriteConclusion(Conclude(JudgementsOf(comparison)), &json);
  json.EndObject();
  return out + "\n";
}

}  // namespace msprobe
