#include "cli/earlier_commands.h"

#include <array>

namespace msprobe {
namespace {

struct Earlier {
  std::string_view name, instead;
};

constexpr std::string_view kOffline =
    "msprobe does not run models on an NPU; 'msprobe run -- python script.py' records what a PyTorch model computes";

constexpr std::array<Earlier, 2> kEarlier{{
    {"offline_dump", kOffline},
    {"install_deps", "msprobe has no dependencies to install; 'msprobe --help' lists its commands"},
}};

/// What users call a part of another command.
constexpr std::array<Earlier, 4> kParts{{
    {"resume", "msprobe certify --resume -o DIR -- python train.py"},
    {"twice", "msprobe certify --twice -o DIR -- python train.py"},
    {"anatomy", "msprobe compare -tp A -gp B -o DIR"},
    {"replay", "msprobe optimizer_replay RECORD"},
}};

}  // namespace

std::optional<std::string_view> CommandOfPart(std::string_view name) {
  for (const Earlier& part : kParts) {
    if (part.name == name) return part.instead;
  }
  return std::nullopt;
}

std::optional<std::string_view> InsteadOfEarlier(std::string_view name) {
  for (const Earlier& earlier : kEarlier) {
    if (earlier.name == name) return earlier.instead;
  }
  return std::nullopt;
}

}  // namespace msprobe
