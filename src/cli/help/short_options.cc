#include "cli/help/short_options.h"

#include <array>
#include <utility>

namespace msprobe {
namespace {

// CLI11 reads "-tp" as "-t p"; the command line we are compatible with has many such options.
constexpr std::array<std::pair<std::string_view, std::string_view>, 25> kShort{{
    {"-tp", "--target_path"},
    {"-config", "--config-path"},
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
    {"-vc", "--verl-compare"},
    {"-vv", "--verl-verify"},
    {"-sc", "--slime-compare"},
    {"-npu", "--npu_csv_path"},
    {"-gpu", "--gpu_csv_path"},
    {"-api_info", "--api_info_file"},
    {"-csv_path", "--result_csv_path"},
    {"-save_error_data", "--save_error_data"},
}};

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

std::string_view ShortOf(std::string_view option) {
  for (const auto& [brief, full] : kShort) {
    if (full == option) return brief;
  }
  return {};
}

}  // namespace msprobe
