// msprobe export FILE... -o PAGE.html: the page with graphs and trends inside, for somebody without the files.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "cli/context/register_commands.h"
#include "json/writer.h"
#include "report/fill_page.h"
#include "serve/page.h"
#include "view/query/viewer.h"
#include "view/run/run_export.h"

namespace msprobe {
namespace {

constexpr uint64_t kMegabyte = 1 << 20;
constexpr uint64_t kUsualRatio = 8;  // of the texts of nodes to what they take in the page, at least
constexpr int kMostTries = 6;

struct ExportArgs {
  std::vector<std::string> inputs;
  std::string output;
  std::vector<int64_t> steps, ranks;
  uint64_t max_size = 20, max_tensors = 8;
};

// A file that goes into the page; `name` is how the page calls it.
struct Source {
  std::string name;
  view::FoundFile found;
  view::Viewer* viewer = nullptr;
};

struct Sources {
  std::vector<std::unique_ptr<view::Viewer>> viewers;
  std::vector<Source> graphs, trends;
  std::vector<std::pair<view::FoundRun, view::Viewer*>> runs;  // of a monitor
};

struct Page {
  std::string html;
  view::ExportedGraphs graphs;
  uint64_t targets = 0;  // of all trend files
  uint64_t series = 0;   // of all monitored runs
};

// On a page without a server nothing may be asked of any.
std::string WithoutServer(std::string page) {
  constexpr std::string_view kServer = "connect-src 'self'";
  const size_t at = page.find(kServer);
  if (at != std::string::npos) page.replace(at, kServer.size(), "connect-src 'none'");
  return page;
}

// Two runs have files of one name: then their directories tell them apart.
void NameApart(std::vector<Source>* sources, const std::vector<std::string>& paths) {
  std::set<std::string> names;
  for (const Source& source : *sources) names.insert(source.name);
  if (names.size() == sources->size()) return;
  names.clear();
  for (size_t i = 0; i < sources->size(); ++i) {
    std::string& name = (*sources)[i].name;
    const std::string directory(BaseName(DirName(paths[i])));  // paths[i] is empty for what a directory holds
    if (!directory.empty() && directory != ".") name = JoinPath(directory, name);
    const std::string base = name;
    for (int n = 2; !names.insert(name).second; ++n) name = fmt::format("{} ({})", base, n);
  }
}

Status Collect(const ExportArgs& args, Sources* out) {
  std::vector<std::string> trend_paths;
  for (const std::string& input : args.inputs) {
    MSP_ASSIGN_OR_RETURN(auto opened, view::Viewer::OpenTrusted(input));
    out->viewers.push_back(std::move(opened));
    view::Viewer* viewer = out->viewers.back().get();
    MSP_ASSIGN_OR_RETURN(const view::FileList list, viewer->Files());
    if (list.files.empty() && list.trends.empty() && list.runs.empty()) {
      return BadInput(list.skipped.empty()
                          ? Msg("{} holds no .vis.db file, no .trend.db file and no monitored run", input)
                          : list.skipped[0].reason);
    }
    for (const view::FoundFile& f : list.files) out->graphs.push_back({f.file, f, viewer});
    for (const view::FoundFile& f : list.trends) {
      out->trends.push_back({f.file, f, viewer});
      trend_paths.push_back(viewer->root().empty() ? input : "");
    }
    for (const view::FoundRun& run : list.runs) out->runs.emplace_back(run, viewer);
  }
  if (out->graphs.size() > 1) {
    return UsageError(Msg("{} and {} are two graph files, and a page holds one: name the one to export",
                          out->graphs[0].name, out->graphs[1].name));
  }
  NameApart(&out->trends, trend_paths);
  return OkStatus();
}

/// `,"trends":[...]`, or "" without any.
StatusOr<std::string> TrendsJson(const Sources& sources, const ExportArgs& args, uint64_t* targets) {
  std::string out;
  if (sources.trends.empty()) return out;
  JsonWriter json(&out, kJsonPage);
  out += ',';  // they stand behind other members
  json.Key("trends");
  json.BeginArray();
  for (const Source& source : sources.trends) {
    MSP_ASSIGN_OR_RETURN(const auto file, source.viewer->Trend(source.found.file));
    MSP_ASSIGN_OR_RETURN(const view::ExportedTrend trend, file->Export(args.steps, args.ranks));
    json.BeginObject();
    json.Member("file", source.name);
    json.Member("size", source.found.stamp.size);
    json.Member("mtime", source.found.stamp.mtime_s);
    json.RawMember("data", trend.json);
    json.EndObject();
    *targets += trend.targets;
  }
  json.EndArray();
  return out;
}

// Of the ranks that --rank names, or else those of which something was found, or else the first.
std::vector<int64_t> RanksOfRun(const std::vector<int64_t>& all, const std::vector<view::RunEvent>& events,
                                const ExportArgs& args) {
  constexpr size_t kMostRanks = 4;
  std::set<int64_t> wanted(args.ranks.begin(), args.ranks.end());
  for (const view::RunEvent& event : events) {
    if (args.ranks.empty() && event.rank >= 0 && wanted.size() < kMostRanks) wanted.insert(event.rank);
  }
  std::vector<int64_t> ranks;
  for (const int64_t rank : all) {
    if (wanted.count(rank) != 0) ranks.push_back(rank);
  }
  if (ranks.empty() && args.ranks.empty()) ranks.push_back(all.front());
  return ranks;
}

/// `,"runs":[...]`, or "" without any.
StatusOr<std::string> RunsJson(const Sources& sources, const ExportArgs& args, uint64_t* series) {
  constexpr uint64_t kCellBytes = 16;  // in the page: three numbers as base64
  std::string out;
  if (sources.runs.empty()) return out;
  const uint64_t cells = args.max_size * kMegabyte / kCellBytes / sources.runs.size() * 3 / 4;
  JsonWriter json(&out, kJsonPage);
  out += ',';
  json.Key("runs");
  json.BeginArray();
  for (const auto& [run, viewer] : sources.runs) {
    MSP_ASSIGN_OR_RETURN(const auto all, viewer->RunRanks(run.directory));
    constexpr auto kUntilJudged = std::chrono::hours(1);
    MSP_ASSIGN_OR_RETURN(const view::RunFindings found, viewer->RunEvents(run.directory, kUntilJudged));
    const std::vector<view::RunEvent>& events = found.events;
    std::vector<std::pair<int64_t, std::shared_ptr<view::OpenRank>>> ranks;
    for (const int64_t rank : RanksOfRun(all, events, args)) {
      MSP_ASSIGN_OR_RETURN(auto open, viewer->RunRank(run.directory, rank));
      ranks.emplace_back(rank, std::move(open));
    }
    if (ranks.empty()) return BadInput(Msg("{} has no rank of --rank: choose one that it has", run.directory));
    MSP_ASSIGN_OR_RETURN(const view::ExportedRun data, view::ExportRun(ranks, events, run.changed, cells));
    json.BeginObject();
    json.Member("file", run.directory == "." ? std::string(BaseName(viewer->root())) : run.directory);
    json.Member("size", run.size);
    json.Member("mtime", run.changed);
    json.Member("ranks", ranks.size());
    json.RawMember("data", data.json);
    json.EndObject();
    *series += data.series;
  }
  json.EndArray();
  return out;
}

StatusOr<view::ExportedGraphs> GraphsJson(const Sources& sources, const view::ExportChoice& choice) {
  if (!sources.graphs.empty()) {
    const Source& source = sources.graphs[0];
    return source.viewer->Export(source.found.file, choice);
  }
  view::ExportedGraphs none;
  none.json = R"({"format":1,"file":"","config":null,"matrix":{"cells":[]},"graphs":[],"nodes":0,"details":0})";
  return none;
}

// Figures of the worst nodes first, as many as there is room for.
StatusOr<Page> MakePage(const Sources& sources, const ExportArgs& args) {
  const std::string page = WithoutServer(std::string(serve::PageHtml()));
  const uint64_t most = args.max_size * kMegabyte;
  view::ExportChoice choice{args.steps, args.ranks, most * kUsualRatio, args.max_tensors * kMegabyte};
  Page out;
  MSP_ASSIGN_OR_RETURN(const std::string trends, TrendsJson(sources, args, &out.targets));
  MSP_ASSIGN_OR_RETURN(const std::string runs, RunsJson(sources, args, &out.series));
  for (int i = 0; i < kMostTries; ++i) {
    MSP_ASSIGN_OR_RETURN(out.graphs, GraphsJson(sources, choice));
    out.graphs.json.insert(out.graphs.json.size() - 1, trends + runs);
    MSP_ASSIGN_OR_RETURN(out.html, FillPage(page, out.graphs.json));
    out.graphs.json.clear();
    if (out.html.size() <= most) return out;
    if (sources.graphs.empty()) break;
    choice.details_bytes = i + 2 == kMostTries ? 0 : choice.details_bytes / 4;
    choice.tensor_bytes = i + 2 == kMostTries ? 0 : choice.tensor_bytes / 4;
  }
  return BadInput(
      args.inputs.size() > 1
          ? Msg("{} and {} more take more than {} MB: choose fewer with --step and --rank, or allow more with "
                "--max_size",
                args.inputs[0], args.inputs.size() - 1, args.max_size)
          : Msg("{} takes more than {} MB: choose fewer with --step and --rank, or allow more with --max_size",
                args.inputs[0], args.max_size));
}

// Of a tensor dump: how many tensors the page shows, and why not the others.
void PrintTensors(const ExportArgs& args, const view::ExportedTensors& tensors) {
  if (tensors.saved == 0) return;
  std::vector<Message> text = {Msg("tensors: of {}, {} can be looked at", tensors.saved, tensors.held)};
  const uint64_t cut = tensors.saved - tensors.held - tensors.unread;
  if (cut > 0) text.push_back(Msg("{} did not fit (--max_tensors {})", cut, args.max_tensors));
  if (tensors.unread > 0) text.push_back(Msg("{} could not be read: {}", tensors.unread, tensors.problem));
  PrintForPeople(Msg("{}\n", Joined(text, Msg("; "))));
}

void Print(const ExportArgs& args, const Page& page, const Sources& sources, const std::string& path, bool json) {
  const size_t trends = sources.trends.size();
  const view::ExportedGraphs& graphs = page.graphs;
  if (json) {
    JsonWriter line(kJsonCompact);
    line.BeginObject();
    line.Member("page", path);
    line.Member("bytes", page.html.size());
    line.Member("graphs", graphs.graphs);
    line.Member("nodes", graphs.nodes);
    line.Member("details", graphs.details);
    line.Member("tensors", graphs.tensors.held);
    line.Member("tensors_saved", graphs.tensors.saved);
    line.Member("trends", trends);
    line.Member("runs", sources.runs.size());
    line.EndObject();
    fmt::print("{}\n", line.Take());
    return;
  }
  Message holds;
  const auto add = [&](bool any, const Message& one, const Message& many, size_t count) {
    if (!any) return;
    holds += Msg(", ");
    holds += count == 1 ? one : many;
  };
  add(graphs.graphs > 0, Msg("{} graph, {} nodes", graphs.graphs, graphs.nodes),
      Msg("{} graphs, {} nodes", graphs.graphs, graphs.nodes), graphs.graphs);
  add(trends > 0,
      page.targets == 1 ? Msg("{} trend file of {} name", trends, page.targets)
                        : Msg("{} trend file of {} names", trends, page.targets),
      page.targets == 1 ? Msg("{} trend files of {} name", trends, page.targets)
                        : Msg("{} trend files of {} names", trends, page.targets),
      trends);
  const size_t runs = sources.runs.size();
  add(runs > 0, Msg("{} monitored run of {} series", runs, page.series),
      Msg("{} monitored runs of {} series", runs, page.series), runs);
  PrintForPeople(
      Msg("page: {} ({:.1f} MB{})\n", OneLine(path), static_cast<double>(page.html.size()) / kMegabyte, holds));
  if (graphs.details < graphs.nodes) {
    PrintForPeople(Msg("figures: of {} nodes, the worst first; those of {} did not fit (--max_size {})\n",
                       graphs.details, graphs.nodes - graphs.details, args.max_size));
  }
  PrintTensors(args, graphs.tensors);
}

Status RunExport(const ExportArgs& args, bool json) {
  if (serve::PageHtml().find(kDataMark) == std::string_view::npos) {
    return UsageError(
        Msg("this msprobe was built without its pages: build it with Node.js installed (tools/setup.sh) and "
            "-DMSPROBE_WEB=ON"));
  }
  Sources sources;
  MSP_RETURN_IF_ERROR(Collect(args, &sources));
  MSP_ASSIGN_OR_RETURN(const Page page, MakePage(sources, args));
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(args.output));
  MSP_RETURN_IF_ERROR(file.Write(page.html));
  MSP_RETURN_IF_ERROR(file.CommitResult());
  Print(args, page, sources, file.path(), json);
  return OkStatus();
}

}  // namespace

void RegisterExport(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<ExportArgs>();
  CLI::App* cmd = app.add_subcommand("export", "write graphs and trends as one HTML page that works without a server");
  cmd->add_option("file", args->inputs, "a .vis.db file, .trend.db files, or a directory with them or of a monitor")
      ->required();
  cmd->add_option("-o,--output_path", args->output, "the page to write, FILE.html")->required();
  cmd->add_option("--step", args->steps, "only these steps")->delimiter(',');
  cmd->add_option("--rank", args->ranks, "only these ranks")->delimiter(',');
  cmd->add_option("--max_size", args->max_size,
                  "maximum size of the page in MB; figures of nodes that agree are dropped first")
      ->check(CLI::Range(1, 500))
      ->capture_default_str();
  cmd->add_option("--max_tensors", args->max_tensors, "maximum MB for tensor values that the page can show; 0: none")
      ->check(CLI::Range(0, 500))
      ->capture_default_str();
  cmd->add_flag("--json", context->json, "print the summary as one JSON object");
  cmd->callback([args, context] { context->status = RunExport(*args, context->json); });
}

}  // namespace msprobe
