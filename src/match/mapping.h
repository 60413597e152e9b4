// What the user says about which op stands against which: the options, and the files that they name, read and checked.
#pragma once

#include <msprobe/compare.h>

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace msprobe {

/// One entry of an api mapping: calls of `target` stand against calls of `golden`, and only the listed items do.
struct ApiRule {
  std::string target, golden;                               // "Functional.dense", "Functional.linear"
  std::vector<std::pair<std::string, std::string>> inputs;  // positions, or names of keyword arguments
  std::vector<std::pair<std::string, std::string>> outputs;
  std::vector<std::pair<std::string, std::string>> parameters;
  std::vector<std::pair<std::string, std::string>> gradients;  // of parameters
};

/// Children of the modules of one class: {"linear_q": "q_proj"}; keys and values may span several levels ("a.b").
struct LayerRule {
  std::string type;  // class of the target's module, or "TopLayer"
  std::vector<std::pair<std::string, std::string>> children;
  int line = 0;  // of the first child in the file, from 1
};

struct Mapping {
  enum class Fused : uint8_t { kNone, kFsdp, kMegatron };
  bool fuzzy = false;
  bool cell = false, api = false, data = false, layer = false;
  std::vector<std::pair<std::string, std::string>> cells;  // names without "Module." and call: target, golden
  std::vector<ApiRule> apis;
  std::vector<std::pair<std::string, std::string>> items;  // full item names: target, golden
  std::vector<LayerRule> layers;
  std::string layer_file;      // that they are of: its path, or "template NAME"; "" without one
  Fused fused = Fused::kNone;  // training against inference: projections that the inference engine fuses
  bool by_name = false;        // modules of wrapped models and of another class stand alone, as the earlier tool has it
  bool name_a_line = false;    // names of fused items on a line each, as workbooks have them
};

/// kUsage for options that exclude each other; kBadInput with path and line for files that are not a mapping of the
/// kind.
StatusOr<Mapping> LoadMapping(const MappingSettings& settings);

}  // namespace msprobe
