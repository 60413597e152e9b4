#include "responses/anomaly.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace msprobe {
namespace {

constexpr double kLeastSpread = 1e-12, kLeastChange = 0.9;
constexpr int64_t kLeastPeriod = 3;

double SumOfProbabilities(const ResponseTokens& r, size_t position) {
  double sum = 0;
  for (size_t i = 0; i < r.candidates; ++i) sum += std::exp(r.logprobs[position * r.candidates + i]);
  return sum;
}

double Top1(const ResponseTokens& r, size_t position) { return r.logprobs[position * r.candidates]; }

}  // namespace

std::string_view NameOf(ResponseAnomaly anomaly) {
  switch (anomaly) {
    case ResponseAnomaly::kNone: return "";
    case ResponseAnomaly::kRareCharacter: return "rare char";
    case ResponseAnomaly::kGarbled: return "garbled";
    case ResponseAnomaly::kRepetition: return "repetition";
    case ResponseAnomaly::kNotNumbers: return "NaN Value";
  }
  return "";
}

AnomalyDetector::AnomalyDetector(const ResponseLimits& limits) : limits_(limits) {
  // A window, with as many zeros behind it, and the spectrum without its last value as that of a shorter series.
  const auto n = static_cast<size_t>(limits.window);
  const double length = 2 * static_cast<double>(n), shorter = std::max(1.0, length - 2);
  forward_cos_.resize(n * n);
  forward_sin_.resize(n * n);
  backward_.resize(n * n);
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i < n; ++i) {
      const auto turns = static_cast<double>(k * i);
      forward_cos_[i * n + k] = std::cos(2 * std::numbers::pi * turns / length);
      forward_sin_[i * n + k] = std::sin(2 * std::numbers::pi * turns / length);
      const double weight = k == 0 || k + 1 == n ? 1 : 2;
      backward_[k * n + i] = weight / shorter * std::cos(2 * std::numbers::pi * turns / shorter);
    }
  }
  power_.resize(n);
  correlation_.resize(n);
}

bool AnomalyDetector::IsRare(const ResponseTokens& r, size_t position) const {
  if (r.categories.empty()) return Top1(r, position) < limits_.rare_top1;
  if (SumOfProbabilities(r, position) >= limits_.rare_sum) return false;
  std::array<bool, 256> seen{};
  for (size_t i = 0; i < r.candidates; ++i) {
    const int64_t id = r.ids[position * r.candidates + i];
    if (id >= 0 && id < static_cast<int64_t>(r.categories.size())) seen[r.categories[static_cast<size_t>(id)]] = true;
  }
  // Words with and without a space before them are one category.
  if (seen[kLatin] && seen[kLatinWithSpace]) seen[kLatin] = false;
  seen[kPunctuation] = seen[kWhitespace] = false;
  return std::count(seen.begin(), seen.end(), true) > limits_.rare_categories;
}

/// The first rare token of a stretch, -1 without one.
int64_t AnomalyDetector::RareAt(const ResponseTokens& r, size_t begin, size_t end, int64_t* count) const {
  int64_t first = -1;
  *count = 0;
  for (size_t i = begin; i < std::min(end, r.positions); ++i) {
    if (!IsRare(r, i)) continue;
    if (first < 0) first = static_cast<int64_t>(i);
    ++*count;
  }
  return first;
}

bool AnomalyDetector::IsGarbled(const ResponseTokens& r, size_t begin, size_t end, int64_t rare) const {
  const size_t last = std::min(end, r.positions);
  if (last <= begin) return false;
  const auto length = static_cast<double>(last - begin);
  if (!r.categories.empty()) return static_cast<double>(rare) / length > limits_.garbled_share;
  int64_t unsure = 0, low = 0;
  for (size_t i = begin; i < last; ++i) low += Top1(r, i) < limits_.garbled_top1 ? 1 : 0;
  if (static_cast<double>(low) / length <= limits_.garbled_share) return false;
  for (size_t i = begin; i < last; ++i) unsure += SumOfProbabilities(r, i) < limits_.rare_sum ? 1 : 0;
  return static_cast<double>(unsure) / length > limits_.garbled_share;
}

bool AnomalyDetector::HasFewDistinct(std::span<const int64_t> tokens) {
  const auto n = static_cast<size_t>(limits_.ngram);
  if (tokens.size() < n) return false;
  grams_.clear();
  for (size_t i = 0; i + n <= tokens.size(); ++i) {
    uint64_t gram = 0;
    for (size_t k = 0; k < n; ++k)
      gram = (gram ^ static_cast<uint64_t>(tokens[i + k])) * 0x9fb21c651e98df25u + (gram >> 31);
    grams_.push_back(gram);
  }
  const auto all = static_cast<double>(grams_.size());
  std::sort(grams_.begin(), grams_.end());
  const auto distinct = std::unique(grams_.begin(), grams_.end()) - grams_.begin();
  return static_cast<double>(distinct) / all < limits_.distinct;
}

bool AnomalyDetector::HasPeriod(std::span<const double> values) {
  const auto n = static_cast<size_t>(limits_.window), count = std::min(values.size(), n);
  double mean = 0, spread = 0;
  for (const double v : values) mean += v / static_cast<double>(values.size());
  for (const double v : values) spread += (v - mean) * (v - mean) / static_cast<double>(values.size());
  if (std::sqrt(spread) < kLeastSpread) return false;
  std::vector<double>& real = power_;
  std::vector<double> imaginary(n);
  std::fill(real.begin(), real.end(), 0);
  for (size_t i = 0; i < count; ++i) {
    const double v = (values[i] - mean) / std::sqrt(spread);
    for (size_t k = 0; k < n; ++k) {
      real[k] += v * forward_cos_[i * n + k];
      imaginary[k] += v * forward_sin_[i * n + k];
    }
  }
  std::fill(correlation_.begin(), correlation_.end(), 0);
  for (size_t k = 0; k < n; ++k) {
    const double power = real[k] * real[k] + imaginary[k] * imaginary[k];
    for (size_t i = 0; i < n; ++i) correlation_[i] += power * backward_[k * n + i];
  }
  const double whole = correlation_[0];
  const int64_t last = limits_.window / 3;
  int64_t peak = -1;
  for (int64_t lag = kLeastPeriod; lag <= last; ++lag) {
    if (peak < 0 || correlation_[static_cast<size_t>(lag)] > correlation_[static_cast<size_t>(peak)]) peak = lag;
  }
  if (peak < 0 || correlation_[static_cast<size_t>(peak)] / whole <= limits_.acf) return false;
  const double harmonic = std::floor(limits_.acf / 2);
  bool confirmed = false;
  for (const int64_t times : {2, 3}) {
    const int64_t lag = times * peak;
    confirmed = confirmed || (lag < limits_.window && correlation_[static_cast<size_t>(lag)] / whole > harmonic);
  }
  // The series is as long again, backwards.
  double change = 0;
  for (size_t i = 0; i + 1 < n; ++i) {
    const double step = (correlation_[i + 1] - correlation_[i]) / whole;
    change += 2 * step * step;
  }
  const double first_step = (correlation_[1] - correlation_[0]) / whole;
  change -= first_step * first_step;  // the way back to the start is not walked
  return confirmed && std::sqrt(change) > kLeastChange;
}

bool AnomalyDetector::CountRepeats(const ResponseTokens& r, size_t begin, size_t end, Repeats* repeats) {
  values_.clear();
  double least = 0;
  for (size_t i = begin; i < std::min(end, r.positions); ++i) {
    values_.push_back(Top1(r, i));
    least = values_.size() == 1 ? values_[0] : std::min(least, values_.back());
  }
  if (values_.empty()) return false;
  const bool acf = least > limits_.acf_logp && HasPeriod(values_);
  const bool trajectory = least > limits_.trajectory_logp && HasFewDistinct(r.tokens.subspan(begin, end - begin));
  if (acf && trajectory) {
    ++repeats->both;
  } else if (acf) {
    ++repeats->acf;
  } else if (trajectory) {
    ++repeats->trajectory;
  }
  return repeats->both > limits_.multi_windows || repeats->acf > limits_.single_windows ||
         repeats->trajectory > limits_.single_windows;
}

ResponseFinding AnomalyDetector::Find(const ResponseTokens& r) {
  if (r.tokens.empty() || r.positions == 0 || r.candidates == 0) return {};
  for (size_t i = 0; i < r.logprobs.size(); ++i) {
    if (!std::isfinite(r.logprobs[i])) return {ResponseAnomaly::kNotNumbers, static_cast<int64_t>(i / r.candidates)};
  }
  const auto stride = static_cast<size_t>(limits_.stride), window = static_cast<size_t>(limits_.window);
  int64_t count = 0;
  if (r.tokens.size() < stride) {
    const int64_t rare = RareAt(r, 0, r.positions, &count);
    return rare < 0 ? ResponseFinding{} : ResponseFinding{ResponseAnomaly::kRareCharacter, rare};
  }
  int64_t garbled = 0, first_rare = -1;
  Repeats repeats;
  for (size_t begin = 0; begin < r.tokens.size(); begin += stride) {
    const size_t end = std::min(begin + window, r.tokens.size());
    const int64_t rare = RareAt(r, begin, end, &count);
    if (first_rare < 0) first_rare = rare;
    garbled += IsGarbled(r, begin, end, count) ? 1 : 0;
    if (garbled > limits_.garbled_windows) return {ResponseAnomaly::kGarbled, static_cast<int64_t>(begin)};
    if (std::min(end, r.positions) < begin + stride) continue;
    if (CountRepeats(r, begin, end, &repeats)) return {ResponseAnomaly::kRepetition, static_cast<int64_t>(begin)};
  }
  return first_rare < 0 ? ResponseFinding{} : ResponseFinding{ResponseAnomaly::kRareCharacter, first_rare};
}

}  // namespace msprobe
