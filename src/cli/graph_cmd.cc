// msprobe graph_visualize
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/file.h"
#include "base/message.h"
#include "base/temp_directory.h"
#include "cli/commands.h"
#include "cli/context/fail_on.h"
#include "cli/context/output_options.h"
#include "cli/context/register_commands.h"
#include "cli/graph/graph_structure.h"
#include "cli/graph/ray_engine.h"
#include "cli/older_graph.h"
#include "diagnose/story/story_judgement.h"
#include "dump/reader.h"
#include "graph/build/visualize.h"
#include "graph/node/field_text.h"
#include "import/kernel_dump.h"
#include "jobs/kernel_graph.h"
#include "json/writer.h"
#include "parallel/merge.h"

namespace msprobe {
namespace {

struct GraphArguments {
  GraphSettings options;
  bool tensor_log = false, progress_log = false;
  std::vector<std::string> order, layout;
  bool plan = false;
  std::vector<int> rank_size, tp, pp, vpp, cp, ep;
  std::string file_type = "db", print_template;
  GraphStructureOptions structure;
  std::string engine = "local";
  std::optional<size_t> part;
};

// The line that the page reads while a conversion runs.
void PrintProgressLine(int percent, bool running, const std::string& error) {
  std::string line = "PROGRESS: ";
  JsonWriter json(&line);
  json.BeginObject();
  json.Member("current_progress", percent);
  json.Member("process_running", running);
  json.Member("error_msg", error.empty() ? std::vector<std::string>() : std::vector{error});
  json.EndObject();
  line += "\n";
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

/// Of the target (side 0) or the golden run (side 1).
ParallelLayout LayoutOf(const GraphArguments& args, size_t side) {
  ParallelLayout out;
  const auto set = [side](const auto& values, auto* to) {
    if (side < values.size()) *to = values[side];
  };
  // One value of these in a comparison is for neither side: only two say which side is meant.
  const size_t sides = args.rank_size.size();
  const auto set_all = [&](const auto& values, auto* to) {
    if (values.size() == sides) set(values, to);
  };
  set(args.rank_size, &out.rank_size);
  set(args.tp, &out.tp);
  set(args.pp, &out.pp);
  set(args.layout, &out.tensors);
  set_all(args.vpp, &out.vpp);
  set_all(args.cp, &out.cp);
  set_all(args.ep, &out.ep);
  set_all(args.order, &out.order);
  return out;
}

/// From the command line to the settings; kUsage for what does not go together.
Status ReadArguments(GraphArguments* args) {
  GraphSettings& options = args->options;
  if (options.output.empty() && !options.target.empty()) {
    return UsageError(
        Msg("graph_visualize needs -o DIRECTORY, where the graph is written: see 'msprobe graph_visualize --help'"));
  }
  if (options.target.empty()) {
    return UsageError(Msg("graph_visualize needs -tp TARGET and -o DIRECTORY: see 'msprobe graph_visualize --help'"));
  }
  const bool compare = !options.golden.empty();
  if (!compare && (options.layer_mapping || !options.layer_template.empty())) {
    return UsageError(Msg("-lm/--layer_mapping and --template say how two runs are matched: add -gp GOLDEN"));
  }
  const bool structures = args->structure.always || !args->structure.suggest_mapping.empty();
  if (structures && (!compare || !args->rank_size.empty())) {
    return UsageError(
        Msg("--structure and --suggest_mapping compare rank with rank: add -gp GOLDEN, without --rank_size"));
  }
  if (!compare && !options.thresholds.empty()) {
    return UsageError(Msg("--thresholds says how two runs are judged: add -gp GOLDEN"));
  }
  options.json_files = args->file_type == "json";
  if (args->rank_size.empty()) {
    if (!args->cp.empty() || !args->ep.empty() || !args->layout.empty() || args->plan) {
      return UsageError(Msg("--cp, --ep, --layout and --plan only apply when ranks are merged: add --rank_size"));
    }
    // Scripts that worked go on.
    if (!args->tp.empty() || !args->pp.empty() || !args->vpp.empty() || !args->order.empty()) {
      PrintWarning(
          Msg("--tp, --pp, --vpp and --order do nothing unless ranks are merged: add --rank_size to merge them"));
    }
    return OkStatus();
  }
  const size_t sides = compare ? 2 : 1;
  if (args->rank_size.size() != sides || args->tp.size() != sides || args->pp.size() != sides) {
    return UsageError(
        compare ? Msg("merging ranks to compare needs two values for --rank_size, --tp and --pp: target, golden")
                : Msg("merging ranks needs one value each for --rank_size, --tp and --pp"));
  }
  if (!options.ranks.empty()) {
    return UsageError(Msg("--ranks chooses graphs of single ranks, and --rank_size merges them: give one of the two"));
  }
  // A rank by itself has nothing to merge.
  MSP_ASSIGN_OR_RETURN(const DumpPath target, ResolveDumpPath(options.target));
  if (target.kind == PathKind::kRank || target.kind == PathKind::kFile) {
    if (options.json_files || args->plan) return BadInput(Msg("{} is a single rank: nothing to merge", options.target));
    return OkStatus();
  }
  options.target_layout = LayoutOf(*args, 0);
  if (compare) options.golden_layout = LayoutOf(*args, 1);
  return OkStatus();
}

/// The words that build one part of the same graph.
std::vector<std::string> PartCommand(const GraphArguments& args) {
  const GraphSettings& o = args.options;
  std::vector<std::string> out = {"graph_visualize", "--target_path", o.target};
  const auto add = [&out](bool given, std::initializer_list<std::string> words) {
    if (given) out.insert(out.end(), words);
  };
  add(!o.golden.empty(), {"--golden_path", o.golden});
  add(o.fuzzy, {"--fuzzy_match"});
  add(o.overflow_check, {"--overflow_check"});
  add(o.layer_mapping && !o.layer_mapping->empty(), {"--layer_mapping", o.layer_mapping.value_or("")});
  add(o.layer_mapping && o.layer_mapping->empty(), {"--layer_mapping"});
  add(!o.layer_template.empty(), {"--template", o.layer_template});
  add(!o.thresholds.empty(), {"--thresholds", o.thresholds});
  add(o.plain, {"--plain"});
  add(!o.ranks.empty(), {"--ranks", o.ranks});
  const auto sizes = [&out](const char* option, const auto& values) {
    if (values.empty()) return;
    out.emplace_back(option);
    for (const auto& v : values) out.push_back(fmt::format("{}", v));
  };
  sizes("--rank_size", args.rank_size);
  sizes("--tp", args.tp);
  sizes("--pp", args.pp);
  sizes("--vpp", args.vpp);
  sizes("--cp", args.cp);
  sizes("--ep", args.ep);
  sizes("--order", args.order);
  sizes("--layout", args.layout);
  return out;
}

StatusOr<GraphSummary> Build(const GraphArguments& args) {
  if (args.engine == "ray") {
    if (args.options.json_files || args.tensor_log) {
      return UsageError(Msg("--engine ray builds parts of a database: leave out --file_type json and -tensor_log"));
    }
    RayEngine engine(PartCommand(args), args.options.output);
    return VisualizeGraph(args.options, engine.Parts());
  }
  GraphParts parts;
  parts.only = args.part;
  return VisualizeGraph(args.options, parts);
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

/// Kernel dumps of MindSpore, as dumps of modules in a directory of their own; nothing where the paths are no kernels.
StatusOr<std::optional<TempDirectory>> TakeKernels(GraphSettings* options) {
  std::vector<std::string*> paths = {&options->target};
  if (!options->golden.empty()) paths.push_back(&options->golden);
  const auto is_kernels = [](const std::string* path) { return LooksLikeKernels(*path); };
  const size_t kernels = static_cast<size_t>(std::count_if(paths.begin(), paths.end(), is_kernels));
  if (kernels == 0) return std::optional<TempDirectory>();
  if (kernels < paths.size()) {
    const bool target = is_kernels(&options->target);
    return BadInput(
        Msg("{} holds kernels (rank_N) and {} does not: give two kernel dumps, or two dumps of level L0 or mix",
            (target ? options->target : options->golden), (target ? options->golden : options->target)));
  }
  MSP_RETURN_IF_ERROR(MakeOutputDir(options->output));
  MSP_ASSIGN_OR_RETURN(TempDirectory temp, TempDirectory::Create(options->output, "kernel_graph"));
  for (std::string* path : paths) {
    const std::string out = JoinPath(temp.path(), path == paths.front() ? "target" : "golden");
    MSP_RETURN_IF_ERROR(WriteKernelsAsDump(*path, out, options->warning));
    *path = out;
  }
  return std::optional<TempDirectory>(std::move(temp));
}

Status RunGraph(GraphArguments* args, const CommandContext& context) {
  const bool json = context.json;
  if (const auto& name = args->options.layer_template; name == "list" || !args->print_template.empty()) {
    return PrintLayerTemplates(args->print_template, json);
  }
  ProgressPrinter printer(args->progress_log);
  bool written = false;  // what lacks is said in the graph itself
  const auto run = [&]() -> Status {
    MSP_RETURN_IF_ERROR(ReadArguments(args));
    GraphSettings& options = args->options;
    options.progress = [&](int percent) { printer.Show(percent); };
    options.warning = [&](const Message& text) {
      printer.Clear();
      PrintWarning(text);
    };
    if (!json && !args->progress_log) {
      options.before = [&](const Message& text) {
        printer.Clear();
        PrintForPeople(text);
        std::fflush(stdout);
      };
    }
    if (args->tensor_log) {
      FILE* to = json ? stderr : stdout;  // stdout holds the summary then, for programs
      options.log = [&printer, to](const std::string& lines) {
        printer.Clear();
        std::fwrite(lines.data(), 1, lines.size(), to);
      };
    }
    printer.Show(0);
    MSP_ASSIGN_OR_RETURN(const std::optional<TempDirectory> kernels, TakeKernels(&options));
    if (args->plan) {
      MSP_ASSIGN_OR_RETURN(const std::string plan, MergePlanJson(options));
      printer.Clear();
      std::fwrite(plan.data(), 1, plan.size(), stdout);
      return OkStatus();
    }
    MSP_ASSIGN_OR_RETURN(const GraphSummary summary, Build(*args));
    printer.Clear();
    const bool compare = !options.golden.empty();
    GraphStructures structures;
    // Most dumps say little about structure, and reading them again takes a while.
    const bool listed = !args->structure.suggest_mapping.empty() || args->structure.always ||
                        summary.task == GraphTaskName(CompareMode::kStructure);
    if (compare && listed && args->rank_size.empty() && !args->part) {
      MSP_ASSIGN_OR_RETURN(structures, CompareGraphStructures(options, args->structure, summary.file));
    }
    if (json) {
      PrintJson(GraphSummaryJson(summary, compare, options.overflow_check, structures.json));
    } else {
      PrintForPeople(GraphSummaryText(summary, compare, options.overflow_check));
      PrintForPeople(structures.text);
    }
    written = summary.damaged.empty();
    MSP_RETURN_IF_ERROR(GraphSummaryStatus(summary));
    if (!context.fail_on) return OkStatus();
    std::vector<Judgement> judgements;
    if (summary.story) judgements = JudgementsOf(*summary.story, LanguageFor(context));
    return StatusOf(Conclude(std::move(judgements)), context.fail_on, {});
  };
  Status status = run();
  if (!status.ok() && !written && args->progress_log) PrintProgressLine(printer.shown(), false, status.message());
  return status;
}

}  // namespace

void RegisterGraphVisualize(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<GraphArguments>();
  CLI::App* cmd =
      app.add_subcommand("graph_visualize", "build the graph of one dump, or of two side by side, as a .vis.db file");
  GraphSettings& options = args->options;
  options.output.clear();
  cmd->add_option("--target_path,target", options.target, "-tp: dump to visualize: a rank, step or dump directory");
  cmd->add_option("--golden_path,golden", options.golden,
                  "-gp: dump to compare with; without it only the graph is built");
  cmd->add_option("-o,--output_path", options.output, "directory for the result, created if missing");
  auto input = std::make_shared<std::string>();
  cmd->add_option("-i,--input_path", *input, "graph.json of mindstudio-probe 8.1.1: writes a .vis file of JSON");
  cmd->add_flag("--fuzzy_match", options.fuzzy, "-fm: match calls by name and order, not by call number");
  cmd->add_flag("--overflow_check", options.overflow_check, "-oc: mark nodes where infinities and NaNs appear");
  cmd->add_option_function<std::vector<std::string>>(
         "--layer_mapping",
         [args](const std::vector<std::string>& files) {
           args->options.layer_mapping = files.empty() ? "" : files.front();
         },
         "-lm: match by place in the model; YAML file, class: {target child: golden child}")
      ->expected(0, 1)
      ->option_text("FILE");
  cmd->add_option("--template", options.layer_template, "name of a built-in layer mapping; \"list\" prints the names");
  cmd->add_option("--print_template", args->print_template, "print a built-in layer mapping as YAML and stop");
  cmd->add_option("--thresholds", options.thresholds,
                  "YAML file of the thresholds for judging nodes (see compare --print_thresholds)");
  cmd->add_flag("--structure", args->structure.always,
                "also list modules that only one model has, or that moved or were renamed (always for task structure)");
  cmd->add_option(
         "--suggest_mapping,--suggest-mapping", args->structure.suggest_mapping,
         "suggest a layer mapping (-lm) for modules that are named differently in the golden run; check it before use")
      ->option_text("FILE");
  cmd->add_flag("--is_print_compare_log", args->tensor_log, "-tensor_log: print a line for each item of tensor dumps");
  cmd->add_flag("--is_print_progress_log", args->progress_log, "-progress_log: print PROGRESS lines for the page");
  cmd->add_flag("--plain", options.plain, "write the tables of mindstudio-probe and nothing else; files are larger")
      ->envname("MSPROBE_PLAIN");
  cmd->add_flag("--json", context->json, "print the summary as JSON");
  AddFailOn(cmd, context);
  AddOutputBound(cmd, &options.ranks, &options.out_limit);
  cmd->add_option("--rank_size", args->rank_size, "merge the ranks: number of ranks (target, golden)")->expected(1, 2);
  cmd->add_option("--tp", args->tp, "when merging: tensor parallel size")->expected(1, 2);
  cmd->add_option("--pp", args->pp, "when merging: pipeline parallel size")->expected(1, 2);
  cmd->add_option("--vpp", args->vpp, "when merging: model chunks of a pipeline stage")->expected(1, 2);
  cmd->add_option("--cp", args->cp, "when merging: context parallel size")->expected(1, 2);
  cmd->add_option("--ep", args->ep, "when merging: expert parallel size")->expected(1, 2);
  cmd->add_option("--layout", args->layout, "when merging: YAML file of how tensors are split")->expected(1, 2);
  cmd->add_flag("--plan", args->plan, "when merging: print the plan and its findings as JSON and stop");
  cmd->add_option("--order", args->order, "when merging: order of the rank dimensions, such as tp-cp-ep-dp-pp")
      ->expected(1, 2);
  cmd->add_option("--file_type", args->file_type, "when merging without -gp: db or json")
      ->check(CLI::IsMember({"db", "json"}));
  cmd->add_option("--engine", args->engine,
                  "where ranks are built: local, or ray for tasks on a Ray cluster (msprobe[ray])")
      ->check(CLI::IsMember({"local", "ray"}))
      ->capture_default_str();
  cmd->add_option("--part", args->part, "build one graph, for another process to put together")->group("");
  cmd->callback([args, context, input] {
    context->status = input->empty() ? RunGraph(args.get(), *context) : RunOlderGraph(args->options, *input);
  });
}

}  // namespace msprobe
