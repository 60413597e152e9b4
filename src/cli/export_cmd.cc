// msprobe export FILE.vis.db -o PAGE.html: the page with the graphs inside, for somebody without the files.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "report/html_report.h"
#include "serve/page.h"
#include "view/viewer.h"

namespace msprobe {
namespace {

constexpr uint64_t kMegabyte = 1 << 20;
constexpr uint64_t kUsualRatio = 8;  // of the texts of nodes to what they take in the page, at least
constexpr int kMostTries = 6;

struct ExportArgs {
  std::string file, output;
  std::vector<int64_t> steps, ranks;
  uint64_t max_size = 20;
};

// On a page without a server nothing may be asked of any.
std::string WithoutServer(std::string page) {
  constexpr std::string_view kServer = "connect-src 'self'";
  const size_t at = page.find(kServer);
  if (at != std::string::npos) page.replace(at, kServer.size(), "connect-src 'none'");
  return page;
}

// Figures of the worst nodes first, as many as there is room for.
StatusOr<std::pair<std::string, view::ExportedGraphs>> MakePage(view::Viewer* viewer, const std::string& name,
                                                                const ExportArgs& args) {
  const std::string page = WithoutServer(std::string(serve::PageHtml()));
  const uint64_t most = args.max_size * kMegabyte;
  view::ExportChoice choice{args.steps, args.ranks, most * kUsualRatio};
  for (int i = 0; i < kMostTries; ++i) {
    MSP_ASSIGN_OR_RETURN(view::ExportedGraphs graphs, viewer->Export(name, choice));
    MSP_ASSIGN_OR_RETURN(std::string html, FillPage(page, graphs.json));
    graphs.json.clear();
    if (html.size() <= most) return std::pair(std::move(html), std::move(graphs));
    choice.details_bytes = i + 2 == kMostTries ? 0 : choice.details_bytes / 4;
  }
  return BadInput(
      fmt::format("the graphs of {} take more than {} MB: choose fewer with --step and --rank, or allow more "
                  "with --max_size",
                  args.file, args.max_size));
}

Status RunExport(const ExportArgs& args, bool json) {
  if (serve::PageHtml().find(kDataMark) == std::string_view::npos) {
    return UsageError(
        "this msprobe was built without its pages: build it with Node.js installed (tools/setup.sh) and "
        "-DMSPROBE_WEB=ON");
  }
  if (!IsRegularFile(args.file)) {
    return BadInput(fmt::format("{} is no file: give a .vis.db file that graph_visualize has written", args.file));
  }
  MSP_ASSIGN_OR_RETURN(auto viewer, view::Viewer::Open(args.file));
  MSP_ASSIGN_OR_RETURN(const auto list, viewer->Files());
  if (list.files.empty()) {
    return BadInput(list.skipped.empty() ? fmt::format("{} is not a .vis.db file", args.file) : list.skipped[0].reason);
  }
  MSP_ASSIGN_OR_RETURN(const auto made, MakePage(viewer.get(), list.files[0].file, args));
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(args.output));
  MSP_RETURN_IF_ERROR(file.Write(made.first));
  MSP_RETURN_IF_ERROR(file.CommitResult());
  const view::ExportedGraphs& graphs = made.second;
  if (json) {
    std::string line = "{\"page\":";
    AppendJsonString(line, file.path());
    fmt::print("{},\"bytes\":{},\"graphs\":{},\"nodes\":{},\"details\":{}}}\n", line, made.first.size(), graphs.graphs,
               graphs.nodes, graphs.details);
    return OkStatus();
  }
  fmt::print("page: {} ({:.1f} MB, {} {}, {} nodes)\n", OneLine(file.path()),
             static_cast<double>(made.first.size()) / kMegabyte, graphs.graphs, graphs.graphs == 1 ? "graph" : "graphs",
             graphs.nodes);
  if (graphs.details < graphs.nodes) {
    fmt::print("figures: of {} nodes, the worst first; those of {} did not fit (--max_size {})\n", graphs.details,
               graphs.nodes - graphs.details, args.max_size);
  }
  return OkStatus();
}

}  // namespace

void RegisterExport(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<ExportArgs>();
  CLI::App* cmd =
      app.add_subcommand("export", "write the graphs of a .vis.db file as one HTML page that needs no server");
  cmd->add_option("file", args->file, "a .vis.db file")->required();
  cmd->add_option("-o,--output_path", args->output, "the page to write, FILE.html")->required();
  cmd->add_option("--step", args->steps, "only these steps")->delimiter(',');
  cmd->add_option("--rank", args->ranks, "only these ranks")->delimiter(',');
  cmd->add_option("--max_size", args->max_size, "MB that the page may take; figures of good nodes are left out first")
      ->check(CLI::Range(1, 500))
      ->capture_default_str();
  cmd->add_flag("--json", context->json, "print the summary as one JSON object");
  cmd->callback([args, context] { context->status = RunExport(*args, context->json); });
}

}  // namespace msprobe
