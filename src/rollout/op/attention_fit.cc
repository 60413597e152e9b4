#include "rollout/op/attention_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace msprobe {

AttentionFit::AttentionFit(const AttentionInput& input) : in_(input) {
  const auto width = static_cast<size_t>(in_.groups * in_.size);
  length_ = width == 0 ? 0 : static_cast<int64_t>(in_.keys.size() / width);
  const int64_t shared = in_.groups > 0 ? in_.heads / in_.groups : 1;
  for (int tiled = 0; tiled < 2; ++tiled) {
    if (tiled == 1 && (shared == 1 || in_.groups == 1)) continue;
    dots_[tiled].resize(in_.positions.size() * static_cast<size_t>(in_.heads * length_));
    float* out = dots_[tiled].data();
    for (size_t q = 0; q < in_.positions.size(); ++q) {
      for (int64_t h = 0; h < in_.heads; ++h) {
        const int64_t group = tiled == 1 ? h % in_.groups : h / shared;
        const float* query = in_.queries.data() + (static_cast<int64_t>(q) * in_.heads + h) * in_.size;
        for (int64_t p = 0; p < length_; ++p) {
          const float* key = in_.keys.data() + (p * in_.groups + group) * in_.size;
          double sum = 0;
          for (int64_t d = 0; d < in_.size; ++d) sum += static_cast<double>(query[d]) * key[d];
          *out++ = static_cast<float>(sum);
        }
      }
    }
  }
}

double AttentionFit::Measure(AttentionForm* form) const {
  form->error = std::numeric_limits<double>::infinity();
  const std::vector<float>& dots = dots_[form->tiled ? 1 : 0];
  if (dots.empty()) return form->error;
  const int64_t shared = in_.heads / in_.groups;
  std::vector<double> weights(static_cast<size_t>(length_)), out(static_cast<size_t>(in_.size));
  double largest = 0;
  for (size_t q = 0; q < in_.positions.size(); ++q) {
    const int64_t end = std::min(in_.positions[q] + 1, length_);
    const int64_t begin = form->window > 0 ? std::max<int64_t>(0, end - form->window) : 0;
    double difference = 0, whole = 0;
    for (int64_t h = 0; h < in_.heads; ++h) {
      const float* dot = dots.data() + (static_cast<int64_t>(q) * in_.heads + h) * length_;
      double top = -std::numeric_limits<double>::infinity(), sum = 0;
      const auto score = [&](int64_t p) {
        const double plain = dot[p] * form->scale;
        return form->cap > 0 ? form->cap * std::tanh(plain / form->cap) : plain;
      };
      for (int64_t p = begin; p < end; ++p) top = std::max(top, score(p));
      std::fill(out.begin(), out.end(), 0);
      const int64_t group = form->tiled ? h % in_.groups : h / shared;
      for (int64_t p = begin; p < end; ++p) {
        const double weight = std::exp(score(p) - top);
        sum += weight;
        const float* value = in_.values.data() + (p * in_.groups + group) * in_.size;
        for (int64_t d = 0; d < in_.size; ++d) out[static_cast<size_t>(d)] += weight * value[d];
      }
      const float* seen = in_.outputs.data() + (static_cast<int64_t>(q) * in_.heads + h) * in_.size;
      for (int64_t d = 0; d < in_.size; ++d) {
        const double expected = out[static_cast<size_t>(d)] / sum;
        difference += (seen[d] - expected) * (seen[d] - expected);
        whole += expected * expected;
      }
    }
    if (whole > 0) largest = std::max(largest, std::sqrt(difference / whole));
  }
  return form->error = largest;
}

double AttentionFit::UsualScore(double scale) const {
  double sum = 0;
  const auto rows = static_cast<int64_t>(in_.positions.size()) * in_.heads;
  for (int64_t row = 0; row < rows; ++row) {
    const float* dots = dots_[0].data() + row * length_;
    double most = 0;
    const int64_t end = std::min(in_.positions[static_cast<size_t>(row / in_.heads)] + 1, length_);
    for (int64_t p = 0; p < end; ++p) most = std::max(most, std::fabs(dots[p] * scale));
    sum += most / static_cast<double>(rows);
  }
  return sum;
}

AttentionForm AttentionFit::BestScale(AttentionForm form) const {
  const double from = form.scale;
  const auto at = [&](double power) {
    AttentionForm one = form;
    one.scale = from * std::exp(power);
    Measure(&one);
    return one;
  };
  constexpr double kFar = 3, kStep = 0.1;
  AttentionForm best = at(0);
  double middle = 0;
  for (double power = -kFar; power <= kFar; power += kStep) {
    const AttentionForm one = at(power);
    if (one.error < best.error) best = one, middle = power;
  }
  double step = kStep / 2;
  while (step > 1e-5) {
    const AttentionForm down = at(middle - step), up = at(middle + step);
    if (down.error < best.error && down.error <= up.error) {
      best = down, middle -= step;
    } else if (up.error < best.error) {
      best = up, middle += step;
    } else {
      step /= 2;
    }
  }
  return best;
}

AttentionForm AttentionFit::BestWindow(AttentionForm form) const {
  AttentionForm best = form;
  best.window = 0;
  Measure(&best);
  for (int64_t window = length_ - 1; window > 0; --window) {
    form.window = window;
    if (Measure(&form) < best.error) best = form;
  }
  return best;
}

}  // namespace msprobe
