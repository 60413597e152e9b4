#include "rollout/stages/sampling_law.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace msprobe {
namespace {

constexpr double kRounding = 1e-3;       // nats, of float32 arithmetic over a vocabulary
constexpr double kRelative = 1.0 / 512;  // of log-probabilities that are kept in bfloat16
constexpr double kLeft = 0.1;            // of the squares that a law may leave of what raw logits do
constexpr double kLeastTemperature = 0.05, kMostTemperature = 20, kSameTemperature = 0.005;
constexpr size_t kMostElements = size_t{1} << 25;  // logits that are looked at in one pass

double LogSum(std::span<const float> logits, double temperature) {
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const float z : logits) most = std::max(most, static_cast<double>(z) / temperature);
  if (!std::isfinite(most)) return most;
  for (const float z : logits) sum += std::exp(static_cast<double>(z) / temperature - most);
  return most + std::log(sum);
}

double Plain(std::span<const float> logits, int64_t token, double temperature) {
  return static_cast<double>(logits[static_cast<size_t>(token)]) / temperature - LogSum(logits, temperature);
}

/// Probabilities in falling order, and the place of the token's own among them.
struct Ranked {
  std::vector<double> probabilities;
  size_t rank = 0;
};

Ranked RankOf(std::span<const float> logits, int64_t token, double temperature) {
  Ranked out;
  const double sum = LogSum(logits, temperature);
  const float own = logits[static_cast<size_t>(token)];
  for (const float z : logits) {
    out.rank += z > own;
    out.probabilities.push_back(std::exp(static_cast<double>(z) / temperature - sum));
  }
  std::sort(out.probabilities.begin(), out.probabilities.end(), std::greater<>());
  return out;
}

/// How many words of the most likely a law keeps.
size_t KeptWords(const SamplingLaw& law, const std::vector<double>& probabilities) {
  size_t kept = probabilities.size();
  if (law.top_k > 0) kept = std::min(kept, static_cast<size_t>(law.top_k));
  if (law.top_p < 1) {
    const double all =
        std::accumulate(probabilities.begin(), probabilities.begin() + static_cast<ptrdiff_t>(kept), 0.0);
    double sum = 0;
    size_t n = 0;
    while (n < kept && sum < law.top_p * all) sum += probabilities[n++];
    kept = std::max<size_t>(1, n);
  }
  if (law.min_p > 0) {
    while (kept > 1 && probabilities[kept - 1] < law.min_p * probabilities[0]) --kept;
  }
  return kept;
}

double FittedTemperature(const std::vector<SamplingToken>& tokens) {
  const auto at = [&](double log) { return ResidualOf({.temperature = std::exp(log)}, tokens); };
  constexpr int kSteps = 24;
  const double low = std::log(kLeastTemperature), high = std::log(kMostTemperature), step = (high - low) / kSteps;
  double best = 0, least = at(0);
  for (int i = 0; i <= kSteps; ++i) {
    const double log = low + i * step, value = at(log);
    if (value < least) {
      least = value;
      best = log;
    }
  }
  double a = best - step, b = best + step;
  constexpr double kGolden = 0.6180339887498949;
  double x = b - kGolden * (b - a), y = a + kGolden * (b - a), fx = at(x), fy = at(y);
  for (int i = 0; i < 30; ++i) {
    if (fx < fy) {
      b = y;
      y = x;
      fy = fx;
      fx = at(x = b - kGolden * (b - a));
    } else {
      a = x;
      x = y;
      fx = fy;
      fy = at(y = a + kGolden * (b - a));
    }
  }
  return std::exp((a + b) / 2);
}

/// A number of few digits near `v`, where it is as near as the fit tells.
double Rounded(double v, double tolerance) {
  for (const double scale : {10.0, 20.0, 100.0, 1000.0}) {
    const double near = std::round(v * scale) / scale;
    if (near > 0 && std::fabs(near - v) <= tolerance) return near;
  }
  return v;
}

double FittedAfter(const std::vector<SamplingToken>& tokens) {
  double rl = 0, ll = 0;
  for (const SamplingToken& t : tokens) {
    const double plain = Plain(t.logits, t.token, 1);
    rl += t.recorded * plain;
    ll += plain * plain;
  }
  return rl > 0 ? ll / rl : 1;
}

/// The cut that the recorded values imply at a temperature: so many words, or so much of the probability.
void AddCuts(const std::vector<SamplingToken>& tokens, double temperature, std::vector<SamplingLaw>* out) {
  std::vector<size_t> counts;
  double low = 0, high = 1;
  for (const SamplingToken& t : tokens) {
    const double lost = t.recorded - Plain(t.logits, t.token, temperature);  // -log of what was kept
    if (!(lost > kRounding)) continue;
    const Ranked ranked = RankOf(t.logits, t.token, temperature);
    const double kept = std::exp(-lost);
    double sum = 0, before = 0;
    size_t n = 0;
    while (n < ranked.probabilities.size() &&
           std::fabs(sum - kept) >= std::fabs(sum + ranked.probabilities[n] - kept)) {
      before = sum;
      sum += ranked.probabilities[n++];
    }
    if (n == 0) continue;
    counts.push_back(n);
    low = std::max(low, before);
    high = std::min(high, sum);
  }
  if (counts.size() < 3) return;
  std::nth_element(counts.begin(), counts.begin() + static_cast<ptrdiff_t>(counts.size() / 2), counts.end());
  out->push_back({.temperature = temperature, .top_k = static_cast<int64_t>(counts[counts.size() / 2])});
  if (low < high) out->push_back({.temperature = temperature, .top_p = Rounded((low + high) / 2, (high - low) / 2)});
}

/// From the simplest on.
std::vector<SamplingLaw> Candidates(const std::vector<SamplingToken>& tokens, const SamplingSettings& hints) {
  std::vector<SamplingLaw> out{{}};
  std::vector<double> temperatures{1};
  const double told = hints.temperature.value_or(1);
  if (told > 0 && std::fabs(told - 1) > kSameTemperature) {
    out.push_back({.temperature = told});
    out.push_back({.after = told});
    out.push_back({.temperature = told * told});
    temperatures.push_back(told);
  }
  const double fitted = Rounded(FittedTemperature(tokens), kSameTemperature);
  out.push_back({.temperature = fitted});
  out.push_back({.after = Rounded(FittedAfter(tokens), kSameTemperature)});
  if (std::fabs(fitted - 1) > kSameTemperature) temperatures.push_back(fitted);
  for (const double temperature : temperatures) {
    const auto top_k = static_cast<int64_t>(hints.top_k.value_or(0));
    const double top_p = hints.top_p.value_or(1), min_p = hints.min_p.value_or(0);
    if (top_k > 0) out.push_back({.temperature = temperature, .top_k = top_k});
    if (top_p > 0 && top_p < 1) out.push_back({.temperature = temperature, .top_p = top_p});
    if (min_p > 0) out.push_back({.temperature = temperature, .min_p = min_p});
    if (top_k > 0 && top_p > 0 && top_p < 1)
      out.push_back({.temperature = temperature, .top_k = top_k, .top_p = top_p});
    AddCuts(tokens, temperature, &out);
  }
  return out;
}

}  // namespace

std::string SamplingLaw::Kind() const {
  if (after != 1) return "divided_after";
  if (top_k > 0 && top_p < 1) return "top_k_top_p";
  if (top_k > 0) return "top_k";
  if (top_p < 1) return "top_p";
  if (min_p > 0) return "min_p";
  return temperature != 1 ? "temperature" : "raw";
}

Message SamplingLaw::Words() const {
  std::vector<Message> parts;
  if (temperature != 1) parts.push_back(Msg("of logits divided by {:.4g}", temperature));
  if (after != 1) parts.push_back(Msg("divided by {:.4g} behind the softmax", after));
  if (top_k > 0) parts.push_back(Msg("over the {} most likely words (top-k)", top_k));
  if (top_p < 1) parts.push_back(Msg("over the words that make up {:.4g} (top-p)", top_p));
  if (min_p > 0) parts.push_back(Msg("over the words of at least {:.4g} of the most likely (min-p)", min_p));
  return parts.empty() ? Msg("of the raw logits") : Joined(parts, Message(", "));
}

double LogProbability(const SamplingLaw& law, std::span<const float> logits, int64_t token) {
  if (token < 0 || static_cast<size_t>(token) >= logits.size()) return std::numeric_limits<double>::quiet_NaN();
  const double plain = Plain(logits, token, law.temperature) / law.after;
  if (law.top_k == 0 && law.top_p >= 1 && law.min_p <= 0) return plain;
  const Ranked ranked = RankOf(logits, token, law.temperature);
  const size_t kept = KeptWords(law, ranked.probabilities);
  if (ranked.rank >= kept) return -std::numeric_limits<double>::infinity();
  return plain - std::log(std::accumulate(ranked.probabilities.begin(),
                                          ranked.probabilities.begin() + static_cast<ptrdiff_t>(kept), 0.0));
}

double ResidualOf(const SamplingLaw& law, const std::vector<SamplingToken>& tokens) {
  double sum = 0;
  for (const SamplingToken& t : tokens) {
    const double left = LogProbability(law, t.logits, t.token) - t.recorded;
    sum += std::isfinite(left) ? left * left : 100;
  }
  return std::sqrt(sum / static_cast<double>(tokens.size()));
}

double PreferenceOf(const SamplingLaw& law, const SamplingLaw& other, const std::vector<SamplingToken>& tokens) {
  constexpr double kLeast = 1e-6;  // nats that any arithmetic leaves
  const double own = std::max(kLeast, ResidualOf(law, tokens)), others = std::max(kLeast, ResidualOf(other, tokens));
  return static_cast<double>(tokens.size()) * std::log(others / own);
}

LawFit FitLaw(const std::vector<SamplingToken>& all, const SamplingSettings& hints) {
  LawFit out;
  if (all.empty()) return out;
  // A vocabulary is long: some of the tokens, evenly spread, show the law.
  const size_t most = std::max<size_t>(16, kMostElements / all[0].logits.size());
  std::vector<SamplingToken> tokens;
  for (size_t i = 0; i < all.size(); i += all.size() / most + 1) tokens.push_back(all[i]);
  double size = 0;
  for (const SamplingToken& t : tokens) size += std::fabs(t.recorded) / static_cast<double>(tokens.size());
  for (const SamplingToken& t : tokens) {
    const double apart = std::fabs(t.recorded) - size;
    out.spread += apart * apart / static_cast<double>(tokens.size());
  }
  out.spread = std::sqrt(out.spread);
  const double rounding = std::max(kRounding, kRelative * size);
  out.raw_residual = out.residual = ResidualOf({}, tokens);
  out.within_rounding = out.explains = out.raw_residual <= rounding;
  if (out.explains) return out;
  for (const SamplingLaw& law : Candidates(tokens, hints)) {
    const double residual = ResidualOf(law, tokens);
    if (residual <= rounding) {
      out.law = law;
      out.residual = residual;
      out.within_rounding = out.explains = true;
      return out;
    }
    if (residual * residual < kLeft * out.raw_residual * out.raw_residual && residual < out.residual / 1.5) {
      out.law = law;
      out.residual = residual;
      out.explains = true;
    }
  }
  return out;
}

}  // namespace msprobe
