#include "cli/older_graph.h"

#include <fmt/format.h>

#include <cstdio>
#include <vector>

#include "base/file.h"
#include "base/message.h"
#include "base/temp_directory.h"
#include "base/text.h"
#include "cli/context/command_context.h"
#include "dump/reader.h"
#include "json/parser.h"
#include "view/file/vis_json.h"

namespace msprobe {
namespace {

Status ReadInput(const std::string& path, GraphSettings* options) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(file.text(), path, &doc));
  for (const auto& [key, to] : {std::pair("npu_path", &options->target), std::pair("bench_path", &options->golden)}) {
    const JsonValue* v = doc.Find(key);
    if (!v || v->IsNull()) continue;
    if (!v->IsString()) return BadInput(Msg("{}: \"{}\" must be a string, a path", path, key));
    if (!to->empty()) return UsageError(Msg("-i/--input_path names the dumps: leave out -tp and -gp"));
    *to = v->Text();
  }
  if (options->target.empty())
    return BadInput(Msg("{} must hold \"npu_path\": add the path of a rank's directory", path));
  return OkStatus();
}

/// One rank of one step, of both runs.
struct Place {
  std::string target, golden, name;  // "_step0_rank1"
};

StatusOr<std::vector<Place>> PlacesOf(const GraphSettings& options) {
  MSP_ASSIGN_OR_RETURN(const DumpPath target, ResolveDumpPath(options.target));
  std::vector<Place> out;
  if (target.kind == PathKind::kRank || target.kind == PathKind::kFile)
    return std::vector{Place{options.target, options.golden, ""}};
  DumpPath golden;
  if (!options.golden.empty()) {
    MSP_ASSIGN_OR_RETURN(golden, ResolveDumpPath(options.golden));
  }
  for (const auto& step : target.steps) {
    for (const auto& rank : step.ranks) {
      Place place;
      place.target = rank.path;
      const bool one = target.kind == PathKind::kStep;
      place.name = fmt::format("{}_{}", one ? std::string() : "_" + step.name, rank.name);
      for (const auto& other_step : golden.steps) {
        for (const auto& other : other_step.ranks) {
          if ((one || other_step.step == step.step) && other.rank == rank.rank) place.golden = other.path;
        }
      }
      if (options.golden.empty() || !place.golden.empty()) out.push_back(std::move(place));
    }
  }
  if (!out.empty()) return out;
  return BadInput(Msg("{} and {} have no rank and step in common", options.target, options.golden));
}

}  // namespace

Status RunOlderGraph(GraphSettings options, const std::string& input) {
  MSP_RETURN_IF_ERROR(ReadInput(input, &options));
  if (options.output.empty()) options.output = "./output";
  MSP_ASSIGN_OR_RETURN(const std::vector<Place> places, PlacesOf(options));
  MSP_RETURN_IF_ERROR(MakeOutputDir(options.output));
  MSP_ASSIGN_OR_RETURN(const TempDirectory temp, TempDirectory::Create(options.output, "graph"));
  const std::string output = options.output;
  options.output = temp.path();
  options.plain = true;
  options.warning = [](const Message& text) { PrintWarning(text); };
  const std::string time = TimestampNow();
  for (const Place& place : places) {
    options.target = place.target;
    options.golden = place.golden;
    MSP_ASSIGN_OR_RETURN(const GraphSummary summary, VisualizeGraph(options));
    MSP_RETURN_IF_ERROR(GraphSummaryStatus(summary));
    const std::string path =
        JoinPath(output, fmt::format("{}{}_{}.vis", options.golden.empty() ? "build" : "compare", place.name, time));
    MSP_RETURN_IF_ERROR(view::WriteVisJson(summary.file, path));
    PrintForPeople(Msg("graph of {} nodes\n  result: {}\n", summary.target_nodes, OneLine(path)));
  }
  return OkStatus();
}

}  // namespace msprobe
