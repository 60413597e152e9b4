// How an optimizer updates a weight, with every term that implementations get wrong as a value that can be set.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace msprobe {

enum class OptimizerKind : uint8_t { kUnknown, kSgd, kAdam, kAdamW, kLion, kAdafactor, kMuon };
std::string_view OptimizerKindName(OptimizerKind kind);
/// Whether a class of that name is one of the published rules, perhaps fused or distributed, and not a relative.
bool IsPublishedRule(std::string_view name);
/// From the name of a class: "AdamW", "FusedAdam", "DistributedMuon"; kUnknown for others.
OptimizerKind ParseOptimizerKind(std::string_view name);

enum class EpsPlace : uint8_t {
  kOutside,           ///< sqrt(v / c2) + eps
  kInsideRoot,        ///< sqrt(v / c2 + eps)
  kBeforeCorrection,  ///< (sqrt(v) + eps) / sqrt(c2)
};
enum class DecayPlace : uint8_t {
  kDecoupled,    ///< w -= lr * decay * w
  kCoupled,      ///< g += decay * w
  kWithoutRate,  ///< w -= decay * w
  kAfterUpdate,  ///< w -= lr * decay * w, of the weight that is updated already
};
/// How the second moment v becomes what the first is divided by; c2 is its correction.
enum class RootPlace : uint8_t {
  kOfBoth,    ///< sqrt(v / c2)
  kOfMoment,  ///< sqrt(v) / c2
  kNone,      ///< v / c2
};

enum class StepCount : uint8_t {
  kOwn,         ///< each weight has its count
  kEachWeight,  ///< one for all weights, counted at each of them
  kEachGroup,   ///< one for all groups, counted at each of them
};

struct UpdateRule {
  OptimizerKind kind = OptimizerKind::kUnknown;
  double lr = 0, weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double momentum = 0, dampening = 0;
  bool nesterov = false, amsgrad = false, maximize = false;
  DecayPlace decay = DecayPlace::kDecoupled;
  EpsPlace eps_place = EpsPlace::kOutside;
  RootPlace root = RootPlace::kOfBoth;
  bool exchanged_corrections = false;           // each moment has the correction of the other
  bool old_moment = false;                      // the update takes the first moment of the step before
  bool whole_gradient = false;                  // the first moment takes the gradient, not (1 - beta1) of it
  bool correction1 = true, correction2 = true;  // of the bias of the first and second moment
  StepCount count = StepCount::kOwn;            // what the corrections take for the count of steps
  bool from_copy = false;                       // each step starts from a finer copy of the weight that stays as it is
  int64_t step_offset = 0;                      // added to the count of steps in the corrections
  double gradient_scale = 1;                    // the gradient is multiplied by it first
  bool sign_of_new_moment = false;              // Lion: the sign is taken of the moment after its update
  bool in_float = false;                        // the corrections are computed in float32 (capturable)
  bool frozen = false;                          // neither weight nor states change
  double noise = 0;                             // of numbers that were fitted, relative
  int held_bits = 0;  // of the fraction of what is kept of the states; 0: as many as their type has
  // Adafactor
  double beta2_decay = -0.8, eps1 = std::numeric_limits<double>::quiet_NaN(), eps2 = 1e-3, d = 1;
  bool relative_step = true, clips_update = true, scales_by_weight = true;
  bool warms_up = false;         // the rate begins at 1e-6 and grows with the steps
  bool of_transformers = false;  // eps1 is added to the squares, and the decay takes the rate that the update takes
  // Muon
  std::array<double, 3> newton{3.4445, -4.775, 2.0315};
  int64_t newton_steps = 5;
  std::string adjust_lr;  // "original", "match_rms_adamw"
};

/// Whether both do the same, but for what chance may do to numbers that were fitted.
bool IsSameRule(const UpdateRule& a, const UpdateRule& b);

}  // namespace msprobe
