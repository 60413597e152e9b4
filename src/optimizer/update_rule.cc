#include "optimizer/update_rule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
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

bool IsSameRule(const UpdateRule& a, const UpdateRule& b) {
  const double slack = std::max({1e-5, a.noise, b.noise});
  const auto near = [&](double x, double y) {
    return x == y || (std::isnan(x) && std::isnan(y)) ||
           std::fabs(x - y) <= slack * std::max(std::fabs(x), std::fabs(y));
  };
  // Without decay its place does nothing, without momentum its dampening.
  const bool decays = a.weight_decay != 0 || b.weight_decay != 0;
  const auto switches = [&](const UpdateRule& r) {
    return std::tuple(r.kind, r.nesterov, r.amsgrad, r.maximize, decays ? r.decay : DecayPlace::kDecoupled, r.eps_place,
                      r.root, r.exchanged_corrections, r.old_moment, r.whole_gradient, r.correction1, r.correction2,
                      r.count, r.from_copy, r.step_offset, r.sign_of_new_moment, r.frozen, r.held_bits, r.relative_step,
                      r.clips_update, r.scales_by_weight, r.warms_up, r.adjust_lr);
  };
  return switches(a) == switches(b) && near(a.lr, b.lr) && near(a.weight_decay, b.weight_decay) &&
         near(a.beta1, b.beta1) && near(a.beta2, b.beta2) && near(a.eps, b.eps) && near(a.momentum, b.momentum) &&
         near(a.dampening, b.dampening) && near(a.gradient_scale, b.gradient_scale);
}

}  // namespace msprobe
