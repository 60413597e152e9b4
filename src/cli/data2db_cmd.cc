// msprobe data2db: dumps and monitor files as .trend.db, the file behind the view Trends.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/language.h"
#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "cli/context/output_options.h"
#include "cli/context/register_commands.h"
#include "dump/links.h"
#include "dump/output_bound.h"
#include "dump/rank_choice.h"
#include "dump/reader.h"
#include "json/parser.h"
#include "json/writer.h"
#include "trend/dump_trend.h"
#include "trend/monitor_trend.h"

namespace msprobe {
namespace {

constexpr const char* kDumpFile = "dump_data.trend.db";
constexpr const char* kMonitorFile = "monitor_data.trend.db";
constexpr int kMostProcesses = 128;

struct Data2DbArgs {
  std::string db, data, format = "auto", mapping, micro_step = "true";
  int processes = 0;  // not given
  std::string ranks;
  uint64_t out_limit = kDefaultOutLimit;
};

StatusOr<TrendMapping> ReadMapping(const std::string& path) {
  TrendMapping mapping;
  if (path.empty()) return mapping;
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(file.text(), path, &doc));
  const Status wrong =
      BadInput(Msg("{} is not a mapping: expected a JSON object {{\"old part of a name\": \"new part\"}}", path));
  if (!doc.IsObject()) return wrong;
  for (const auto& member : doc.Members()) {
    if (!member.value.IsString() || member.name.empty()) return wrong;
    mapping.emplace_back(member.name, member.value.Text());
  }
  return mapping;
}

// What --data holds of what was asked for.
struct Found {
  std::optional<DumpPath> dump;
  std::vector<MonitorFile> monitor;
};

StatusOr<Found> Look(const Data2DbArgs& args) {
  Found found;
  if (args.format != "monitor") {
    MSP_RETURN_IF_ERROR(CheckDumpLinks(args.data));
    auto dump = ResolveDumpPath(args.data);
    if (dump.ok()) {
      found.dump = *std::move(dump);
    } else if (args.format == "dump") {
      return dump.status();
    }
  }
  if (args.format != "dump") {
    MSP_ASSIGN_OR_RETURN(found.monitor, FindMonitorFiles(args.data));
  }
  if (found.dump || !found.monitor.empty()) return found;
  return BadInput(args.format == "auto"
                      ? Msg("{} holds no dump (step0, step1, ...) and no directories of a training monitor (like "
                            "Dec03_21-34-40-rank0-1a2b3c4d, with grad_reduced_0-9.csv and so on): give the directory "
                            "above them",
                            args.data)
                      : Msg("{} holds no directories of a training monitor (like Dec03_21-34-40-rank0-1a2b3c4d, with "
                            "grad_reduced_0-9.csv and so on): give the directory above them",
                            args.data));
}

/// Says how large the results of many ranks and steps will be, and stops where that is too much.
Status CheckSize(const Data2DbArgs& args, const Found& found, bool json) {
  constexpr double kOfDump = 0.7, kOfMonitor = 1.5;  // bytes of the result for each byte that is read
  double bytes = 0;
  size_t read = 0;
  for (size_t i = 0; found.dump && i < found.dump->steps.size(); ++i) {
    for (const RankDir& rank : found.dump->steps[i].ranks) {
      bytes += kOfDump * static_cast<double>(FileBytes(JoinPath(rank.path, "dump.json")));
      ++read;
    }
  }
  std::set<std::string_view> paths;  // of a monitor.series there are several parts
  for (const MonitorFile& file : found.monitor) {
    if (paths.insert(file.path).second) bytes += kOfMonitor * static_cast<double>(FileBytes(file.path));
  }
  read += paths.size();
  MSP_RETURN_IF_ERROR(CheckOutput(static_cast<uint64_t>(bytes), 1, args.out_limit,
                                  Msg("choose ranks with --ranks, or give a larger --out-limit")));
  if (read >= kManyRanks && !json) PrintForPeople(Msg("writing about {}\n", BytesText(bytes)));
  return OkStatus();
}

void Print(const std::vector<TrendReport>& reports, bool json) {
  if (json) {
    JsonWriter out;
    out.BeginObject();
    out.ArrayMember("files", reports, [&](const TrendReport& report) {
      out.BeginObject();
      out.Member("file", report.path);
      out.Member("rows", report.rows);
      out.Member("targets", report.targets);
      out.Member("max_rank", report.max_rank);
      out.Member("min_step", report.min_step);
      out.Member("max_step", report.max_step);
      out.Member("warnings", report.warnings);
      out.Key("not_whole"), WriteGaps(&out, report.gaps);
      out.Member("left_out", report.left_out);
      out.EndObject();
    });
    out.EndObject();
    fmt::print("{}\n", out.Take());
    return;
  }
  for (const TrendReport& report : reports) {
    const std::string gaps = GapText(report.gaps, LocaleLanguage());
    if (!gaps.empty()) PrintForPeople(Message(gaps + "\n"));
    if (report.left_out > 0) {
      PrintForPeople(Msg("{} parts of the data could not be read: the warnings name them\n", report.left_out));
    }
    PrintForPeople(Msg("{} rows of {} targets, steps {} to {}, ranks up to {}\n  result: {}\n", report.rows,
                       report.targets, report.min_step, report.max_step, report.max_rank, OneLine(report.path)));
  }
}

Status RunData2Db(const Data2DbArgs& args, bool json) {
  if (IsBrokenLink(args.data)) return Missing(args.data, "");
  if (!IsDirectory(args.data)) {
    return BadInput(Msg("{} is not a directory: give the directory with the data as --data", args.data));
  }
  TrendSettings settings;
  settings.micro_steps = args.micro_step == "true";
  MSP_ASSIGN_OR_RETURN(settings.mapping, ReadMapping(args.mapping));
  MSP_ASSIGN_OR_RETURN(const RankChoice ranks, RankChoice::Read(args.ranks));
  MSP_ASSIGN_OR_RETURN(Found found, Look(args));
  if (found.dump) MSP_RETURN_IF_ERROR(ranks.Apply(&*found.dump));
  std::erase_if(found.monitor, [&](const MonitorFile& file) { return !ranks.Holds(static_cast<int>(file.rank)); });
  if (!found.dump && found.monitor.empty()) return ranks.NoneOf(args.data);
  MSP_RETURN_IF_ERROR(CheckSize(args, found, json));
  if (args.processes > 0) SetThreadCount(std::min(args.processes, ThreadCount()));
  MSP_RETURN_IF_ERROR(MakeOutputDir(args.db));
  std::vector<TrendReport> reports;
  if (found.dump) {
    settings.output = JoinPath(args.db, kDumpFile);
    MSP_ASSIGN_OR_RETURN(TrendReport report, WriteDumpTrend(*found.dump, settings));
    reports.push_back(std::move(report));
  }
  if (!found.monitor.empty()) {
    settings.output = JoinPath(args.db, kMonitorFile);
    MSP_ASSIGN_OR_RETURN(TrendReport report, WriteMonitorTrend(found.monitor, settings));
    reports.push_back(std::move(report));
  }
  for (const TrendReport& report : reports) {
    for (const Message& warning : report.warnings) PrintWarning(warning);
  }
  Print(reports, json);
  const bool whole = std::ranges::all_of(
      reports, [](const TrendReport& report) { return report.gaps.empty() && report.left_out == 0; });
  return whole ? OkStatus() : NotWhole();
}

}  // namespace

void RegisterData2Db(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<Data2DbArgs>();
  CLI::App* command =
      app.add_subcommand("data2db", "collect the statistics of dumps or of a training monitor over steps and ranks");
  command->add_option("--db", args->db, "directory of the results, dump_data.trend.db and monitor_data.trend.db")
      ->required();
  command->add_option("--data", args->data, "directory that contains step0, ..., or the directories of the monitor")
      ->required();
  command->add_option("--format", args->format, "what --data holds; auto looks for both")
      ->check(CLI::IsMember({"auto", "dump", "monitor"}))
      ->capture_default_str();
  command->add_option("--mapping", args->mapping, "JSON file {\"old\": \"new\"}: parts of names to replace, in order");
  command->add_option("--micro_step", args->micro_step, "true: micro steps, numbered consecutively; false: steps")
      ->transform(CLI::IsMember({"true", "false"}, CLI::ignore_case))
      ->capture_default_str();
  command->add_option("--process_num", args->processes, "maximum number of threads, 1 to 128 (default: all cores)")
      ->check(CLI::Range(1, kMostProcesses));
  command->add_flag("--json", context->json, "print the summary as one JSON object");
  AddOutputBound(command, &args->ranks, &args->out_limit);
  command->callback([args, context] { context->status = RunData2Db(*args, context->json); });
}

}  // namespace msprobe
