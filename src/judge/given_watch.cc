#include "judge/given_watch.h"

#include <algorithm>
#include <cmath>

namespace msprobe {
namespace {

constexpr size_t kMoves = 8;
constexpr double kFarMore = 3;
const double kLeastJump = std::log(1.5);

}  // namespace

bool IsSetByScript(std::string_view table) { return table == "learning_rate" || table == "loss_factor"; }

bool IsGiven(std::string_view table) { return IsSetByScript(table) || table == "model_input"; }

std::optional<Change> GivenWatch::Add(int64_t step, double value) {
  if (!(value > 0) || !std::isfinite(value)) {
    moves_.clear();
    last_ = 0;
    return std::nullopt;
  }
  std::optional<Change> change;
  if (last_ > 0) {
    const double move = std::fabs(std::log(value / last_));
    const bool known = moves_.size() == kMoves;
    const double most = known ? *std::max_element(moves_.begin(), moves_.end()) : 0;
    if (known && move >= kLeastJump && move > kFarMore * most) {
      change = Change{Detector::kJump, step, 0, last_, value};
    }
    if (known) moves_.erase(moves_.begin());
    moves_.push_back(move);
  }
  last_ = value;
  return change;
}

}  // namespace msprobe
