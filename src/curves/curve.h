// A quantity of a training over its steps, as a log or another file of the run holds it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace msprobe {

enum class CurveKind : uint8_t { kLoss, kGradNorm, kLearningRate, kEvalLoss };
inline constexpr std::array kCurveKinds{CurveKind::kLoss, CurveKind::kGradNorm, CurveKind::kLearningRate,
                                        CurveKind::kEvalLoss};
/// "loss", "grad norm", "learning rate", "evaluation loss".
std::string_view CurveKindText(CurveKind kind);

struct Curve {
  std::vector<int64_t> steps;  // rising
  std::vector<double> values;
  std::vector<double> units;  // what one unit of the last digit that was printed, or stored, is worth

  size_t size() const { return steps.size(); }
  bool empty() const { return steps.empty(); }
};

struct RunCurves {
  std::string path, format;  // "log of Megatron", "csv", "TensorBoard", ...
  std::array<Curve, kCurveKinds.size()> curves;
  std::vector<std::string> others = {};  // further series of numbers, by their names, which are not compared
  std::vector<Message> notes = {};       // what a person should know: steps logged twice, a file that was cut off

  Curve& of(CurveKind kind) { return curves[static_cast<size_t>(kind)]; }
  const Curve& of(CurveKind kind) const { return curves[static_cast<size_t>(kind)]; }
};

/// What a user says of a file that is not as expected: words before the numbers, columns or tags.
struct CurveNames {
  std::string loss, grad_norm, learning_rate;
  std::string pattern;  // "step {step} loss {loss}": a line of a log

  const std::string& of(CurveKind kind) const {
    static const std::string none;
    switch (kind) {
      case CurveKind::kLoss: return loss;
      case CurveKind::kGradNorm: return grad_norm;
      case CurveKind::kLearningRate: return learning_rate;
      case CurveKind::kEvalLoss: break;
    }
    return none;
  }
};

/// Points in the order of a file.
class CurveCollector {
 public:
  /// kBadInput when there are more than any training logs.
  Status Add(CurveKind kind, int64_t step, double value, double unit);
  size_t count(CurveKind kind) const { return points_[static_cast<size_t>(kind)].size(); }
  /// Adds to the steps of all points.
  void Shift(int64_t steps);
  /// By step; of points of one step the last counts, which is noted.
  void Finish(RunCurves* out);

 private:
  struct Point {
    int64_t step;
    double value, unit;
  };
  std::array<std::vector<Point>, kCurveKinds.size()> points_;
};

inline constexpr size_t kMaxCurvePoints = 5'000'000;

}  // namespace msprobe
