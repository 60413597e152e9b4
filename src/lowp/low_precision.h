// What the layers of a recorded step would lose in formats of few bits: "may I train this in fp8?", from one dump.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/message.h"
#include "base/status.h"
#include "dump/gaps.h"
#include "judgement/judgement.h"
#include "lowp/op_loss.h"

namespace msprobe {

struct LowPrecisionRequest {
  std::string dump;  // dump, step or rank directory, or a dump.json
  std::vector<std::string> formats, recipes;
  std::optional<int> step;  // the last one without it
  bool stochastic = false;
  uint64_t seed = 0;
};

/// What a layer is said to do under a plan.
enum class LayerVerdict : uint8_t { kKeeps, kLoses, kNotMeasured };

struct LowPrecisionLayer {
  int rank = 0;
  std::string layer, call;
  OpLosses losses;
};

struct LowPrecisionReport {
  std::string input;
  int step = -1;
  std::vector<MatrixPlan> plans;
  std::vector<LowPrecisionLayer> layers;
  std::vector<std::string> not_read, no_values;
  std::vector<RecordingGap> gaps;
  bool delayed_without_history = false;
};

/// kBadInput where nothing could be measured, with what to record.
StatusOr<LowPrecisionReport> MeasureLowPrecision(const LowPrecisionRequest& request);

/// A result keeps what the format can hold when its error is at most twice what rounding of the operands costs anyway.
inline constexpr double kMostTimesFloor = 2;
LayerVerdict VerdictOf(const LowPrecisionLayer& layer, size_t plan);
/// Of the three results the one that is farthest above its floor, in floors.
double WorstTimesFloor(const OpLoss& loss);
/// One sentence: why a layer loses more than rounding; empty where it does not.
Message WhyLost(const LowPrecisionLayer& layer, size_t plan);

/// Layers from the worst on: by the change of the loss where gradients were recorded, else by the result's error.
std::vector<size_t> RankLayers(const LowPrecisionReport& report, size_t plan);

/// With the worst layers left in bfloat16.
struct KeptPoint {
  size_t kept = 0;  // layers in bfloat16
  double loss = 0;  // the change of the loss, or the errors, of the others together: root of the sum of squares
  double work = 0;  // share of the multiplications that stays in bfloat16
};
std::vector<KeptPoint> CurveOf(const LowPrecisionReport& report, size_t plan);
/// Whether `loss` is of the loss: gradients were recorded.
bool HasGradients(const LowPrecisionReport& report, size_t plan);

std::vector<Judgement> JudgementsOf(const LowPrecisionReport& report);
Message LowPrecisionText(const LowPrecisionReport& report, Language language);
std::string LowPrecisionJson(const LowPrecisionReport& report);
/// A row for each layer and plan.
std::string LowPrecisionCsv(const LowPrecisionReport& report);

}  // namespace msprobe
