// msprobe ckpt: what a checkpoint holds, and how far two are apart.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "cli/context/fail_on.h"
#include "cli/context/register_commands.h"
#include "json/writer.h"
#include "judgement/judgement_json.h"
#include "report/document.h"
#include "weights/causes/weight_causes.h"
#include "weights/convert/convert.h"
#include "weights/name_map.h"
#include "weights/open_checkpoint.h"
#include "weights/weight_diff.h"

namespace msprobe {
namespace {

struct CkptArgs {
  std::string a, b, output, map, map_out, html;
  bool all = false, optimizer = false, exact = false;
};

constexpr size_t kMostShown = 30;

std::string PlaceText(const Checkpoint& a, const Checkpoint& b, const WeightPair& pair, const WeightPlace& place) {
  std::string out = fmt::format("A {}{}", pair.a.name, ShapeText(place.a));
  if (!place.part.empty()) out += fmt::format(" ({})", place.part);
  out += fmt::format(" = {}", PyRepr(place.value_a));
  out += fmt::format(" in {}", a.files[static_cast<size_t>(place.file_a)].path);
  out += fmt::format("; B {}{}", pair.b.name, ShapeText(place.b));
  out += fmt::format(" = {}", PyRepr(place.value_b));
  return out + fmt::format(" in {}", b.files[static_cast<size_t>(place.file_b)].path);
}

void WritePlace(const Checkpoint& a, const Checkpoint& b, std::string_view key, const std::optional<WeightPlace>& place,
                JsonWriter* json) {
  if (!place) return;
  json->ObjectMember(key, [&] {
    json->Member("index_a", place->a);
    json->Member("index_b", place->b);
    json->Member("part", place->part);
    json->Member("file_a", a.files[static_cast<size_t>(place->file_a)].path);
    json->Member("file_b", b.files[static_cast<size_t>(place->file_b)].path);
    json->Member("a", place->value_a);
    json->Member("b", place->value_b);
  });
}

void WriteDiff(const Checkpoint& a, const Checkpoint& b, const WeightPair& pair, const WeightDiff& diff,
               const Message& how, bool exact, JsonWriter* json) {
  json->BeginObject();
  json->Member("a", pair.a.label());
  json->Member("b", pair.b.label());
  json->Member("matched_by", MatchedByText(pair.by));
  json->Member("note", pair.note);
  json->Member("dtype_a", DTypeName(pair.a.dtype));
  json->Member("dtype_b", DTypeName(pair.b.dtype));
  json->Member("shape_a", pair.a.shape);
  json->Member("shape_b", pair.b.shape);
  const bool no_copy = exact && diff.verdict == WeightVerdict::kRoundOff;
  json->Member("verdict", WeightVerdictText(no_copy ? WeightVerdict::kDiffers : diff.verdict));
  if (!how.empty()) json->Member("how", how);
  if (pair.same_shape) {
    json->Member("elements", diff.count);
    json->Member("equal_share", diff.count > 0 ? static_cast<double>(diff.equal) / static_cast<double>(diff.count) : 1);
    json->Member("l2", diff.l2);
    json->Member("cosine", diff.cosine);
    json->Member("max_abs", diff.max_abs);
    json->Member("max_rel", diff.max_rel);
    json->Member("max_ulp", diff.max_ulp);
    json->Member("required_tolerance", diff.tolerance);
    json->Member("relative_error", diff.error);
    json->Member("allowed", diff.allowed);
  }
  WritePlace(a, b, "first", diff.first, json);
  WritePlace(a, b, "worst", diff.worst, json);
  json->EndObject();
}

struct CkptResult {
  Checkpoint a, b;
  NameMap map;
  std::vector<WeightDiff> diffs;
  std::vector<Message> causes;      // of the pairs
  std::vector<std::string> copies;  // names of tensors whose copies on other ranks differ
  bool exact = false;               // B is to be a copy of A

  bool IsFinding(WeightVerdict v) const { return exact ? v != WeightVerdict::kBitEqual : IsDifferent(v); }
  size_t different() const {
    return static_cast<size_t>(
        std::count_if(diffs.begin(), diffs.end(), [&](const WeightDiff& d) { return IsFinding(d.verdict); }));
  }
};

JudgementKind KindOf(WeightVerdict v) {
  switch (v) {
    case WeightVerdict::kBitEqual: return JudgementKind::kBitEqual;
    case WeightVerdict::kEqual:
    case WeightVerdict::kRounded:
    case WeightVerdict::kRoundOff: return JudgementKind::kRoundOff;
    case WeightVerdict::kDiffers:
    case WeightVerdict::kShape: return JudgementKind::kSuspicious;
    case WeightVerdict::kNotNumbers: return JudgementKind::kBug;
  }
  return JudgementKind::kCannotSay;
}

/// What keeps a pair from being a copy. There is no round-off between a weight and its copy.
Message ExactText(const CkptResult& r, size_t i) {
  const WeightDiff& d = r.diffs[i];
  const WeightPair& pair = r.map.pairs[i];
  switch (d.verdict) {
    case WeightVerdict::kEqual:
      return pair.a.dtype == pair.b.dtype
                 ? Msg("zeros have another sign")
                 : Msg("the same values in another type: {} and {}", DTypeName(pair.a.dtype), DTypeName(pair.b.dtype));
    case WeightVerdict::kRounded: return Msg("other precision: one side is the other rounded to its type");
    case WeightVerdict::kShape: return Msg("shape");
    case WeightVerdict::kNotNumbers: return Msg("not finite");
    default: break;
  }
  const int64_t differ = d.count - d.equal;
  return d.first ? Msg("no copy: {} of {} elements differ, the first at {}", differ, d.count, ShapeText(d.first->a))
                 : Msg("no copy: {} of {} elements differ", differ, d.count);
}

std::vector<Judgement> JudgementsOf(const CkptResult& r) {
  std::vector<Judgement> out;
  const auto add = [&](JudgementKind kind, const std::string& about, Message evidence) {
    Judgement& one = out.emplace_back();
    one.kind = kind;
    one.about = Message(OneLine(about));
    one.evidence.push_back(std::move(evidence));
    one.basis = r.exact ? Msg("a copy has the same bits") : Msg("what rounding to its type explains");
  };
  for (size_t i = 0; i < r.diffs.size(); ++i) {
    const WeightVerdict verdict = r.diffs[i].verdict;
    if (r.exact && r.IsFinding(verdict)) {
      add(JudgementKind::kBug, r.map.pairs[i].a.label(), ExactText(r, i));
      continue;
    }
    add(KindOf(verdict), r.map.pairs[i].a.label(), KnownText(WeightVerdictText(verdict)));
    if (!r.causes[i].empty()) out.back().evidence.push_back(r.causes[i]);
    if (r.diffs[i].allowed > 0 && !r.exact) out.back().figure = r.diffs[i].error / r.diffs[i].allowed;
  }
  for (const auto& [side, only] : {std::pair{"A", &r.map.only_a}, {"B", &r.map.only_b}}) {
    for (const WeightTensor& t : *only) add(JudgementKind::kSuspicious, t.label(), Msg("only in {}", side));
  }
  for (const std::string& name : r.copies)
    add(JudgementKind::kSuspicious, name, Msg("its copies on other ranks differ"));
  return out;
}

std::string ResultJson(const CkptResult& r) {
  std::string out;
  JsonWriter json(&out, kJsonIndented);
  json.BeginObject();
  for (const auto& [key, c] : {std::pair{"a", &r.a}, {"b", &r.b}}) {
    json.ObjectMember(key, [&, side = c] {
      json.Member("path", side->path);
      json.Member("format", side->format);
      json.Member("tensors", side->tensors.size());
      json.Member("notes", side->notes);
    });
  }
  json.Member("notes", r.map.notes);
  json.Member("exact", r.exact);
  json.Member("different", r.different());
  json.Member("copies_that_differ", r.copies);
  json.ArrayMember("only_a", r.map.only_a, [&](const WeightTensor& t) { json.Value(t.label()); });
  json.ArrayMember("only_b", r.map.only_b, [&](const WeightTensor& t) { json.Value(t.label()); });
  json.Key("weights");
  json.BeginArray();
  for (size_t i = 0; i < r.diffs.size(); ++i) {
    WriteDiff(r.a, r.b, r.map.pairs[i], r.diffs[i], r.causes[i], r.exact, &json);
  }
  json.EndArray();
  WriteConclusion(Conclude(JudgementsOf(r)), &json);
  json.EndObject();
  return out + "\n";
}

Message PairLine(const CkptResult& r, size_t i) {
  const WeightPair& pair = r.map.pairs[i];
  const WeightDiff& d = r.diffs[i];
  const bool no_copy = r.exact && d.verdict == WeightVerdict::kRoundOff;
  std::string out = fmt::format("  {}", pair.a.label());
  if (pair.a.label() != pair.b.label()) out += " | " + pair.b.label();
  out += fmt::format(": {}", WeightVerdictText(no_copy ? WeightVerdict::kDiffers : d.verdict));
  if (!pair.note.empty()) out += " (" + pair.note + ")";
  if (!pair.same_shape) return Message(out + " " + ShapeText(pair.a.shape) + " | " + ShapeText(pair.b.shape) + "\n");
  if (d.verdict != WeightVerdict::kBitEqual) {
    out += fmt::format(", l2 {:.6g}, max abs {:.6g}, {:.6g} ulp, equal {} of {}", d.l2, d.max_abs, d.max_ulp, d.equal,
                       d.count);
  }
  out += "\n";
  if (d.first) out += "    first: " + PlaceText(r.a, r.b, pair, *d.first) + "\n";
  if (d.worst && d.first && d.worst->a != d.first->a) out += "    worst: " + PlaceText(r.a, r.b, pair, *d.worst) + "\n";
  Message lines(out);
  if (!r.causes[i].empty()) lines += Msg("    how: {}\n", r.causes[i]);
  return lines;
}

Message ResultText(const CkptResult& r, bool all) {
  Message out = Msg("A {}: {}, {} tensors\nB {}: {}, {} tensors\n", r.a.path, r.a.format, r.a.tensors.size(), r.b.path,
                    r.b.format, r.b.tensors.size());
  std::map<WeightVerdict, size_t> verdicts;
  std::map<MatchedBy, size_t> ways;
  for (size_t i = 0; i < r.diffs.size(); ++i) {
    const WeightVerdict verdict = r.diffs[i].verdict;
    ++verdicts[r.exact && verdict == WeightVerdict::kRoundOff ? WeightVerdict::kDiffers : verdict];
    ++ways[r.map.pairs[i].by];
  }
  std::string counts, by;
  for (const auto& [verdict, count] : verdicts)
    counts += fmt::format("{}{} {}", counts.empty() ? "" : " ", count, WeightVerdictText(verdict));
  for (const auto& [way, count] : ways) by += fmt::format("{}{} {}", by.empty() ? "" : " ", MatchedByText(way), count);
  out += r.diffs.empty() ? Message("0 pairs:\nmatched by:\n")
                         : Msg("{} pairs: {}\nmatched by: {}\n", r.diffs.size(), counts, by);
  for (const auto* notes : {&r.a.notes, &r.b.notes, &r.map.notes}) {
    for (const Message& note : *notes) out += Msg("note: {}\n", note);
  }
  size_t shown = 0;
  for (size_t i = 0; i < r.diffs.size(); ++i) {
    if (!all && r.diffs[i].verdict == WeightVerdict::kBitEqual) continue;
    if (!all && ++shown > kMostShown) continue;
    out += PairLine(r, i);
  }
  if (shown > kMostShown) out += Msg("  ... {} more: --all, or -o FILE\n", shown - kMostShown);
  for (const auto& [side, only] : {std::pair{"A", &r.map.only_a}, {"B", &r.map.only_b}}) {
    for (const WeightTensor& t : *only) out += Msg("  only in {}: {} {}\n", side, t.label(), ShapeText(t.shape));
  }
  for (const std::string& name : r.copies) out += Msg("  copies on other ranks differ: {}\n", name);
  return out;
}

/// Copies of a tensor on other ranks that are not the same.
Status CheckCopies(const Checkpoint& c, std::vector<std::string>* out) {
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < c.tensors.size(); ++i) places.emplace(c.tensors[i].name, i);
  std::vector<WeightPair> pairs;
  for (const WeightTensor& copy : c.copies) {
    const auto found = places.find(copy.name);
    if (found == places.end()) continue;
    const WeightTensor& own = c.tensors[found->second];
    pairs.push_back({own, copy, MatchedBy::kName, own.shape == copy.shape, "", found->second, found->second});
  }
  MSP_ASSIGN_OR_RETURN(const std::vector<WeightDiff> diffs, CompareWeights(c, c, pairs));
  for (size_t i = 0; i < diffs.size(); ++i) {
    if (diffs[i].verdict != WeightVerdict::kBitEqual) out->push_back(c.path + ": " + pairs[i].b.name);
  }
  return OkStatus();
}

Status WriteText(const std::string& path, const std::string& text) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(text));
  return file.Commit();
}

Status WriteCkptPage(const CkptResult& r, const std::string& path) {
  ReportDocument page = DocumentOf(Conclude(JudgementsOf(r)), "checkpoints");
  for (const auto& [side, c] : {std::pair{"A", &r.a}, {"B", &r.b}}) {
    page.lines.push_back(Both(Msg("{}  {}: {}, {} tensors", side, OneLine(c->path), c->format, c->tensors.size())));
  }
  for (const auto* notes : {&r.a.notes, &r.b.notes, &r.map.notes}) {
    for (const Message& note : *notes) page.lines.push_back(Both(OneLined(note)));
  }
  return WriteDocument(page, path).status();
}

void NoteFileAlone(CkptResult* r) {
  const auto alone =
      std::find_if(r->diffs.begin(), r->diffs.end(), [](const WeightDiff& d) { return d.file_alone.has_value(); });
  if (alone == r->diffs.end()) return;
  const std::string& file = r->a.files[static_cast<size_t>(*alone->file_alone)].path;
  std::string other;
  if (alone->first) other = r->b.files[static_cast<size_t>(alone->first->file_b)].path;
  r->map.notes.push_back(
      Msg("nothing in {} is bit-equal, and all that lies in other files is: it, or {}, is of another step (stale)",
          file, other.empty() ? r->b.path : other));
}

/// Numbers beside the states that both sides keep under one name; a group that only one has shows by its learning rate.
void TakeSettings(CkptResult* r) {
  std::map<std::string_view, int> sides;
  for (const WeightTensor& t : r->a.settings) sides[t.name] |= 1;
  for (const WeightTensor& t : r->b.settings) sides[t.name] |= 2;
  const auto is_rate = [](std::string_view name) { return name.ends_with(".lr"); };
  const bool groups =
      std::any_of(sides.begin(), sides.end(), [&](auto& s) { return s.second == 3 && is_rate(s.first); });
  for (Checkpoint* c : {&r->a, &r->b}) {
    for (const WeightTensor& t : c->settings) {
      if (sides[t.name] == 3 || (groups && is_rate(t.name))) c->tensors.push_back(t);
    }
  }
}

Status RunCkptCompare(const CkptArgs& args, const CommandContext& context) {
  CkptResult r;
  r.exact = args.exact;
  MSP_ASSIGN_OR_RETURN(r.a, OpenCheckpoint(args.a));
  MSP_ASSIGN_OR_RETURN(r.b, OpenCheckpoint(args.b));
  if (args.optimizer) {
    r.a.tensors = std::move(r.a.optimizer);
    r.b.tensors = std::move(r.b.optimizer);
    TakeSettings(&r);
  }
  std::optional<MapFile> file;
  if (!args.map.empty()) {
    MSP_ASSIGN_OR_RETURN(file, ReadMapFile(args.map));
  }
  MSP_ASSIGN_OR_RETURN(r.map, MatchWeights(&r.a, &r.b, file ? &*file : nullptr));
  LeaveOutCounts(r.a, r.b, &r.map);
  MSP_ASSIGN_OR_RETURN(r.diffs, CompareWeights(r.a, r.b, r.map.pairs));
  r.causes = CausesOf(r.a, r.map.pairs, r.diffs);
  NoteFileAlone(&r);
  if (!args.optimizer) {
    MSP_RETURN_IF_ERROR(CheckCopies(r.a, &r.copies));
    MSP_RETURN_IF_ERROR(CheckCopies(r.b, &r.copies));
  }
  if (!args.map_out.empty()) MSP_RETURN_IF_ERROR(WriteText(args.map_out, MapText(r.map)));
  if (!args.output.empty()) MSP_RETURN_IF_ERROR(WriteText(args.output, ResultJson(r)));
  if (!args.html.empty()) MSP_RETURN_IF_ERROR(WriteCkptPage(r, args.html));
  context.json ? PrintJson(ResultJson(r)) : PrintForPeople(ResultText(r, args.all));
  const size_t one_sided = r.map.only_a.size() + r.map.only_b.size();
  return StatusOf(
      Conclude(JudgementsOf(r)), context.fail_on, {FailOn::kSuspicious, true},
      Msg("{} weights differ, {} are on one side only, {} copies differ", r.different(), one_sided, r.copies.size()));
}

Status RunCkptShow(const CkptArgs& args, bool as_json) {
  MSP_ASSIGN_OR_RETURN(const Checkpoint c, OpenCheckpoint(args.a));
  std::string out;
  uint64_t elements = 0, bytes = 0;
  for (const WeightTensor& t : c.tensors) {
    elements += static_cast<uint64_t>(t.elements());
    bytes += t.bytes();
  }
  if (as_json) {
    JsonWriter json(&out, kJsonIndented);
    json.BeginObject();
    json.Member("path", c.path);
    json.Member("format", c.format);
    json.Member("elements", elements);
    json.Member("bytes", bytes);
    json.Member("notes", c.notes);
    for (const auto& [key, list] : {std::pair{"tensors", &c.tensors}, {"optimizer", &c.optimizer}}) {
      json.ArrayMember(key, *list, [&](const WeightTensor& t) {
        json.BeginObject();
        json.Member("name", t.name);
        json.Member("dtype", DTypeName(t.dtype));
        json.Member("shape", t.shape);
        if (!t.blocks.empty()) json.Member("file", c.files[static_cast<size_t>(t.blocks[0].file)].path);
        json.Member("pieces", t.blocks.size());
        json.EndObject();
      });
    }
    json.EndObject();
    PrintJson(out + "\n");
    return OkStatus();
  }
  Message told = Msg("{}: {}\n{} tensors, {} elements, {} bytes; {} states of the optimizer\n", c.path, c.format,
                     c.tensors.size(), elements, bytes, c.optimizer.size());
  for (const Message& note : c.notes) told += Msg("note: {}\n", note);
  for (const WeightTensor& t : c.tensors)
    told += Message(fmt::format("  {} {} {}\n", OneLine(t.name), DTypeName(t.dtype), ShapeText(t.shape)));
  PrintForPeople(told);
  return OkStatus();
}

struct ConvertArgs {
  std::string input, output, names, dtype;
  ConvertOptions options;
};

constexpr std::pair<std::string_view, NamesOf> kNamesOf[] = {{"same", NamesOf::kSame},
                                                             {"mindspore", NamesOf::kMindSpore},
                                                             {"torch", NamesOf::kTorch},
                                                             {"mindformers", NamesOf::kMindFormers},
                                                             {"transformers", NamesOf::kTransformers}};

Status RunCkptConvert(ConvertArgs args, bool as_json) {
  for (const auto& [word, names] : kNamesOf) {
    if (args.names == word) args.options.names = names;
  }
  if (!args.dtype.empty()) args.options.dtype = ParseDType(args.dtype);
  MSP_ASSIGN_OR_RETURN(const ConvertReport report, ConvertCheckpoint(args.input, args.output, args.options));
  if (as_json) {
    JsonWriter json(kJsonIndented);
    json.BeginObject();
    json.Member("file", args.output);
    json.Member("format", report.format);
    json.Member("tensors", report.tensors);
    json.Member("bytes", report.bytes);
    json.ArrayMember("names", report.names, [&](const std::pair<std::string, std::string>& pair) {
      json.BeginObject();
      json.Member("from", pair.first);
      json.Member("to", pair.second);
      json.EndObject();
    });
    json.Member("left_out", report.left_out);
    json.Member("notes", report.notes);
    json.EndObject();
    PrintJson(json.Take() + "\n");
    return OkStatus();
  }
  Message out = Msg("{} weights, {} bytes, from {}\n", report.tensors, report.bytes, report.format);
  for (const Message& note : report.notes) out += Msg("note: {}\n", note);
  for (const std::string& name : report.left_out) out += Msg("  left out: {}\n", OneLine(name));
  out += Msg("  result: {}\n", OneLine(args.output));
  PrintForPeople(out);
  return OkStatus();
}

void RegisterConvert(CLI::App* ckpt, CommandContext* context) {
  auto args = std::make_shared<ConvertArgs>();
  CLI::App* convert = ckpt->add_subcommand("convert", "write the weights as one file for PyTorch or MindSpore");
  convert->add_option("input", args->input, "a file or a directory of any format")->required();
  convert->add_option("output", args->output, "a file that does not exist: .ckpt, .safetensors, .pt, .pth or .bin")
      ->required();
  std::vector<std::string> words;
  for (const auto& [word, names] : kNamesOf) words.emplace_back(word);
  convert
      ->add_option("--names", args->names,
                   "whose names the weights get (default: of the layers of the framework that the file is for)")
      ->check(CLI::IsMember(words));
  convert->add_option("--like", args->options.like, "a checkpoint whose names, fused weights and shapes are taken");
  convert->add_option("--map", args->options.map, "YAML file that says which weight gets which name");
  convert->add_option("--dtype", args->dtype, "type of all floating-point weights (default: as they are)")
      ->check(CLI::IsMember({"float64", "float32", "float16", "bfloat16"}));
  convert->add_flag("--json", context->json, "print what was done as one JSON object");
  convert->callback([args, context] { context->status = RunCkptConvert(*args, context->json); });
}

}  // namespace

void RegisterCkpt(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<CkptArgs>();
  CLI::App* command =
      app.add_subcommand("ckpt", "look into checkpoints of any format, compare and convert their weights");
  command->require_subcommand(1);
  CLI::App* show = command->add_subcommand("show", "list the tensors of a checkpoint");
  show->add_option("checkpoint", args->a, "a file or a directory")->required();
  show->add_flag("--json", context->json, "print the list as one JSON object");
  RegisterConvert(command, context);
  show->callback([args, context] { context->status = RunCkptShow(*args, context->json); });
  CLI::App* compare = command->add_subcommand("compare", "compare the weights of two checkpoints of any formats");
  compare->add_option("a", args->a, "a file or a directory")->required();
  compare->add_option("b", args->b, "what it is compared with")->required();
  compare->add_option("-o,--output", args->output, "file for the whole result as JSON");
  compare->add_option("--map", args->map, "YAML file that says which weight of A is which of B");
  compare->add_option("--html", args->html, "file for the result as a page");
  compare->add_option("--map-out", args->map_out, "write the pairs as such a file, to edit");
  compare->add_flag("--optimizer", args->optimizer, "compare the states of the optimizers instead of the weights");
  compare->add_flag("--exact", args->exact,
                    "B is a copy of A: each weight that is not bit-equal is a finding, whatever rounding explains");
  compare->add_flag("--all", args->all, "list equal weights as well");
  AddFailOn(compare, context);
  compare->add_flag("--json", context->json, "print the result as one JSON object");
  compare->footer(
      "Exit code: 0 no weight differs, 1 some do or are on one side only, 2 wrong options, 3 not readable.");
  compare->callback([args, context] { context->status = RunCkptCompare(*args, *context); });
}

}  // namespace msprobe
