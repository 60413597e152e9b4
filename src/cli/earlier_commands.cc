#include "cli/earlier_commands.h"

#include <array>

namespace msprobe {
namespace {

struct Earlier {
  std::string_view name, instead;
};

constexpr std::string_view kCheckOps =
    "dump tensors in both runs, then 'msprobe compare -tp DUMP -gp DUMP -o OUT --replay' runs the recorded functions "
    "again in float64 and says which side is closer";
constexpr std::string_view kOffline =
    "msprobe does not run models on an NPU; 'msprobe run -- python script.py' records what a PyTorch model computes";

constexpr std::array<Earlier, 8> kEarlier{{
    {"acc_check", kCheckOps},
    {"multi_acc_check", kCheckOps},
    {"run_ut", kCheckOps},
    {"multi_run_ut", kCheckOps},
    {"run_overflow_check", "'msprobe overflow_check -i DUMP -o OUT' finds where NaN and infinities come from"},
    {"op_generate",
     "'msprobe compare -tp DUMP -gp DUMP -o OUT --repro DIR' writes a script that calls the function that differs "
     "first"},
    {"offline_dump", kOffline},
    {"install_deps", "msprobe has no dependencies to install; 'msprobe --help' lists its commands"},
}};

}  // namespace

std::optional<std::string_view> InsteadOfEarlier(std::string_view name) {
  for (const Earlier& earlier : kEarlier) {
    if (earlier.name == name) return earlier.instead;
  }
  return std::nullopt;
}

}  // namespace msprobe
