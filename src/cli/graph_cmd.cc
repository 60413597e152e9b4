// msprobe graph_visualize
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/text.h"
#include "cli/commands.h"
#include "graph/visualize.h"

namespace msprobe {
namespace {

struct GraphArguments {
  GraphSettings options;
  bool tensor_log = false, progress_log = false;
  std::vector<std::string> layer_mapping, order;
  std::vector<int> rank_size, tp, pp, vpp;
  std::string file_type = "db";
  bool has_layer_mapping = false;
};

// The line that the page reads while a conversion runs.
void PrintProgressLine(int percent, bool running, const std::string& error) {
  std::string line =
      fmt::format("PROGRESS: {{\"current_progress\": {}, \"process_running\": {}, \"error_msg\": [", percent, running);
  if (!error.empty()) AppendJsonString(line, error);
  line += "]}\n";
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

Status CheckSupported(const GraphArguments& args) {
  if (args.has_layer_mapping) {
    return UsageError("--layer_mapping is not supported yet: leave -lm out, renamed layers then show as unmatched");
  }
  if (!args.rank_size.empty() || !args.tp.empty() || !args.pp.empty() || !args.vpp.empty() || !args.order.empty()) {
    return UsageError("merging ranks is not supported yet: leave out --rank_size, --tp, --pp, --vpp and --order");
  }
  if (args.file_type != "db")
    return UsageError("--file_type json needs merged ranks, which are not supported yet: leave it out");
  return OkStatus();
}

class ProgressPrinter {
 public:
  explicit ProgressPrinter(bool log) : log_(log), bar_(!log && isatty(STDERR_FILENO)) {}
  ~ProgressPrinter() { Clear(); }
  void Show(int percent) {
    if (percent == shown_) return;
    shown_ = percent;
    if (log_) PrintProgressLine(percent, percent < 100, "");
    if (bar_) std::fputs(fmt::format("\r[msprobe] graph {:3d}%", percent).c_str(), stderr);
  }
  void Clear() {
    if (bar_ && shown_ >= 0) std::fputs("\r\033[K", stderr);
    shown_ = -1;
  }
  int shown() const { return std::max(shown_, 0); }

 private:
  bool log_, bar_;
  int shown_ = -1;
};

Status RunGraph(GraphArguments* args, bool json) {
  ProgressPrinter printer(args->progress_log);
  const auto run = [&]() -> Status {
    MSP_RETURN_IF_ERROR(CheckSupported(*args));
    GraphSettings& options = args->options;
    options.progress = [&](int percent) { printer.Show(percent); };
    options.warning = [&](const std::string& text) {
      printer.Clear();
      PrintWarning(text);
    };
    MSP_ASSIGN_OR_RETURN(const GraphSummary summary, VisualizeGraph(options));
    printer.Clear();
    const bool compare = !options.golden.empty();
    const std::string text = (json ? GraphSummaryJson : GraphSummaryText)(summary, compare, options.overflow_check);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return OkStatus();
  };
  Status status = run();
  if (!status.ok() && args->progress_log) PrintProgressLine(printer.shown(), false, status.message());
  return status;
}

}  // namespace

void RegisterGraphVisualize(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<GraphArguments>();
  CLI::App* cmd = app.add_subcommand("graph_visualize",
                                     "Build the graph of a dump, or of two dumps side by side, as a .vis.db file");
  cmd->add_option("--target_path", args->options.target, "(-tp) dump to look at: a rank, step or whole dump directory")
      ->required();
  cmd->add_option("--golden_path", args->options.golden,
                  "(-gp) dump to compare with; without it the graph is only built");
  cmd->add_option("-o,--output_path", args->options.output, "directory for the result, made if absent")->required();
  cmd->add_flag("--fuzzy_match", args->options.fuzzy, "(-fm) match calls by name and order, not by call number");
  cmd->add_flag("--overflow_check", args->options.overflow_check, "(-oc) mark nodes where infinities and NaNs appear");
  cmd->add_flag("--is_print_compare_log", args->tensor_log, "(-tensor_log) accepted; tensors are not compared here");
  cmd->add_flag("--is_print_progress_log", args->progress_log, "(-progress_log) print PROGRESS lines for the page");
  cmd->add_flag("--json", context->json, "print the summary as JSON");
  CLI::Option* mapping =
      cmd->add_option("--layer_mapping", args->layer_mapping, "(-lm) not supported yet")->expected(0, 1);
  cmd->add_option("--rank_size", args->rank_size, "not supported yet")->expected(1, 2);
  cmd->add_option("--tp", args->tp, "not supported yet")->expected(1, 2);
  cmd->add_option("--pp", args->pp, "not supported yet")->expected(1, 2);
  cmd->add_option("--vpp", args->vpp, "not supported yet")->expected(1, 2);
  cmd->add_option("--order", args->order, "not supported yet")->expected(1, 2);
  cmd->add_option("--file_type", args->file_type, "db")->check(CLI::IsMember({"db", "json"}));
  cmd->callback([args, context, mapping] {
    args->has_layer_mapping = mapping->count() > 0;
    context->status = RunGraph(args.get(), context->json);
  });
}

}  // namespace msprobe
