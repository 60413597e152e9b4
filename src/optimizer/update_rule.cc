#include "optimizer/update_rule.h"

#include <array>
#include <utility>

namespace msprobe {

std::string_view OptimizerKindName(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kUnknown: return "unknown";
    case OptimizerKind::kSgd: return "SGD";
    case OptimizerKind::kAdam: return "Adam";
    case OptimizerKind::kAdamW: return "AdamW";
    case OptimizerKind::kLion: return "Lion";
    case OptimizerKind::kAdafactor: return "Adafactor";
    case OptimizerKind::kMuon: return "Muon";
  }
  return "";
}

OptimizerKind ParseOptimizerKind(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, OptimizerKind>, 7> kWords{{{"adafactor", OptimizerKind::kAdafactor},
                                                                              {"adamw", OptimizerKind::kAdamW},
                                                                              {"adam", OptimizerKind::kAdam},
                                                                              {"lion", OptimizerKind::kLion},
                                                                              {"muon", OptimizerKind::kMuon},
                                                                              {"momentum", OptimizerKind::kSgd},
                                                                              {"sgd", OptimizerKind::kSgd}}};
  std::string lower;
  for (const char c : name) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const std::string_view other : {"nadam", "radam", "adamax", "sparseadam", "bitadam", "oneadam", "adamp"}) {
    if (lower.find(other) != std::string::npos) return OptimizerKind::kUnknown;
  }
  for (const auto& [word, kind] : kWords) {
    if (lower.find(word) != std::string::npos) return kind;
  }
  return OptimizerKind::kUnknown;
}

bool IsPublishedRule(std::string_view name) {
  std::string lower;
  for (const char c : name) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const std::string_view way : {"deepspeed", "distributed", "multitensor", "foreach", "hybrid", "fused", "torch",
                                     "cast", "fp32state", "cpu", "npu"}) {
    for (size_t at = lower.find(way); at != std::string::npos; at = lower.find(way)) lower.erase(at, way.size());
  }
  for (const std::string_view known :
       {"adamw", "adam", "adamweightdecay", "sgd", "momentum", "lion", "adafactor", "muon"}) {
    if (lower == known) return true;
  }
  return false;
}

}  // namespace msprobe
