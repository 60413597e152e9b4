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

/// What users call a command, or a part of one.
constexpr std::array kOtherWords{
#define MSP_OTHER_WORD(word, command) Earlier{word, command},
#include "cli/help/other_words.def"
};

}  // namespace

std::optional<std::string_view> CommandOfWord(std::string_view name) {
  for (const Earlier& word : kOtherWords) {
    if (word.name == name) return word.instead;
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
