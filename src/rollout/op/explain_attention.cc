#include <array>

#include "rollout/op/explain_op.h"

namespace msprobe {
namespace {

constexpr std::array kCaps{0.0, 50.0, 30.0, 20.0, 100.0};  // that models use, the usual one first

/// The trainer's scale, window and cap, which the tool has to know before it can say what the engine's are.
std::optional<AttentionForm> TrainersForm(const AttentionFit& fit, AttentionForm form, double tolerance) {
  for (const double cap : kCaps) {
    form.cap = cap;
    if (fit.Measure(&form) <= tolerance) return form;
    AttentionForm windowed = fit.BestWindow(form);
    if (windowed.error <= tolerance) return windowed;
    AttentionForm scaled = fit.BestScale(form);
    if (scaled.error <= tolerance) return scaled;
    scaled = fit.BestScale(windowed);
    if (scaled.error <= tolerance) return scaled;
  }
  return std::nullopt;
}

Message WindowWords(int64_t window) { return window > 0 ? Msg("a window of {}", window) : Msg("no window"); }

}  // namespace

OpHow ExplainAttention(const AttentionCase& one, std::optional<bool>* local) {
  local->reset();
  if (one.train.positions.empty() || one.rollout.positions.empty()) return {};
  const AttentionFit train(one.train), rollout(one.rollout);
  const AttentionForm usual{1 / std::sqrt(static_cast<double>(one.train.size)), 0, false, 0, 0};
  double tolerance = one.tolerance + one.unit * train.UsualScore(usual.scale);
  const std::optional<AttentionForm> own = TrainersForm(train, usual, tolerance);
  if (!own) return {};
  // What the trainer's own rounding leaves tells what rounding is here.
  tolerance = std::max(tolerance, 3 * own->error);
  AttentionForm same = *own;
  *local = rollout.Measure(&same) > tolerance;
  if (!**local) return {};
  const AttentionForm scaled = rollout.BestScale(*own);
  if (scaled.error <= tolerance) {
    const double factor = scaled.scale / own->scale;
    return {"attention_scale", Msg("its scores are {:.4g} times as large", factor), scaled.error};
  }
  const AttentionForm windowed = rollout.BestWindow(*own);
  if (windowed.error <= tolerance) {
    Message words = Msg("it looks through {} in place of {}", WindowWords(windowed.window), WindowWords(own->window));
    return {"attention_window", std::move(words), windowed.error};
  }
  AttentionForm tiled = *own;
  tiled.tiled = !tiled.tiled;
  if (rollout.Measure(&tiled) <= tolerance) {
    return {"attention_heads", Msg("its heads of queries read the keys of others"), tiled.error};
  }
  return {};
}

}  // namespace msprobe
