#include "cli/commands.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <exception>
#include <utility>

#include "base/interrupt.h"

namespace msprobe {
namespace {

// CLI11 reads "-tp" as "-t p"; the command line we are compatible with has many such options.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kShort{{
    {"-tp", "--target_path"},
    {"-gp", "--golden_path"},
    {"-fm", "--fuzzy_match"},
    {"-cm", "--cell_mapping"},
    {"-am", "--api_mapping"},
    {"-dm", "--data_mapping"},
    {"-lm", "--layer_mapping"},
    {"-da", "--diff_analyze"},
    {"-oc", "--overflow_check"},
    {"-hl", "--highlight"},
    {"-fr", "--fusion_rule_file"},
    {"-qfr", "--quant_fusion_rule_file"},
    {"-cfr", "--close_fusion_rule_file"},
    {"-ofs", "--onnx_fusion_switch"},
    {"-tensor_log", "--is_print_compare_log"},
    {"-progress_log", "--is_print_progress_log"},
}};

// The names that earlier releases gave to the same commands.
constexpr std::array<std::pair<std::string_view, std::string_view>, 1> kOldNames{{{"graph", "graph_visualize"}}};

int Report(const Status& status) {
  std::fflush(stdout);
  if (!status.ok()) {
    fmt::print(stderr, "{}{}\n", status.code() == Code::kFindings ? "" : "[msprobe] error: ", status.message());
  }
  return static_cast<int>(status.code());
}

}  // namespace

std::vector<std::string> ExpandShortOptions(std::vector<std::string> args) {
  for (std::string& arg : args) {
    if (arg == "--") break;
    const size_t eq = arg.find('=');
    const std::string_view key = std::string_view(arg).substr(0, eq);
    for (const auto& [brief, full] : kShort) {
      if (key != brief) continue;
      arg = std::string(full) + (eq == std::string::npos ? "" : arg.substr(eq));
      break;
    }
  }
  return args;
}

int RunCommand(std::vector<std::string> args) {
  CommandContext context;
  CLI::App app{"msprobe: find where two runs of a model part ways, and where one run goes wrong by itself.", "msprobe"};
  app.set_version_flag("-V,--version", "msprobe " MSPROBE_VERSION);
  app.add_option("-f,--framework", context.framework,
                 "framework of the dumps (older command form; found by itself otherwise)")
      ->check(CLI::IsMember({"pytorch", "mindspore"}));
  app.require_subcommand(1);
  app.footer("Run 'msprobe COMMAND --help' for the options of a command.");
  RegisterCompare(app, &context);
  RegisterGraphVisualize(app, &context);
  RegisterServe(app, &context);

  args = ExpandShortOptions(std::move(args));
  for (std::string& arg : args) {
    for (const auto& [old_name, name] : kOldNames) {
      if (arg == old_name) {
        arg = name;
      }
    }
    if (!arg.empty() && arg[0] != '-') break;
  }
  std::vector<std::string> reversed(args.rbegin(), args.rend());  // CLI11 takes the arguments back to front
  InstallInterruptHandler();
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(e);  // --help, --version
    return Report(UsageError(fmt::format("{}: see 'msprobe --help'", e.what())));
  } catch (const std::bad_alloc&) {
    return Report(InternalError("out of memory: close other programs or set MSPROBE_THREADS=1"));
  }
  return Report(context.status);
}

}  // namespace msprobe
