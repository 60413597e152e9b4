// The report for people and for programs.
#include <fmt/core.h>

#include <array>

#include "base/text.h"
#include "diagnose/overflow.h"

namespace msprobe {
namespace {

using Kind = OverflowSource::Kind;
constexpr size_t kShownRanks = 8;

std::string_view KindName(Kind kind) {
  static constexpr std::array<std::string_view, 7> kNames{
      "op", "communication", "parameter", "input", "uninitialised", "missing_rank", "mask"};
  return kNames[static_cast<size_t>(kind)];
}

/// Without the dot in front.
std::string Bare(const std::string& item) { return item.empty() ? item : item.substr(1); }

std::string Plural(size_t n, std::string_view what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

std::string RanksText(const std::vector<OverflowOp>& ops) {
  std::string out = ops.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ops.size() && i < kShownRanks; ++i)
    out.append(i ? ", " : "").append(std::to_string(ops[i].rank));
  return ops.size() > kShownRanks ? out + ", ..." : out;
}

/// One sentence: what happened at the op.
std::string Why(const OverflowFinding& f) {
  const std::string item = Bare(f.item);
  switch (f.kind) {
    case Kind::kParameter: return fmt::format("{} is bad: {}", item, f.history);
    case Kind::kInput: {
      std::string why =
          fmt::format("{} is bad, and no op of the dump made it: {}", item,
                      f.leaf_grad ? "a parameter, or an op that is not recorded"
                                  : "the data, memory that was never written, or an op that is not recorded");
      if (!f.before.empty()) why += fmt::format(" (the last one before it of that shape is {})", f.before);
      return why;
    }
    case Kind::kUninitialised: return fmt::format("it reads memory of {} that was never written", f.reader);
    case Kind::kMissingRank: return "received from a rank whose dump is not here: add it";
    case Kind::kCommunication:
      return Contains(f.ops[0].name, "reduce")
                 ? "what every rank puts in is clean, the result is not: the reduction itself overflows"
                 : "what the sender gives is clean, what arrives is not";
    default: break;
  }
  if (!f.mask.empty()) return fmt::format("it makes NaN of the -inf of {}: is a whole row masked?", f.mask);
  if (f.constant) return "an argument of it is NaN or infinite";
  return "its inputs are clean, its output is not";
}

void Line(std::string* out, std::string_view label, const std::string& text) {
  *out += fmt::format("  {:<10} {}\n", label, OneLine(text));
}

std::string PlaceText(const OverflowOp& op) { return op.frame + (op.function.empty() ? "" : " in " + op.function); }

void Consequences(std::string* out, const OverflowFinding& f) {
  std::string then = fmt::format("{} carried it on, {} absorbed it", Plural(f.carriers, "op"), f.absorbers);
  if (f.absorbed) then += ", nothing of it was left";
  Line(out, "then", then);
  if (!f.absorbed_at.empty()) Line(out, "absorbed", fmt::format("first by {}", f.absorbed_at[0].name));
  for (size_t i = 0; i < f.reached.size() && i < kShownRanks; ++i) {
    Line(out, i ? "" : "reached", fmt::format("rank {} through {}", f.reached[i].rank, f.reached[i].name));
  }
  if (f.reached.size() > kShownRanks)
    Line(out, "", fmt::format("and {} more", Plural(f.reached.size() - kShownRanks, "rank")));
}

void Near(std::string* out, const std::vector<OverflowFinding::Near>& near) {
  for (size_t i = 0; i < near.size() && i < kShownRanks; ++i) {
    Line(out, i ? "" : "warning",
         fmt::format("{}{} on rank {} is within a factor {:.3g} of overflow", near[i].op.name, near[i].item,
                     near[i].op.rank, near[i].margin));
  }
}

void FindingText(std::string* out, const OverflowFinding& f) {
  const OverflowOp& op = f.ops[0];
  *out +=
      fmt::format("{}: {} on {}\n", f.absorbed ? "Absorbed" : "First to go wrong", OneLine(op.name), RanksText(f.ops));
  Line(out, "why", Why(f));
  if (!op.module.empty()) Line(out, "inside", op.module);
  if (!op.frame.empty()) Line(out, "at", PlaceText(op));
  if (f.kind == Kind::kParameter) Line(out, f.item.substr(f.item.find_last_of('.') + 1), f.item_text);
  for (const auto& [item, text] : f.inputs) {
    if (f.kind != Kind::kParameter || item != f.item) Line(out, Bare(item), text);
  }
  for (const auto& [item, text] : f.outputs) Line(out, Bare(item), text);
  Near(out, f.near);
  Consequences(out, f);
}

// ---- JSON ---------------------------------------------------------------------------------------------------------

class Json {
 public:
  Json& Key(std::string_view key) {
    Comma();
    AppendJsonString(out_, key);
    out_ += ": ";
    fresh_ = true;
    return *this;
  }
  void Text(std::string_view text) { Comma(), AppendJsonString(out_, text); }
  void Int(size_t n) { Comma(), out_ += std::to_string(n); }
  void Number(double v) { Comma(), AppendJsonNumber(out_, v); }
  void Bool(bool v) { Comma(), out_ += v ? "true" : "false"; }
  void Begin(char c) { Comma(), out_ += c, fresh_ = true; }
  void End(char c) { out_ += c, fresh_ = false; }
  std::string Take() { return std::move(out_); }

 private:
  void Comma() {
    if (!fresh_) out_ += ", ";
    fresh_ = false;
  }
  std::string out_;
  bool fresh_ = true;
};

void OpJson(Json* j, const OverflowOp& op) {
  j->Begin('{');
  j->Key("rank").Int(static_cast<size_t>(op.rank));
  j->Key("op").Text(op.name);
  if (!op.module.empty()) j->Key("module").Text(op.module);
  if (!op.frame.empty()) j->Key("line").Text(op.frame);
  if (!op.function.empty()) j->Key("function").Text(op.function);
  j->End('}');
}

void OpsJson(Json* j, std::string_view key, const std::vector<OverflowOp>& ops) {
  j->Key(key).Begin('[');
  for (const OverflowOp& op : ops) OpJson(j, op);
  j->End(']');
}

void ItemsJson(Json* j, std::string_view key, const std::vector<std::pair<std::string, std::string>>& items) {
  j->Key(key).Begin('{');
  for (const auto& [item, text] : items) j->Key(Bare(item)).Text(text);
  j->End('}');
}

void NearJson(Json* j, std::string_view key, const std::vector<OverflowFinding::Near>& near) {
  j->Key(key).Begin('[');
  for (const auto& n : near) {
    j->Begin('{');
    j->Key("rank").Int(static_cast<size_t>(n.op.rank));
    j->Key("op").Text(n.op.name);
    j->Key("item").Text(Bare(n.item));
    j->Key("margin").Number(n.margin);
    j->End('}');
  }
  j->End(']');
}

void FindingJson(Json* j, const OverflowFinding& f) {
  j->Begin('{');
  j->Key("kind").Text(KindName(f.kind));
  OpsJson(j, "ops", f.ops);
  j->Key("why").Text(Why(f));
  if (!f.reader.empty()) j->Key("other_op").Text(f.reader);
  if (!f.item.empty()) j->Key("item").Text(Bare(f.item));
  if (!f.item_text.empty()) j->Key("value").Text(f.item_text);
  if (!f.mask.empty()) j->Key("mask").Text(f.mask);
  if (!f.before.empty()) j->Key("last_of_that_shape").Text(f.before);
  ItemsJson(j, "inputs", f.inputs);
  ItemsJson(j, "outputs", f.outputs);
  NearJson(j, "near_overflow", f.near);
  j->Key("carriers").Int(f.carriers);
  j->Key("absorbers").Int(f.absorbers);
  j->Key("absorbed").Bool(f.absorbed);
  OpsJson(j, "absorbed_at", f.absorbed_at);
  OpsJson(j, "reached", f.reached);
  j->Key("links").Begin('{');
  j->Key("same_tensor").Int(f.by_identity);
  j->Key("same_statistics").Int(f.by_statistics);
  j->Key("same_shape").Int(f.by_shape);
  j->Key("by_order").Int(f.by_order);
  j->End('}');
  j->End('}');
}

}  // namespace

std::string OverflowText(const OverflowReport& report, const std::string& file) {
  // The first three lines are those that scripts around the older tool look for.
  std::string out = "Start searching anomaly node before communication.\n";
  const bool nothing = report.first.empty();
  if (nothing || report.phase != OverflowReport::Phase::kBefore)
    out += "Start searching anomaly node during communication.\n";
  if (nothing || report.phase == OverflowReport::Phase::kAfter)
    out += "Start searching anomaly node after communication.\n";
  if (nothing) {
    Near(&out, report.near);
    out += fmt::format("{}, {} looked at: no op gives NaN or an infinity", Plural(report.steps, "step"),
                       Plural(report.ranks, "rank"));
    if (report.masks) out += fmt::format("; {} of -inf are masks", Plural(report.masks, "source"));
    return out + "\nCannot find any anomaly node, no need to generate analyze file.\n";
  }
  if (!report.step.empty()) {
    out += fmt::format("{}, {}", report.step, Plural(report.ranks, "rank"));
    if (report.steps > 1 && !report.first[0].absorbed)
      out += fmt::format("; the {} before are clean", Plural(report.steps - 1, "step"));
    out += "\n";
  }
  for (const OverflowFinding& f : report.first) FindingText(&out, f);
  for (const OverflowFinding& f : report.absorbed) FindingText(&out, f);
  return out + "The analyze result is saved in: " + OneLine(file) + "\n";
}

std::string OverflowJson(const OverflowReport& report, const std::string& file) {
  Json j;
  j.Begin('{');
  j.Key("input").Text(report.input);
  j.Key("step").Text(report.step);
  j.Key("steps").Int(report.steps);
  j.Key("ranks").Int(report.ranks);
  j.Key("found").Bool(!report.first.empty());
  for (const auto& [key, list] : {std::pair("first", &report.first), std::pair("absorbed", &report.absorbed)}) {
    j.Key(key).Begin('[');
    for (const OverflowFinding& f : *list) FindingJson(&j, f);
    j.End(']');
  }
  j.Key("masks").Int(report.masks);
  NearJson(&j, "near_overflow", report.near);
  j.Key("warnings").Begin('[');
  for (const std::string& w : report.warnings) j.Text(w);
  j.End(']');
  j.Key("result_file").Text(file);
  j.End('}');
  return j.Take() + "\n";
}

}  // namespace msprobe
