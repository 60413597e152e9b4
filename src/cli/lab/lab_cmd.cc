// msprobe lab: the calls of a run under changes that must not change their results.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "cli/context/fail_on.h"
#include "cli/context/register_commands.h"
#include "cli/launch/launch.h"
#include "json/writer.h"
#include "judgement/judgement_json.h"
#include "lab/relations/relation_matrix.h"

namespace msprobe {
namespace {

constexpr size_t kLongestName = 24, kMostRanks = 8;

struct LabArgs {
  MatrixSettings settings;
  AttachRequest request;
};

std::string FigureText(double v) {
  if (!std::isfinite(v)) return "inf";
  return v == 0 || v >= 0.01 ? fmt::format("{:.3g}", v) : "<0.01";
}

/// Rows with the same function and dtype, as one row of what is printed.
struct TableLine {
  std::string api, dtype;
  uint64_t calls = 0;
  std::vector<std::optional<UlpDistance>> cells;  // of the relations of the report
};

std::vector<TableLine> LinesOf(const MatrixReport& report) {
  std::vector<TableLine> out;
  std::map<std::pair<std::string, std::string>, size_t> places;
  for (const MatrixRow& row : report.rows) {
    if (!row.answer.why.empty()) continue;
    const auto [place, added] = places.emplace(std::pair(row.api, row.answer.dtype), out.size());
    if (added) out.push_back({row.api, row.answer.dtype, 0, {}});
    TableLine& line = out[place->second];
    line.cells.resize(report.relations.size());
    ++line.calls;
    for (const RelationCell& cell : row.answer.cells) {
      const auto at = std::find(report.relations.begin(), report.relations.end(), cell.relation);
      if (at == report.relations.end() || !cell.why.empty()) continue;
      std::optional<UlpDistance>& distance = line.cells[static_cast<size_t>(at - report.relations.begin())];
      if (!distance) distance.emplace();
      distance->Add(cell.distance);
    }
  }
  return out;
}

std::string TableText(const MatrixReport& report) {
  std::string out = fmt::format("{:<{}} {:<9} {:>5}", "function", kLongestName, "dtype", "calls");
  for (const size_t relation : report.relations) out += fmt::format(" {:>13}", kRelations[relation].name);
  out += '\n';
  for (const TableLine& line : LinesOf(report)) {
    const std::string_view dtype = std::string_view(line.dtype).substr(line.dtype.rfind('.') + 1);
    out +=
        fmt::format("{:<{}} {:<9} {:>5}", OneLine(line.api).substr(0, kLongestName), kLongestName, dtype, line.calls);
    for (const auto& cell : line.cells) out += fmt::format(" {:>13}", cell ? FigureText(cell->of_largest) : "-");
    out += '\n';
  }
  return out;
}

Message OriginText(const MatrixReport& report, const RelationOrigin& origin) {
  const std::string_view name = kRelations[origin.relation].name;
  if (!origin.row) {
    return origin.unknown > 0
               ? Msg("  {}: no call changes; {} calls before that cannot be said\n", name, origin.unknown)
               : Msg("  {}: no call changes\n", name);
  }
  const std::string first = OneLine(report.rows[*origin.row].full);
  return origin.unknown > 0 ? Msg("  {}: {} calls change, the first is {}; {} calls before that cannot be said\n", name,
                                  origin.differ, first, origin.unknown)
                            : Msg("  {}: {} calls change, the first is {}\n", name, origin.differ, first);
}

/// By how many ulp results move when the inputs do by one, the most first.
std::vector<std::pair<double, const TableLine*>> Sensitivities(const MatrixReport& report,
                                                               const std::vector<TableLine>& lines) {
  std::vector<std::pair<double, const TableLine*>> out;
  const auto at = std::find(report.relations.begin(), report.relations.end(), kOneUlp);
  if (at == report.relations.end()) return out;
  const auto place = static_cast<size_t>(at - report.relations.begin());
  for (const TableLine& line : lines) {
    if (line.cells[place] && line.cells[place]->of_largest > 0) out.emplace_back(line.cells[place]->of_largest, &line);
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  return out;
}

/// The functions that make most of a change of their inputs.
Message SensitivityText(const MatrixReport& report) {
  const std::vector<TableLine> lines = LinesOf(report);
  auto ranks = Sensitivities(report, lines);
  if (ranks.size() > kMostRanks) ranks.resize(kMostRanks);
  std::string list;
  for (const auto& [factor, line] : ranks)
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", OneLine(line->api), FigureText(factor));
  return list.empty() ? Message() : Msg("most sensitive to a change of one ulp of the inputs: {}\n", list);
}

Message LabText(const MatrixReport& report) {
  Message out = Msg("{} calls on {} with torch {}, {} threads; a batch of {}, a sequence of {}\n", report.rows.size(),
                    report.device, OneLine(report.torch), report.threads, report.batch, report.sequence);
  out += Message(TableText(report));
  out += Msg("largest differences, in ulp at the largest value of the result; - where the relation does not apply\n");
  for (const RelationOrigin& origin : report.origins) {
    if (!IsRounding(origin.relation)) out += OriginText(report, origin);
  }
  out += SensitivityText(report);
  uint64_t left = 0;
  std::string why;
  for (const MatrixRow& row : report.rows) {
    if (row.answer.why.empty()) continue;
    if (left++ == 0) why = row.full + ": " + row.answer.why;
  }
  if (left > 0) out += Msg("{} calls could not be made again, such as {}\n", left, OneLine(why));
  return out;
}

void WriteCell(const RelationCell& cell, JsonWriter* json) {
  json->BeginObject();
  json->Member("relation", kRelations[cell.relation].name);
  if (!cell.why.empty()) {
    json->Member("why", cell.why);
  } else {
    json->Member("elements", cell.distance.elements);
    json->Member("differ", cell.distance.differ);
    json->Member("ulp", cell.distance.worst);
    json->Member("ulp_of_largest", cell.distance.of_largest);
    if (!cell.detail.empty()) json->Member("detail", cell.detail);
  }
  json->EndObject();
}

/// What a run in another batch or layout changes is rounding of another order; a call that cannot be made says nothing.
std::vector<Judgement> JudgementsOf(const MatrixReport& report) {
  std::vector<Judgement> out;
  for (const RelationOrigin& origin : report.origins) {
    Judgement& one = out.emplace_back();
    one.about = Message(std::string(kRelations[origin.relation].name));
    one.basis = Msg("the same call of the recorded batch");
    one.kind = origin.row ? JudgementKind::kAnotherWay : JudgementKind::kBitEqual;
    if (origin.row)
      one.evidence.push_back(
          Msg("{} calls change, the first is {}", origin.differ, OneLine(report.rows[*origin.row].full)));
    if (origin.unknown > 0) one.not_seen.push_back(Msg("{} calls before that cannot be said", origin.unknown));
  }
  for (const MatrixRow& row : report.rows) {
    if (row.answer.why.empty()) continue;
    Judgement& one = out.emplace_back();
    one.about = Message(OneLine(row.full));
    one.not_seen.emplace_back(OneLine(row.answer.why));
  }
  if (!report.truncated.empty()) out.emplace_back().not_seen.push_back(report.truncated);
  return out;
}

std::string LabJson(const MatrixReport& report) {
  JsonWriter json;
  json.BeginObject();
  json.Member("dump", report.dump);
  json.Member("device", report.device);
  json.Member("torch", report.torch);
  json.Member("threads", report.threads);
  json.Member("batch", report.batch);
  json.Member("sequence", report.sequence);
  json.Member("copies", report.copies);
  WriteConclusion(Conclude(JudgementsOf(report)), &json);
  json.ArrayMember("origins", report.origins, [&](const RelationOrigin& origin) {
    json.BeginObject();
    json.Member("relation", kRelations[origin.relation].name);
    json.Member("first", origin.row ? std::optional(report.rows[*origin.row].full) : std::nullopt);
    json.Member("calls", origin.differ);
    json.Member("unknown_before", origin.unknown);
    json.EndObject();
  });
  const std::vector<TableLine> lines = LinesOf(report);
  json.ArrayMember("sensitivity", Sensitivities(report, lines), [&](const auto& rank) {
    json.BeginObject();
    json.Member("function", rank.second->api);
    json.Member("dtype", rank.second->dtype);
    json.Member("ulp", rank.first);
    json.EndObject();
  });
  json.ArrayMember("rows", report.rows, [&](const MatrixRow& row) {
    json.BeginObject();
    json.Member("name", row.full);
    json.Member("function", row.api);
    if (!row.answer.why.empty()) {
      json.Member("why", row.answer.why);
    } else {
      json.Member("dtype", row.answer.dtype);
      json.ArrayMember("shape", row.answer.shape, [&](int64_t size) { json.Int(size); });
      json.ArrayMember("cells", row.answer.cells, [&](const RelationCell& cell) { WriteCell(cell, &json); });
    }
    json.EndObject();
  });
  json.EndObject();
  return json.Take() + "\n";
}

Status Show(const MatrixSettings& settings, const CommandContext& context) {
  MSP_ASSIGN_OR_RETURN(const MatrixReport report, MakeRelationMatrix(settings));
  if (!report.truncated.empty()) PrintWarning(report.truncated);
  context.json ? PrintJson(LabJson(report)) : PrintForPeople(LabText(report));
  return StatusOf(Conclude(JudgementsOf(report)), context.fail_on, {});
}

/// The first step of a program, recorded with its tensors into a directory that is removed.
Status RecordAndShow(const LabArgs& args, const std::vector<std::string>& program, const CommandContext& context) {
  const char* tmp = std::getenv("TMPDIR");
  MSP_ASSIGN_OR_RETURN(auto work, WorkDir::Create(tmp != nullptr && *tmp != '\0' ? tmp : "/tmp"));
  AttachRequest request = args.request;
  request.task = "tensor", request.level = "L1", request.step = "0", request.dump_path = work->path();
  MSP_RETURN_IF_ERROR(CheckLaunch(&request, program));
  MSP_ASSIGN_OR_RETURN(const int code, RunProgram(request, program));
  if (code != 0) return BadInput(Msg("{} ended with exit code {}: see its messages", program[0], code));
  MatrixSettings settings = args.settings;
  settings.dump = work->path();
  return Show(settings, context);
}

Status Run(const LabArgs& args, const CommandContext& context) {
  const std::string& target = args.settings.dump;
  if (target.empty() == context.program.empty())
    return UsageError(Msg("lab takes a dump, a script, or a command after '--': see 'msprobe lab --help'"));
  if (!context.program.empty()) return RecordAndShow(args, context.program, context);
  if (!EndsWith(target, ".py")) return Show(args.settings, context);
  const char* python = std::getenv("MSPROBE_PYTHON");
  return RecordAndShow(args, {python != nullptr && *python != '\0' ? python : "python3", target}, context);
}

}  // namespace

void RegisterLab(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<LabArgs>();
  MatrixSettings& settings = args->settings;
  CLI::App* command = app.add_subcommand(
      "lab", "call the functions of a run again in other batches, chunks, layouts and threads, and say which change");
  command->add_option("target", settings.dump, "a dump of level L1 or mix, or a script, whose first step is recorded");
  command->add_option("-d,--device", settings.device, "number of an accelerator, or a device of torch such as cpu")
      ->capture_default_str();
  command
      ->add_option("--relations", settings.relations,
                   "names such as 'row alone' or padded, or all (with compiled, which takes seconds per function); "
                   "default: all but compiled")
      ->delimiter(',');
  command->add_option("--ops", settings.ops, "only these functions, such as linear")->delimiter(',');
  command->add_option("--rows", settings.rows, "rows of the smaller batch (default: half)")->check(CLI::PositiveNumber);
  command->add_option("--chunk", settings.chunk, "positions of a chunk (default: half)")->check(CLI::PositiveNumber);
  command->add_option("--pad", settings.pad, "positions that are added behind a sequence; negative: in front of it")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{-65536}, int64_t{65536}));
  command
      ->add_option("--batch-size", settings.batch, "rows of the recorded batch (default: as its first call has them)")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--sequence-length", settings.sequence,
                   "positions of the recorded sequences (default: as its first call has them)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", context->json, "print the table as one JSON object, call by call");
  AddFailOn(command, context);
  command->footer("A command comes last: msprobe lab -- python train.py ARGUMENTS");
  command->callback([args, context] { context->status = Run(*args, *context); });
}

}  // namespace msprobe
